/*
 * Polling counters: what the sources of counters of both hosts share. Each counter is read at its
 * own period, on a grid from the start: a reading that was missed is not made up for. A value
 * becomes EVENT_COUNTER with the name that the rule gave; between readings the queue's producer
 * rests (model/queue.h).
 *
 * How a counter is read is the source's business. The thread of counter_poll_run() owns it until
 * that returns; counter_poll_stop() and _events() are for any thread.
 */
#pragma once

#include "model/needs.h"
#include "model/queue.h"

enum counter_result {
	COUNTER_VALUE,
	COUNTER_NOT_YET, /* needs a reading before, or time between them; nothing is told */
	/* the instance is not there, or the system does not tell */
	COUNTER_ABSENT,
};

struct counter_poll;

/* What a source gives; ctx is its own. */
struct counter_poll_ops {
	/* Before the first reading of a round in which some are due; NULL = nothing to do. */
	void (*begin)(void *ctx);
	/* Counter i, as added; *value is 0 before, and counts with COUNTER_VALUE only. */
	enum counter_result (*read)(void *ctx, uint32_t i, double *value);
};

/* max: how many will be added. period_min_ns: more often none is read. queue: borrowed. */
int counter_poll_new(struct queue *queue, uint32_t max, uint64_t period_min_ns,
		     struct counter_poll **out, struct err *err);
void counter_poll_free(struct counter_poll *p);              /* NULL allowed */
/* The next one, 0, 1, 2...; a period of 0 is 1 s. */
void counter_poll_add(struct counter_poll *p, const struct need_counter *need);
/* Until counter_poll_stop(). */
void counter_poll_run(struct counter_poll *p, const struct counter_poll_ops *ops, void *ctx);
void counter_poll_stop(struct counter_poll *p);
uint64_t counter_poll_events(const struct counter_poll *p);  /* that went into the queue */

/*
 * One round, for tests: read what is due at now_ns; returns when the next one will be. The first
 * call's time is where the grids begin.
 */
uint64_t counter_poll_due(struct counter_poll *p, const struct counter_poll_ops *ops, void *ctx,
			  uint64_t now_ns);
