/*
 * Polling of counters, the base of the counter sources of both hosts. Each counter is read at its
 * own period, on a grid from the start; a missed reading is not made up for. A value becomes
 * EVENT_COUNTER with the name that the rule gave. A rate needs two readings, so its first event
 * comes one period after the start: "no value yet" is not 0. A missing instance is reported at each
 * period (EVENT_FLAG_ABSENT). Between readings the producer of the queue rests (model/queue.h).
 *
 * The source decides how a counter is read. The thread of counter_poll_run() owns the object until
 * that returns; counter_poll_stop() and counter_poll_status() are for any thread.
 */
#pragma once

#include "source/source.h"

#include <stdatomic.h>

enum counter_result {
	COUNTER_VALUE,
	COUNTER_NOT_YET,                     /* needs an earlier reading, or time since it */
	COUNTER_ABSENT,                      /* the instance or its value does not exist */
};

struct counter_poll;

/* What a source provides. */
struct counter_poll_ops {
	/* Called before the first reading of a round; NULL = nothing to do. */
	void (*begin)(struct counter_poll *p);
	/* Read counter i, in the order added; *value is 0 before; only COUNTER_VALUE uses it. */
	enum counter_result (*read)(struct counter_poll *p, uint32_t i, double *value);
	uint64_t period_min_ns;              /* the shortest period */
};

struct counter_polled {
	struct need_counter need;
	uint64_t next_ns;
};

struct counter_poll {
	struct source base;                  /* the first member, as this is the source's */
	const struct counter_poll_ops *ops;
	struct queue *queue;                 /* borrowed */
	struct counter_polled *polled;
	uint32_t npolled, max;
	bool begun;                          /* the start of the grids is set */
	struct os_mutex *lock;
	struct os_cond *wake;
	bool stopping;                       /* under lock */
	atomic_uint_fast64_t events;
};

/* Open p, which is zeroed. max: the number of counters to be added. */
int counter_poll_open(struct counter_poll *p, const struct counter_poll_ops *ops,
		      struct queue *queue, uint32_t max, struct err *err);
void counter_poll_close(struct counter_poll *p);             /* also after an error */
/* Add the next counter (0, 1, 2...); a period of 0 means 1 s. */
void counter_poll_add(struct counter_poll *p, const struct need_counter *need);

/* For the slots of source_ops. */
int counter_poll_run(struct source *source, struct err *err);
void counter_poll_stop(struct source *source);
void counter_poll_status(struct source *source, struct source_status *out);

/*
 * One round, for tests: read the counters due at now_ns. returns  when the next one is due. The
 * grids begin at the time of the first call.
 */
uint64_t counter_poll_due(struct counter_poll *p, uint64_t now_ns);
