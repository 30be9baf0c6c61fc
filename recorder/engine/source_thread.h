/*
 * A source on a thread of its own, its events in a queue: for those who look at events without an engine.
 *
 * One thread opens, reads the queue and closes. It is open by itself first, so that all are open before one runs.
 */
#ifndef SOURCE_THREAD_H
#define SOURCE_THREAD_H

#include "base/os.h"
#include "source/source.h"

#include <stdatomic.h>

struct source_thread {
	const struct source_ops *ops;
	struct source *source;
	struct queue *queue;
	struct os_thread *thread;
	int rc;                              /* of run(), and its sentence: good once it has ended */
	struct err err;
	_Atomic bool ended;                  /* what it has put is in the queue */
};

/* cfg: its queue is the one that is made here. After a failure there is nothing to close. */
int source_thread_open(struct source_thread *t, const struct source_ops *ops, const struct source_config *cfg,
		       const struct needs *needs, struct err *err);
int source_thread_start(struct source_thread *t, struct err *err);
/* Stop it and wait for its end; what is in the queue stays. May be called again, and of one that was not started. */
void source_thread_end(struct source_thread *t);
/* It has been ended. {0} allowed. */
void source_thread_close(struct source_thread *t);

#endif
