/*
 * The queue in which exits wait until the process is known.
 *
 * The kernel reports only pids. The source of samples learns start, exec and name of the process
 * from records of the same time, but a little later, and forgets them a second after the exit. So
 * every exit is looked up after EXIT_HOLD_NS, at any place in the queue, and keeps the result.
 * Exits leave in time order; an unknown one delays those behind it.
 *
 * One thread, that of the source. Portable.
 */
#pragma once

#include "base/os.h"
#include "model/process.h"
#include "source/process/exit_record.h"

#define EXIT_HOLD_NS (180 * NS_PER_MS)        /* the merge waits 250 ms for a source */
#define EXIT_HOLD_UNKNOWN_NS NS_PER_SEC       /* more: better late than without a name */
#define EXIT_QUEUE_MAX 8192u

struct queued_exit {
	struct exit_record record;
	uint64_t start_ns;                   /* of its process; 0 = unknown */
	uint32_t exec;
	char name[PROCESS_NAME_MAX + 1];     /* "" = unknown so far */
};

/* A ring of EXIT_QUEUE_MAX, in time order; starts empty. */
struct exit_queue {
	struct processes *processes;         /* borrowed */
	struct queued_exit *all;
	uint32_t first, count;
};

int exit_queue_init(struct exit_queue *q, struct processes *processes, struct err *err);
void exit_queue_free(struct exit_queue *q);

/* Insert by time, as CPUs report out of order. Requires room: count < EXIT_QUEUE_MAX. */
void exit_queue_put(struct exit_queue *q, const struct queued_exit *p);

/* Look up the processes of exits that were held long enough and have no name yet. */
void exit_queue_look(struct exit_queue *q, uint64_t now_ns);

/* Take the oldest exit out, if it may leave; at UINT64_MAX it always may. */
bool exit_queue_take(struct exit_queue *q, uint64_t now_ns, struct queued_exit *out);

/* The oldest one; NULL = the queue is empty. Valid until the next call. */
const struct queued_exit *exit_queue_first(const struct exit_queue *q);
