/* The source of counters on Windows, by PDH. See poll.h. */
#include "base/os.h"
#include "source/counter/pdh_counter_windows.h"
#include "source/counter/poll.h"

#include <stdlib.h>

struct pdh {
	struct counter_poll poll;
	struct pdh_counter **counters;       /* by index of the poll */
};

extern const struct source_ops pdh_source;
int pdh_list(const char *pattern, bool json, struct out *out, struct err *err);

static int check_counters(const struct needs *needs, struct err *err)
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
	struct pdh *s = (struct pdh *)source;
	uint32_t i;

	for (i = 0; i < s->poll.npolled; i++)
		pdh_counter_close(s->counters[i]);
	counter_poll_close(&s->poll);
	free(s->counters);
	free(s);
}

static int add_counter(struct pdh *s, const struct need_counter *need, struct log *log,
		       struct err *err)
{
	struct pdh_counter **counter = &s->counters[s->poll.npolled];
	int rc = pdh_counter_open(need->name, counter, err);

	if (rc)
		return rc;
	counter_poll_add(&s->poll, need);
	if (pdh_counter_is_fallback(*counter))
		log_line(log, LOG_WARN,
			 "PDH fails for '%s'; the value comes from the system directly",
			 need->name);
	return 0;
}

static enum counter_result read_counter(struct counter_poll *p, uint32_t i, double *value)
{
	return pdh_counter_read(((struct pdh *)p)->counters[i], value);
}

static int open_source(const struct source_config *cfg, const struct needs *needs,
		       struct source **out, struct err *err)
{
	/* PDH needs milliseconds for a category. */
	static const struct counter_poll_ops ops = {NULL, read_counter, 100 * NS_PER_MS};
	struct pdh *s = calloc(1, sizeof(*s));
	uint32_t i;
	int rc;

	if (!s)
		return err_memory(err, "for the source of counters");
	s->poll.base.ops = &pdh_source;
	s->counters = calloc(needs->ncounters + 1, sizeof(*s->counters));
	rc = counter_poll_open(&s->poll, &ops, cfg->queue, needs->ncounters, err);
	if (!s->counters)
		rc = err_memory(err, "for the source of counters");
	for (i = 0; !rc && i < needs->ncounters; i++)
		rc = add_counter(s, &needs->counters[i], cfg->log, err);
	if (rc) {
		close_source(&s->poll.base);
		return rc;
	}
	*out = &s->poll.base;
	return 0;
}

const struct source_ops pdh_source = {
	.name = "counters",
	.summary = "performance counters by PDH, under their English names",
	.check = check_counters,
	.list = pdh_list,
	.open = open_source,
	.run = counter_poll_run,
	.stop = counter_poll_stop,
	.status = counter_poll_status,
	.close = close_source,
};
