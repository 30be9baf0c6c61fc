/*
 * Sources, each on a thread of its own, and the events that they deliver, oldest first.
 *
 * One thread opens the sources, starts them, takes their events and closes them. All of them are
 * open before the first one runs.
 */
#pragma once

#include "base/os.h"
#include "source/source.h"

#include <stdatomic.h>

#define FEED_SOURCES_MAX 16u

struct feed_source {
	const struct source_ops *ops;
	struct source *source;
	struct queue *queue;
	struct os_thread *thread;
	struct feed *feed;
	int rc;                              /* of run(), with err; valid when ended */
	struct err err;
	_Atomic bool ended;                  /* its last event is in the queue */
	bool left_behind;                    /* it did not end when it was told to */
	uint64_t started_ns;
	uint64_t stalled_since_ns;           /* 0 = it delivers */
};

struct feed {                                /* starts as {0}, or with on_end set; does not move */
	struct feed_source sources[FEED_SOURCES_MAX];
	uint32_t n;
	struct frames *frames;               /* feed_open_tables(); NULL = cfg has them */
	struct processes *processes;
	void (*on_end)(void *ctx, const struct feed_source *s);      /* on its thread; or NULL */
	void *ctx;
};

/* Give the sources tables of their own, so that no engine is needed. feed_close() frees them. */
int feed_open_tables(struct feed *f, struct err *err);
/*
 * What a source dropped before this time can be forgotten: no event that is still to come names it,
 * however far a source lags (a stopped process, a frozen cgroup). 10 s earlier than needed; 0 =
 * nothing yet. now_ns: the time of events.
 */
uint64_t feed_forgets_before(struct feed *f, uint64_t now_ns);
/* Forget it, in the tables of feed_open_tables(). */
void feed_sweep(struct feed *f, uint64_t now_ns);

/*
 * Open one more source, with a queue of its own in place of cfg's.
 *
 * returns  0; what its open() returned; ERR_LIMIT; ERR_MEMORY. What is open already stays open
 */
int feed_open(struct feed *f, const struct source_ops *ops, const struct source_config *cfg,
	      const struct needs *needs, struct err *err);
/* Open each source of a list that ends in NULL. */
int feed_open_all(struct feed *f, const struct source_ops *const *list,
		  const struct source_config *cfg, const struct needs *needs, struct err *err);
/* Start a thread for each source. After a failure stop and join those that run. */
int feed_start(struct feed *f, struct err *err);

/* The oldest event of all queues, borrowed until queue_pop(from->queue); NULL = all are empty. */
const struct event *feed_peek(struct feed *f, struct feed_source **from);
/* Hand waiting events to each(), until the queues are empty or it returns non-zero: returned. */
int feed_take(struct feed *f, int (*each)(void *ctx, const struct event *e), void *ctx);
/* An event is kept next: source_ops.settle. */
void feed_settle(struct feed *f, struct event *event);
/* symbol_witness.find() for a feed that is open: source_ops.name_late. */
bool feed_name_late(void *ctx, const struct object *object, uint64_t offset, struct symbol *out);

/* Whether every source has ended, its last event being in its queue, or was left behind. */
bool feed_ended(const struct feed *f);
/* The error of the first source that failed, or 0. */
int feed_failure(const struct feed *f, struct err *err);

/* Any thread: what a source says of itself; false: nothing. */
bool feed_status(const struct feed_source *s, struct source_status *out);
/* Any thread: what the processes of all sources take (source_ops.add_usage). */
void feed_add_usage(const struct feed *f, uint64_t *cpu_ns, uint64_t *rss_bytes);
/* When and where the events of a source were recorded; all zero: it does not say. */
void feed_origin(const struct feed_source *s, struct source_origin *out);
/* Any thread: sample at another rate from now on; see source_ops.set_level. */
void feed_set_level(struct feed *f, const struct source_level *level);
void feed_stop(struct feed *f);              /* any thread; run() of each returns soon */
void feed_join(struct feed *f);              /* those left behind are not waited for */
/* Whether one was left behind: then nothing that it may touch can be freed or closed. */
bool feed_hangs(const struct feed *f);
void feed_close(struct feed *f);             /* all are joined; {0} allowed */
