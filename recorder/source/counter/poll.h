/*
 * Polling of counters, shared by the counter sources of both hosts. Each counter is read at its own
 * period, on a grid from the start; a missed reading is not made up for. A value becomes
 * EVENT_COUNTER with the name that the rule gave. Between readings the producer of the queue rests
 * (model/queue.h).
 *
 * The source decides how a counter is read. The thread of counter_poll_run() owns the object until
 * that returns; counter_poll_stop() and counter_poll_events() are for any thread.
 */
#pragma once

#include "model/needs.h"
#include "model/queue.h"

enum counter_result {
	COUNTER_VALUE,
	COUNTER_NOT_YET,                     /* needs an earlier reading, or time since it */
	COUNTER_ABSENT,                      /* the instance or its value does not exist */
};

struct counter_poll;

/* What a source provides; ctx is its own. */
struct counter_poll_ops {
	/* Called before the first reading of a round; NULL = nothing to do. */
	void (*begin)(void *ctx);
	/* Read counter i, in the order added; *value is 0 before; only COUNTER_VALUE uses it. */
	enum counter_result (*read)(void *ctx, uint32_t i, double *value);
};

/* max: the number of counters to be added. period_min_ns: the shortest period. queue: borrowed. */
int counter_poll_new(struct queue *queue, uint32_t max, uint64_t period_min_ns,
		     struct counter_poll **out, struct err *err);
void counter_poll_free(struct counter_poll *p);              /* NULL allowed */
/* Add the next counter (0, 1, 2...); a period of 0 means 1 s. */
void counter_poll_add(struct counter_poll *p, const struct need_counter *need);
/* Run until counter_poll_stop(). */
void counter_poll_run(struct counter_poll *p, const struct counter_poll_ops *ops, void *ctx);
void counter_poll_stop(struct counter_poll *p);
uint64_t counter_poll_events(const struct counter_poll *p);  /* how many went into the queue */

/*
 * One round, for tests: read the counters due at now_ns. returns  when the next one is due. The
 * grids begin at the time of the first call.
 */
uint64_t counter_poll_due(struct counter_poll *p, const struct counter_poll_ops *ops, void *ctx,
			  uint64_t now_ns);
