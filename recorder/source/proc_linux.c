/*
 * The source of counters on Linux: one thread that reads each needed counter at its period.
 *
 * A value becomes EVENT_COUNTER with the name that the rule gave. Rates need two readings, so their
 * first event comes one period after the start: "no value yet" is not 0. An instance that is not
 * there is said at each period (EVENT_FLAG_ABSENT), and so is, once, that another process has taken
 * over the name: what the one was at must not count for the other.
 */

#include "base/os.h"
#include "source/gc_counters.h"
#include "source/proc_reader.h"
#include "source/source.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATERMARK_NS (100 * NS_PER_MS)
#define PERIOD_DEFAULT_NS NS_PER_SEC
#define PERIOD_MIN_NS (10 * NS_PER_MS)

struct polled {
	struct need_counter need;
	const struct counter_def *def;
	struct proc_instance *instance;
	struct counter_raw before;
	bool has_before;
	uint64_t next_ns;
};

struct proc_source {
	struct source base;
	struct queue *queue;
	struct proc_reader *reader;
	struct polled *polled;
	uint32_t npolled;
	struct os_mutex *lock;
	struct os_cond *wake;
	bool stopping;                       /* under lock */
	atomic_uint_fast64_t events;
};

extern const struct source_ops proc_source;
int proc_list(const char *pattern, bool json, struct out *out, struct err *err);

/* ---- opening --------------------------------------------------------------------------------- */

/* A rule on an unknown counter is a wrong rule. */
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
	os_cond_free(s->wake);
	os_mutex_free(s->lock);
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
	p->need = *need;
	if (!p->need.period_ns)
		p->need.period_ns = PERIOD_DEFAULT_NS;
	if (p->need.period_ns < PERIOD_MIN_NS)
		p->need.period_ns = PERIOD_MIN_NS;
	p->def = counter.def;
	p->instance = proc_reader_instance(s->reader, counter.category, counter.instance,
					   counter_fields(counter.def));
	if (!p->instance)
		return err_set(err, ERR_MEMORY, "no memory for the counter '%s'", need->name);
	s->npolled++;
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
		s->lock = os_mutex_new();
		s->wake = os_cond_new();
	}
	if (!s || !s->polled || !s->lock || !s->wake)
		rc = err_set(err, ERR_MEMORY, "no memory for the source of counters");
	else
		rc = proc_reader_open("/proc", true, &s->reader, err);
	/* Those of collections come from the sources that see these. */
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

static void deliver(struct proc_source *s, const struct polled *p, double value, bool absent)
{
	struct event e = {
		.time_ns = os_now_ns(),
		.kind = EVENT_COUNTER,
		.flags = (absent ? EVENT_FLAG_ABSENT : 0u) |
			 (p->need.monitor ? EVENT_FLAG_MONITOR : 0u),
		.cpu = CPU_NONE,
		.stream = STREAM_EVENT,
		.name = p->need.name,
		.value = value,
		.stack = STACK_NONE,
	};

	if (queue_put(s->queue, &e))
		atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
}

static void poll_one(struct proc_source *s, struct polled *p)
{
	const struct counter_raw *now;
	enum counter_result result = proc_instance_read(s->reader, p->instance, &now);
	bool replaced;
	double value = 0;

	if (result == COUNTER_NOT_YET)
		return;
	if (result == COUNTER_VALUE) {
		replaced = p->has_before && p->before.identity != now->identity;
		result = counter_value(p->def, p->has_before ? &p->before : NULL, now, &value);
		p->before = *now;
		p->has_before = true;
		if (replaced)
			result = COUNTER_ABSENT;
	} else {
		p->has_before = false;
	}
	if (result != COUNTER_NOT_YET)
		deliver(s, p, value, result == COUNTER_ABSENT);
}

/* Read what is due; returns when the next one will be. */
static uint64_t poll_due(struct proc_source *s)
{
	uint64_t now_ns = os_now_ns(), next_ns = UINT64_MAX, late;
	bool begun = false;
	uint32_t i;

	for (i = 0; i < s->npolled; i++) {
		struct polled *p = &s->polled[i];

		if (p->next_ns <= now_ns) {
			if (!begun)
				proc_reader_begin(s->reader);
			begun = true;
			poll_one(s, p);
			/* On the grid from the start; what was missed is not made up for. */
			late = now_ns - p->next_ns;
			p->next_ns += (late / p->need.period_ns + 1) * p->need.period_ns;
		}
		if (p->next_ns < next_ns)
			next_ns = p->next_ns;
	}
	return next_ns;
}

/* Wait for the next counter or watermark; false when the source is to end. */
static bool wait_until(struct proc_source *s, uint64_t next_ns)
{
	uint64_t now_ns = os_now_ns(), mark_ns = now_ns + WATERMARK_NS;
	bool stopping;

	if (next_ns > mark_ns)
		next_ns = mark_ns;
	os_mutex_lock(s->lock);
	if (!s->stopping && next_ns > now_ns)
		os_cond_wait(s->wake, s->lock, next_ns - now_ns);
	stopping = s->stopping;
	os_mutex_unlock(s->lock);
	return !stopping;
}

static int proc_run(struct source *source, struct err *err)
{
	struct proc_source *s = (struct proc_source *)source;
	uint64_t start_ns = os_now_ns();
	uint32_t i;

	(void)err;
	/* On a machine that is too busy counters matter most, and this thread does little. */
	os_thread_priority(OS_PRIORITY_HIGH);
	for (i = 0; i < s->npolled; i++)
		s->polled[i].next_ns = start_ns;
	for (;;) {
		uint64_t next_ns = poll_due(s);

		queue_watermark(s->queue, os_now_ns());
		if (!wait_until(s, next_ns))
			break;
	}
	queue_finish(s->queue);
	return 0;
}

static void proc_stop(struct source *source)
{
	struct proc_source *s = (struct proc_source *)source;

	os_mutex_lock(s->lock);
	s->stopping = true;
	os_cond_broadcast(s->wake);
	os_mutex_unlock(s->lock);
}

static void proc_status(struct source *source, struct source_status *out)
{
	struct proc_source *s = (struct proc_source *)source;

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->events, memory_order_relaxed);
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
