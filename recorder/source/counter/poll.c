#include "source/counter/poll.h"

#include "base/os.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LAG_NS NS_PER_MS            /* a value's time is later than the end of the preceding wait */
#define PERIOD_DEFAULT_NS NS_PER_SEC

struct polled {
	struct need_counter need;
	uint64_t next_ns;
};

struct counter_poll {
	struct queue *queue;
	uint64_t period_min_ns;
	struct polled *polled;
	uint32_t npolled, max;
	bool begun;                          /* the start of the grids is set */
	struct os_mutex *lock;
	struct os_cond *wake;
	bool stopping;                       /* under lock */
	atomic_uint_fast64_t events;
};

int counter_poll_new(struct queue *queue, uint32_t max, uint64_t period_min_ns,
		     struct counter_poll **out, struct err *err)
{
	struct counter_poll *p = calloc(1, sizeof(*p));

	if (p) {
		p->queue = queue;
		p->period_min_ns = period_min_ns;
		p->max = max;
		p->polled = calloc(max ? max : 1, sizeof(*p->polled));
		p->lock = os_mutex_new();
		p->wake = os_cond_new();
	}
	if (!p || !p->polled || !p->lock || !p->wake) {
		counter_poll_free(p);
		return err_memory(err, "for the source of counters");
	}
	*out = p;
	return 0;
}

void counter_poll_free(struct counter_poll *p)
{
	if (!p)
		return;
	os_cond_free(p->wake);
	os_mutex_free(p->lock);
	free(p->polled);
	free(p);
}

void counter_poll_add(struct counter_poll *p, const struct need_counter *need)
{
	struct polled *c = &p->polled[p->npolled];

	assert(p->npolled < p->max);
	p->npolled++;
	c->need = *need;
	if (!c->need.period_ns)
		c->need.period_ns = PERIOD_DEFAULT_NS;
	if (c->need.period_ns < p->period_min_ns)
		c->need.period_ns = p->period_min_ns;
}

static void deliver(struct counter_poll *p, const struct polled *c, double value, bool absent)
{
	struct event e = {
		.time_ns = os_now_ns(),
		.kind = EVENT_COUNTER,
		.flags = (absent ? EVENT_FLAG_ABSENT : 0u) |
			 (c->need.monitor ? EVENT_FLAG_MONITOR : 0u),
		.cpu = CPU_NONE,
		.stream = STREAM_EVENT,
		.name = c->need.name,
		.value = value,
		.stack = STACK_NONE,
	};

	if (queue_put(p->queue, &e))
		atomic_fetch_add_explicit(&p->events, 1, memory_order_relaxed);
}

uint64_t counter_poll_due(struct counter_poll *p, const struct counter_poll_ops *ops, void *ctx,
			  uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;
	enum counter_result result;
	bool round_begun = false;
	double value;
	uint32_t i;

	for (i = 0; i < p->npolled; i++) {
		struct polled *c = &p->polled[i];

		if (!p->begun)
			c->next_ns = now_ns;
		if (c->next_ns <= now_ns) {
			if (!round_begun && ops->begin)
				ops->begin(ctx);
			round_begun = true;
			value = 0;
			result = ops->read(ctx, i, &value);
			if (result != COUNTER_NOT_YET)
				deliver(p, c, value, result == COUNTER_ABSENT);
			c->next_ns +=
				((now_ns - c->next_ns) / c->need.period_ns + 1) * c->need.period_ns;
		}
		if (c->next_ns < next_ns)
			next_ns = c->next_ns;
	}
	p->begun = true;
	return next_ns;
}

/* Wait for the next counter; false when the source must end. */
static bool wait_until(struct counter_poll *p, uint64_t next_ns)
{
	uint64_t now_ns = os_now_ns();
	bool stopping;

	os_mutex_lock(p->lock);
	if (!p->stopping && next_ns > now_ns)
		os_cond_wait(p->wake, p->lock,
			     next_ns < UINT64_MAX ? next_ns - now_ns : UINT64_MAX);
	stopping = p->stopping;
	os_mutex_unlock(p->lock);
	return !stopping;
}

void counter_poll_run(struct counter_poll *p, const struct counter_poll_ops *ops, void *ctx)
{
	uint64_t next_ns;

	/* On an overloaded machine counters matter most, and this thread does little. */
	os_thread_priority(OS_PRIORITY_HIGH);
	do {
		queue_resume(p->queue, os_now_ns());
		next_ns = counter_poll_due(p, ops, ctx, os_now_ns());
		queue_rest(p->queue, LAG_NS);
	} while (wait_until(p, next_ns));
}

void counter_poll_stop(struct counter_poll *p)
{
	os_mutex_lock(p->lock);
	p->stopping = true;
	os_cond_broadcast(p->wake);
	os_mutex_unlock(p->lock);
}

uint64_t counter_poll_events(const struct counter_poll *p)
{
	return atomic_load_explicit(&p->events, memory_order_relaxed);
}
