/*
 * Naming frames: the symbol worker and the readers that it asks.
 *
 * The merge thread hands over every new frame; the worker opens the code object while its process
 * still lives, builds a sorted index of its symbols once, and names the frame. Readers are asked in
 * turn (symbol_readers[]). Parsing is portable and bounds-checked; only obtaining bytes is host code.
 * The worker never holds a lock of the ring; the merge thread never waits for the worker: a full
 * queue drops the request, which symbols_settle() makes good for frames that an incident needs.
 */
#ifndef SYMBOL_SYMBOL_H
#define SYMBOL_SYMBOL_H

#include "base/log.h"
#include "model/frame.h"
#include "model/process.h"

#define SYMBOL_QUEUE_MAX 65536u
#define SYMBOL_CACHE_BYTES ((size_t)64 << 20)

struct symbols;

/* Starts the worker thread at low priority. */
int symbols_open(struct frames *frames, struct processes *processes, struct log *log,
		 struct symbols **out, struct err *err);
void symbols_close(struct symbols *s);               /* ends the thread; NULL allowed */

/* Merge thread: name this frame soon. Takes a reference of its own while queued; never blocks. */
void symbols_want(struct symbols *s, struct frame *frame);
/* Merge thread: this object was just mapped by pid: open it before the process ends. */
void symbols_prefetch(struct symbols *s, struct object *object, uint32_t pid);
/* Merge thread: read the process's command line before it ends. */
void symbols_process(struct symbols *s, struct process *process);

/*
 * Name these frames now, on the caller's thread, or wait until the worker has (at most timeout_ns).
 * The caller holds references. Returns how many still have no name.
 */
uint32_t symbols_settle(struct symbols *s, struct frame *const *frames, uint32_t n,
			uint64_t timeout_ns);

struct symbols_use {
	uint32_t queued, objects_open;
	size_t cache_bytes;
	uint64_t dropped, named, unnamed;
};
void symbols_use(struct symbols *s, struct symbols_use *out);

#endif
