/*
 * What symbol.c and worker.c share: the state of the workers and what they are asked. One works at
 * a time; the others hang, or end. In this folder only.
 */
#pragma once

#include "base/os.h"
#include "symbol/cache.h"
#include "symbol/sandbox.h"
#include "symbol/symbol.h"

enum { WORKERS_MAX = 5 };              /* those that hang, and the one that works */
#define PUT_OFF_NS (10 * NS_PER_MS)

enum request_kind {
	REQUEST_NONE,                  /* a turn that only skipped named frames: nothing to do */
	REQUEST_FRAME,                 /* name it */
	REQUEST_OBJECT,                /* open it; pid maps it */
	REQUEST_PROCESS,               /* read its command line and home */
};

/* The target is referenced while the request exists. 16 bytes: the queues hold many. */
struct request {
	union {
		struct frame *frame;
		struct object *object;
		struct process *process;
	} at;
	uint32_t kind, pid;
};

struct fifo {
	struct request *items;
	uint32_t first, count, max;
};

/* A waiting caller; it lives on the caller's stack, in the list only while it waits. */
struct waiter {
	struct frame *const *frames;
	uint32_t n, next;
	bool done;
	struct waiter *link;
};

/* Where a worker is: what it reads now, referenced. Both NULL = nothing that could hang. */
struct spot {
	struct object *object;
	struct process *process;
	uint64_t file_system;          /* the object's, 0 = not known */
	uint64_t since_ns;
};

enum worker_state {
	WORKER_AT_WORK,                /* one at most: symbols' `worker` */
	WORKER_HANGS,
	WORKER_ENDS,                   /* there is an older one again */
};

/* A frame whose name, the next of the worker's put_off_names, is not readable yet; referenced. */
struct put_off {
	struct frame *frame;
	uint64_t offset;               /* of its function */
};

/* A thread, and what it alone uses; `gate` and `at` follow what it reads. */
struct worker {
	struct symbols *symbols;
	unsigned number;               /* the lower, the older, and the more it has read already */
	struct symbol_env env;         /* its own sandbox; dbghelp: the oldest worker only */
	struct cache_gate gate;
	struct cache *cache;
	struct frame *naming;          /* the frame that it reads the name of */

	struct os_thread *thread;      /* this and the rest: under the lock */
	enum worker_state state;
	bool ended;                    /* the thread has done all but return */
	struct spot at;
	uint64_t progress;             /* at the last look, and how many have seen it unchanged */
	unsigned still;
	uint64_t failed;               /* of symbols' use.failed */
	bool is_awaited;               /* its priority is up, because somebody waits */
	bool was_raised;               /* raised by another thread: it must still raise itself */
	struct put_off put_off[SANDBOX_NAMES];           /* made readable together */
	uint32_t nput_off;
	uint64_t put_off_ns;           /* when the first of them was */
	struct buf put_off_names;

	enum symbols_news news;        /* to be told: of where it hung, from when to when */
	uint64_t hung_ns, back_ns;
	char hung_at[200];
};

struct symbols {
	struct frames *frames;
	struct symbol_env env;
	struct buf path;               /* env's */
	struct log *log;

	struct os_mutex *lock;         /* guards everything below */
	struct os_cond *work;          /* there is a request, or the end */
	struct os_cond *settled;       /* a waiter is done */
	struct fifo urgent;            /* objects and processes, which may end soon */
	struct fifo wanted;            /* frames */
	struct waiter *waiters;
	struct worker *workers[WORKERS_MAX];             /* NULL = a free place */
	struct worker *worker;         /* NULL: all hang, or there was no memory for another */
	unsigned nworkers;             /* that were ever started */
	uint64_t looked_ns;
	bool ending;
	unsigned waiting;              /* workers without anything to do */
	size_t cache_max_bytes;
	struct symbols_use use;        /* `queued` is computed */
	uint64_t ended_cpu_ns;         /* of sandboxes of workers that have ended */
};

/* ---- symbol.c ---- */

/*
 * Under the lock: the next request, by turns; REQUEST_NONE = not yet; false = there is none. With
 * names put off no waiter is done.
 */
bool request_next(struct symbols *s, unsigned *turn, bool put_off, struct request *out);
void request_handle(struct worker *w, const struct request *r);
/* symbol_env.take */
bool take_known(void *ctx, uint64_t start);
/* Under the lock: those names are due. */
bool put_off_is_due(const struct worker *w);
void name_put_off(struct worker *w);
/* Under the lock: another worker shall do it. */
void give_put_off_back(struct worker *w);
void request_release(const struct request *r);

/* ---- worker.c; all but worker_enter() and workers_end() under the lock ---- */

int worker_start(struct symbols *s, struct err *err);
/* It is about to read there. false: it should not, because another one hangs there. */
bool worker_enter(struct worker *w, struct spot to);
/* Once a second: free those that have ended, replace one that hangs. */
void workers_look(struct symbols *s, uint64_t now_ns);
/* Have the threads end; false = one hangs, or does not end in time. */
bool workers_end(struct symbols *s);
/* After workers_end(). */
void workers_free(struct symbols *s);
