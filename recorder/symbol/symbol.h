/*
 * Naming frames: the symbol worker and the readers that it asks.
 *
 * The merge thread hands over every new frame; the worker opens the code object while its process
 * still lives, builds a sorted index of its symbols once, and names the frame. Readers are asked in
 * turn (symbol_readers[], reader.h). Parsing is portable and bounds-checked; only obtaining bytes
 * is host code (symbol_open.h).
 *
 * Only the worker touches readers and their tables; everybody else leaves requests under one short
 * lock. So nobody ever waits for a disk, except in symbols_settle(), which has a time limit. A full
 * queue drops the request; symbols_settle() makes up for that with an incident's frames.
 *
 * A worker that hangs, in a file system whose server is gone or at a process that the kernel holds,
 * is left behind with its tables, and a new one goes on without asking there; after the fifth,
 * nobody gets names. What is there gets them, if somebody asks again, once the one that hung is
 * back.
 */
#pragma once

#include "base/log.h"
#include "model/frame.h"
#include "model/process.h"
#include "symbol/reader.h"

#define SYMBOL_QUEUE_MAX 65536u                 /* frames waiting for a name */
#define SYMBOL_URGENT_MAX 8192u                 /* new objects and processes waiting */
#define SYMBOL_CACHE_BYTES ((size_t)64 << 20)   /* of indexes; the least recently used are freed */
#define SYMBOL_OBJECTS_MAX 4096u                /* remembered, including unreadable ones */
#define SYMBOL_FILES_MAX 64u                    /* held open; see symbol.c */

struct symbols;

/*
 * Start the worker thread at low priority. env: its disk and path are borrowed until
 * symbols_close(); the worker adds _NT_SYMBOL_PATH to the path and has its own dbghelp and sandbox.
 */
int symbols_open(struct frames *frames, const struct symbol_env *env, struct log *log,
		 struct symbols **out, struct err *err);
/*
 * End the thread, dropping queued requests; NULL allowed. No other call may be in progress.
 * returns  false when it hangs in a file or process for over 5 s, or another one still does: then
 *          all that it was given must stay
 */
bool symbols_close(struct symbols *s);

/* Merge thread: begin with what was asked; a turn's requests share a wake-up. */
void symbols_begin(struct symbols *s);
/* Merge thread: name this frame soon. Takes a reference of its own while queued; never blocks. */
void symbols_want(struct symbols *s, struct frame *frame);
/* Merge thread: pid has just mapped this object: open it before the process ends. */
void symbols_prefetch(struct symbols *s, struct object *object, uint32_t pid);
/* Merge thread: read the process's command line and home (model/home.h) before it ends. */
void symbols_process(struct symbols *s, struct process *process);

/*
 * Have the worker name these frames before any others, and wait for at most timeout_ns; several
 * threads may do so. The caller holds references. Frames without a name are tried again. Returns
 * how many still have no name.
 */
uint32_t symbols_settle(struct symbols *s, struct frame *const *frames, uint32_t n,
			uint64_t timeout_ns);

/*
 * Any thread, about once a second: replace a worker that has not moved since the look before the
 * last one. Never waits for a disk; symbols_settle() does it too while it waits.
 *
 * returns  what is new and has not been told yet, one at a time, as a sentence in out
 */
enum symbols_news { SYMBOLS_NO_NEWS, SYMBOLS_HANG, SYMBOLS_ANSWER };
#define SYMBOLS_NEWS_BYTES 500u
enum symbols_news symbols_look(struct symbols *s, uint64_t now_ns, char *out, size_t n);
/* Any thread: does one hang? The same sentence about it, as of now. */
bool symbols_hang(struct symbols *s, uint64_t now_ns, char *out, size_t n);

/* Any thread: change the ceiling of the indexes from SYMBOL_CACHE_BYTES; the worker obeys soon. */
void symbols_set_max(struct symbols *s, size_t cache_bytes);

struct symbols_use {
	uint32_t queued, objects_open;
	uint32_t objects_failed;        /* remembered as unreadable */
	uint32_t files_open;
	size_t cache_bytes, cache_max_bytes;
	uint64_t dropped;               /* requests that met a full queue */
	uint64_t named;                 /* frames that got a name */
	uint64_t unnamed;               /* frames that got none at the first attempt */
	uint64_t failed;                /* failed attempts to open an object */
};
void symbols_use(struct symbols *s, struct symbols_use *out);
/* Any thread: what the workers' own processes (sandbox.h) take: CPU time so far, memory now. */
void symbols_sandbox_usage(struct symbols *s, uint64_t *cpu_ns, uint64_t *rss_bytes);
