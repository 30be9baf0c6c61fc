/*
 * The source of counters on Windows: one thread that reads each needed counter at its period.
 *
 * A value becomes EVENT_COUNTER with the name that the rule gave. Rates need two readings, so their
 * first event comes one period after the start: "no value yet" is not 0. An instance that is not
 * there is said at each period (EVENT_FLAG_ABSENT).
 */
#include "base/os.h"
#include "source/pdh_counter_windows.h"
#include "source/source.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATERMARK_NS (100 * NS_PER_MS)
#define PERIOD_DEFAULT_NS NS_PER_SEC
#define PERIOD_MIN_NS (100 * NS_PER_MS)      /* PDH takes milliseconds for a category */

struct polled {
	struct need_counter need;
	struct pdh_counter *counter;
	uint64_t next_ns;
};

struct pdh {
	struct source base;
	struct queue *queue;
	struct polled *polled;
	uint32_t npolled;
	struct os_mutex *lock;
	struct os_cond *wake;
	bool stopping;                       /* under lock */
	atomic_uint_fast64_t events;
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
	for (i = 0; i < s->npolled; i++)
		pdh_counter_close(s->polled[i].counter);
	os_cond_free(s->wake);
	os_mutex_free(s->lock);
	free(s->polled);
	free(s);
}

static int add(struct pdh *s, const struct need_counter *need, struct log *log, struct err *err)
{
	struct polled *p = &s->polled[s->npolled];
	int rc = pdh_counter_open(need->name, &p->counter, err);

	if (rc)
		return rc;
	s->npolled++;
	p->need = *need;
	if (!p->need.period_ns)
		p->need.period_ns = PERIOD_DEFAULT_NS;
	if (p->need.period_ns < PERIOD_MIN_NS)
		p->need.period_ns = PERIOD_MIN_NS;
	if (pdh_counter_is_fallback(p->counter))
		log_line(log, LOG_WARN, "PDH fails for '%s'; its value comes from the system itself", need->name);
	return 0;
}

static int open_source(const struct source_config *cfg, const struct needs *needs, struct source **out,
		       struct err *err)
{
	struct pdh *s = calloc(1, sizeof(*s));
	uint32_t i;
	int rc = 0;

	if (s) {
		s->base.ops = &pdh_source;
		s->queue = cfg->queue;
		s->polled = calloc(needs->ncounters ? needs->ncounters : 1, sizeof(*s->polled));
		s->lock = os_mutex_new();
		s->wake = os_cond_new();
	}
	if (!s || !s->polled || !s->lock || !s->wake)
		rc = err_set(err, ERR_MEMORY, "no memory for the source of counters");
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

static void deliver(struct pdh *s, const struct polled *p, double value, bool absent)
{
	struct event e = {
		.time_ns = os_now_ns(),
		.kind = EVENT_COUNTER,
		.flags = (absent ? EVENT_FLAG_ABSENT : 0u) | (p->need.monitor ? EVENT_FLAG_MONITOR : 0u),
		.cpu = CPU_NONE,
		.stream = STREAM_EVENT,
		.name = p->need.name,
		.value = value,
		.stack = STACK_NONE,
	};

	if (queue_put(s->queue, &e))
		atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
}

/* Read what is due; returns when the next one will be. */
static uint64_t poll_due(struct pdh *s)
{
	uint64_t now_ns = os_now_ns(), next_ns = UINT64_MAX;
	enum pdh_result result;
	double value;
	uint32_t i;

	for (i = 0; i < s->npolled; i++) {
		struct polled *p = &s->polled[i];

		if (p->next_ns <= now_ns) {
			result = pdh_counter_read(p->counter, &value);
			if (result != PDH_READ_NOT_YET)
				deliver(s, p, value, result == PDH_READ_ABSENT);
			/* On the grid from the start; what was missed is not made up for. */
			p->next_ns += ((now_ns - p->next_ns) / p->need.period_ns + 1) * p->need.period_ns;
		}
		if (p->next_ns < next_ns)
			next_ns = p->next_ns;
	}
	return next_ns;
}

/* Wait for the next counter or watermark; false when the source is to end. */
static bool wait_until(struct pdh *s, uint64_t next_ns)
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

static int run(struct source *source, struct err *err)
{
	struct pdh *s = pdh_of(source);
	uint64_t start_ns = os_now_ns(), next_ns;
	uint32_t i;

	(void)err;
	/* On a machine that is too busy counters matter most, and this thread does little. */
	os_thread_priority(OS_PRIORITY_HIGH);
	for (i = 0; i < s->npolled; i++)
		s->polled[i].next_ns = start_ns;
	do {
		next_ns = poll_due(s);
		queue_watermark(s->queue, os_now_ns());
	} while (wait_until(s, next_ns));
	return 0;
}

static void stop(struct source *source)
{
	struct pdh *s = pdh_of(source);

	os_mutex_lock(s->lock);
	s->stopping = true;
	os_cond_broadcast(s->wake);
	os_mutex_unlock(s->lock);
}

static void status(struct source *source, struct source_status *out)
{
	struct pdh *s = pdh_of(source);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->events, memory_order_relaxed);
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
