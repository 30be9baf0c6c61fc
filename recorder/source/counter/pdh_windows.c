/*
 * The source of counters on Windows: one thread that reads each needed counter at its period.
 *
 * A value becomes EVENT_COUNTER with the name that the rule gave. A rate needs two readings, so its
 * first event comes one period after the start: "no value yet" is not 0. A missing instance is
 * reported at each period (EVENT_FLAG_ABSENT).
 */
#include "base/os.h"
#include "source/counter/poll.h"
#include "source/counter/pdh_counter_windows.h"
#include "source/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_MIN_NS (100 * NS_PER_MS)      /* PDH needs milliseconds for a category */

struct pdh {
	struct source base;
	struct queue *queue;
	struct counter_poll *poll;
	struct pdh_counter **counters;       /* by index of the poll */
	uint32_t n;
};

extern const struct source_ops pdh_source;
int pdh_list(const char *pattern, bool json, struct out *out, struct err *err);

static struct pdh *pdh_of(struct source *s)
{
	return (struct pdh *)s;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int check(const struct needs *needs, struct err *err)
{
	struct pdh_counter *counter;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->ncounters; i++) {
		rc = pdh_counter_open(needs->counters[i].name, &counter, err);
		if (!rc)
			pdh_counter_close(counter);
	}
	return rc;
}

static void close_source(struct source *source)
{
	struct pdh *s = pdh_of(source);
	uint32_t i;

	if (!s)
		return;
	for (i = 0; i < s->n; i++)
		pdh_counter_close(s->counters[i]);
	counter_poll_free(s->poll);
	free(s->counters);
	free(s);
}

static int add(struct pdh *s, const struct need_counter *need, struct log *log, struct err *err)
{
	int rc = pdh_counter_open(need->name, &s->counters[s->n], err);

	if (rc)
		return rc;
	counter_poll_add(s->poll, need);
	if (pdh_counter_is_fallback(s->counters[s->n++]))
		log_line(log, LOG_WARN,
			 "PDH fails for '%s'; the value comes from the system directly",
			 need->name);
	return 0;
}

static int open_source(const struct source_config *cfg, const struct needs *needs,
		       struct source **out, struct err *err)
{
	struct pdh *s = calloc(1, sizeof(*s));
	uint32_t i;
	int rc = 0;

	if (s) {
		s->base.ops = &pdh_source;
		s->queue = cfg->queue;
		s->counters = calloc(needs->ncounters ? needs->ncounters : 1,
				     sizeof(struct pdh_counter *));
	}
	if (!s || !s->counters)
		rc = err_memory(err, "for the source of counters");
	else
		rc = counter_poll_new(cfg->queue, needs->ncounters, PERIOD_MIN_NS, &s->poll, err);
	for (i = 0; !rc && i < needs->ncounters; i++)
		rc = add(s, &needs->counters[i], cfg->log, err);
	if (rc) {
		close_source(s ? &s->base : NULL);
		return rc;
	}
	*out = &s->base;
	return 0;
}

/* ---- polling --------------------------------------------------------------------------------- */

static enum counter_result read_one(void *ctx, uint32_t i, double *value)
{
	struct pdh *s = ctx;

	return pdh_counter_read(s->counters[i], value);
}

static int run(struct source *source, struct err *err)
{
	static const struct counter_poll_ops ops = {.read = read_one};
	struct pdh *s = pdh_of(source);

	(void)err;
	counter_poll_run(s->poll, &ops, s);
	return 0;
}

static void stop(struct source *source)
{
	counter_poll_stop(pdh_of(source)->poll);
}

static void status(struct source *source, struct source_status *out)
{
	struct pdh *s = pdh_of(source);

	memset(out, 0, sizeof(*out));
	out->events = counter_poll_events(s->poll);
	out->lost = queue_lost(s->queue);
}

const struct source_ops pdh_source = {
	.name = "counters",
	.summary = "performance counters by PDH, under their English names",
	.check = check,
	.list = pdh_list,
	.open = open_source,
	.run = run,
	.stop = stop,
	.status = status,
	.close = close_source,
};
