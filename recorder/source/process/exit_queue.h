/*
 * Endings that wait until it is known whose they are. The kernel tells pids; the source of samples reads the start,
 * the exec and so the name of the process from records of the same time, a little later, and forgets it a second
 * after its end. So each is looked up once it has been held for EXIT_HOLD_NS, wherever it stands in the queue, and
 * what was found stays with it: they leave in time order, and one that nobody knows holds up those behind it.
 *
 * Threads: that of the source of endings. Portable.
 */
#ifndef SOURCE_EXIT_QUEUE_H
#define SOURCE_EXIT_QUEUE_H

#include "base/os.h"
#include "model/process.h"
#include "source/process/exit_record.h"

#define EXIT_HOLD_NS (180 * NS_PER_MS)        /* the merge waits 250 ms for a source */
#define EXIT_HOLD_UNKNOWN_NS NS_PER_SEC       /* then: late with a name is better than in time without one */
#define EXIT_QUEUE_MAX 8192u

struct queued_exit {
	struct exit_record record;
	uint64_t start_ns;                   /* of its process; 0 = not known */
	uint32_t exec;
	char name[PROCESS_NAME_MAX + 1];     /* empty = nobody knows it (yet) */
};

/* A ring of EXIT_QUEUE_MAX, in time order; starts empty. */
struct exit_queue {
	struct processes *processes;         /* borrowed */
	struct queued_exit *all;
	uint32_t first, count;
};

int exit_queue_init(struct exit_queue *q, struct processes *processes, struct err *err);
void exit_queue_free(struct exit_queue *q);

/* Only while there is room: count < EXIT_QUEUE_MAX. CPUs tell at about the same time, so it may not be the last. */
void exit_queue_put(struct exit_queue *q, const struct queued_exit *p);

/* Look up those that have been held for long enough and have no name yet. */
void exit_queue_look(struct exit_queue *q, uint64_t now_ns);

/* The oldest, when it may go; NULL = none is due. Valid until the next call. */
const struct queued_exit *exit_queue_due(struct exit_queue *q, uint64_t now_ns);
const struct queued_exit *exit_queue_first(const struct exit_queue *q);
void exit_queue_drop_first(struct exit_queue *q);

#endif
