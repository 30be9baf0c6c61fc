#include "source/counter/poll.h"

#include "source/counter_due.h"

#include "base/os.h"

#include <assert.h>
#include <stdlib.h>

#define LAG_NS NS_PER_MS            /* a value's time is later than the end of the preceding wait */

int counter_poll_open(struct counter_poll *p, const struct counter_poll_ops *ops,
		      struct queue *queue, uint32_t max, struct err *err)
{
	p->ops = ops;
	p->queue = queue;
	p->max = max;
	p->polled = calloc(max + 1, sizeof(*p->polled));
	p->lock = os_mutex_new();
	p->wake = os_cond_new();
	return p->polled && p->lock && p->wake ? 0 : err_memory(err, "for the source of counters");
}

void counter_poll_close(struct counter_poll *p)
{
	os_cond_free(p->wake);
	os_mutex_free(p->lock);
	free(p->polled);
}

void counter_poll_add(struct counter_poll *p, const struct need_counter *need)
{
	struct counter_polled *c = &p->polled[p->npolled];

	assert(p->npolled < p->max);
	p->npolled++;
	c->need = counter_need(need);
	if (c->need.period_ns < p->ops->period_min_ns)
		c->need.period_ns = p->ops->period_min_ns;
}

static void put_value(struct counter_poll *p, const struct counter_polled *c, double value,
		    bool absent)
{
	struct event e = counter_event(&c->need, os_now_ns());

	e.flags |= absent ? EVENT_FLAG_ABSENT : 0u;
	e.value = value;
	if (queue_put(p->queue, &e))
		atomic_fetch_add_explicit(&p->events, 1, memory_order_relaxed);
}

uint64_t counter_poll_due(struct counter_poll *p, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;
	enum counter_result result;
	bool round_begun = false;
	double value;
	uint32_t i;

	for (i = 0; i < p->npolled; i++) {
		struct counter_polled *c = &p->polled[i];

		if (!p->begun)
			c->next_ns = now_ns;
		if (counter_due(&c->next_ns, c->need.period_ns, now_ns)) {
			if (!round_begun && p->ops->begin)
				p->ops->begin(p);
			round_begun = true;
			value = 0;
			result = p->ops->read(p, i, &value);
			if (result != COUNTER_NOT_YET)
				put_value(p, c, value, result == COUNTER_ABSENT);
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

int counter_poll_run(struct source *source, struct err *err)
{
	struct counter_poll *p = (struct counter_poll *)source;
	uint64_t next_ns;

	(void)err;
	/* On an overloaded machine counters matter most, and this thread does little. */
	os_thread_priority(OS_PRIORITY_HIGH);
	do {
		queue_resume(p->queue, os_now_ns());
		next_ns = counter_poll_due(p, os_now_ns());
		queue_rest(p->queue, LAG_NS);
	} while (wait_until(p, next_ns));
	queue_finish(p->queue);
	return 0;
}

void counter_poll_stop(struct source *source)
{
	struct counter_poll *p = (struct counter_poll *)source;

	os_mutex_lock(p->lock);
	p->stopping = true;
	os_cond_broadcast(p->wake);
	os_mutex_unlock(p->lock);
}

void counter_poll_status(struct source *source, struct source_status *out)
{
	struct counter_poll *p = (struct counter_poll *)source;

	*out = (struct source_status){
		.events = atomic_load_explicit(&p->events, memory_order_relaxed),
		.lost = queue_lost(p->queue),
	};
}
