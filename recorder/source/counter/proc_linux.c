/*
 * The source of counters on Linux: one thread that reads each needed counter at its period.
 *
 * A value becomes EVENT_COUNTER with the name that the rule gave. A rate needs two readings, so its
 * first event comes one period after the start: "no value yet" is not 0. A missing instance is
 * reported at each period (EVENT_FLAG_ABSENT). It is also reported once when another process takes
 * over the name, so that the two processes are not mixed up.
 */

#include "base/os.h"
#include "source/counter/poll.h"
#include "source/runtime/gc_counters.h"
#include "source/counter/proc_reader.h"
#include "source/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_MIN_NS (10 * NS_PER_MS)

struct polled {
	const struct counter_def *def;
	struct proc_instance *instance;
	struct counter_raw before;
	bool has_before;
};

struct proc_source {
	struct source base;
	struct queue *queue;
	struct proc_reader *reader;
	struct counter_poll *poll;
	struct polled *polled;               /* by index of the poll */
	uint32_t npolled;
};

extern const struct source_ops proc_source;
int proc_list(const char *pattern, bool json, struct out *out, struct err *err);

/* ---- opening --------------------------------------------------------------------------------- */

/* A rule on an unknown counter is an error in the rule. */
static int find_counter(const char *name, struct proc_counter *out, struct err *err)
{
	int rc = proc_counter_find(name, out, err);

	if (rc == ERR_NOT_FOUND) {
		rc = ERR_USAGE;
		if (err)
			err->code = rc;
	}
	return rc;
}

static int proc_check(const struct needs *needs, struct err *err)
{
	struct proc_counter counter;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->ncounters; i++)
		rc = gc_counter_is(needs->counters[i].name)
			     ? gc_counter_check(needs->counters[i].name, err)
			     : find_counter(needs->counters[i].name, &counter, err);
	return rc;
}

static void proc_close(struct source *source)
{
	struct proc_source *s = (struct proc_source *)source;

	if (!s)
		return;
	proc_reader_close(s->reader);
	counter_poll_free(s->poll);
	free(s->polled);
	free(s);
}

static int add_polled(struct proc_source *s, const struct need_counter *need, struct err *err)
{
	struct polled *p = &s->polled[s->npolled];
	struct proc_counter counter;
	int rc;

	rc = find_counter(need->name, &counter, err);
	if (rc)
		return rc;
	p->def = counter.def;
	p->instance = proc_reader_instance(s->reader, counter.category, counter.instance,
					   counter_fields(counter.def));
	if (!p->instance)
		return err_memory(err, "for the counter '%s'", need->name);
	s->npolled++;
	counter_poll_add(s->poll, need);
	return 0;
}

static int proc_open(const struct source_config *cfg, const struct needs *needs,
		     struct source **out, struct err *err)
{
	struct proc_source *s = calloc(1, sizeof(*s));
	uint32_t i;
	int rc;

	if (s) {
		s->base.ops = &proc_source;
		s->queue = cfg->queue;
		s->polled = calloc(needs->ncounters ? needs->ncounters : 1, sizeof(*s->polled));
	}
	if (!s || !s->polled)
		rc = err_memory(err, "for the source of counters");
	else
		rc = counter_poll_new(cfg->queue, needs->ncounters, PERIOD_MIN_NS, &s->poll, err);
	if (!rc)
		rc = proc_reader_open("/proc", true, &s->reader, err);
	/* Counters of collections come from the sources that see collections. */
	for (i = 0; !rc && i < needs->ncounters; i++)
		if (!gc_counter_is(needs->counters[i].name))
			rc = add_polled(s, &needs->counters[i], err);
	if (rc) {
		proc_close((struct source *)s);
		return rc;
	}
	*out = &s->base;
	return 0;
}

/* ---- polling --------------------------------------------------------------------------------- */

static void begin(void *ctx)
{
	struct proc_source *s = ctx;

	proc_reader_begin(s->reader);
}

static enum counter_result read_one(void *ctx, uint32_t i, double *value)
{
	struct proc_source *s = ctx;
	struct polled *p = &s->polled[i];
	const struct counter_raw *now;
	enum counter_result result = proc_instance_read(s->reader, p->instance, &now);
	bool replaced;

	if (result == COUNTER_ABSENT)
		p->has_before = false;
	if (result != COUNTER_VALUE)
		return result;
	replaced = p->has_before && p->before.identity != now->identity;
	result = counter_value(p->def, p->has_before ? &p->before : NULL, now, value);
	p->before = *now;
	p->has_before = true;
	return replaced ? COUNTER_ABSENT : result;
}

static int proc_run(struct source *source, struct err *err)
{
	static const struct counter_poll_ops ops = {.begin = begin, .read = read_one};
	struct proc_source *s = (struct proc_source *)source;

	(void)err;
	counter_poll_run(s->poll, &ops, s);
	queue_finish(s->queue);
	return 0;
}

static void proc_stop(struct source *source)
{
	counter_poll_stop(((struct proc_source *)source)->poll);
}

static void proc_status(struct source *source, struct source_status *out)
{
	struct proc_source *s = (struct proc_source *)source;

	memset(out, 0, sizeof(*out));
	out->events = counter_poll_events(s->poll);
	out->lost = queue_lost(s->queue);
}

const struct source_ops proc_source = {
	.name = "counters",
	.summary = "performance counters from /proc, under their Windows names",
	.check = proc_check,
	.list = proc_list,
	.probe = NULL,
	.open = proc_open,
	.run = proc_run,
	.stop = proc_stop,
	.status = proc_status,
	.close = proc_close,
};
