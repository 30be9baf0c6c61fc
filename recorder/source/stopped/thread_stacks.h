/*
 * Where the threads of a process stand now, without privileges or a trace of the system: each thread in turn
 * is stopped for as long as its stack takes to copy, and its calls are found in the copy afterwards.
 *
 * Windows (x64) only; on Linux thread_stacks_open() says what to use instead. One thread calls all of it, and
 * the frames may be interned and named by the usual means (model/frame.h, symbol/symbol.h).
 */
#ifndef SOURCE_THREAD_STACKS_H
#define SOURCE_THREAD_STACKS_H

#include "model/event.h"
#include "model/frame.h"

struct thread_stacks;

/* Borrowed for the call. */
struct thread_stack {
	uint32_t tid;
	const char *name;                    /* that the program gave the thread; "" */
	uint64_t time_ns;
	uint64_t suspended_ns;               /* how long it was stopped */
	uint64_t cpu_ns;                     /* used since the thread's last stack; 0 at the first one */
	uint64_t waited_ns;                  /* other time since this was last told, or the first stack; else 0 */
	enum stack_quality quality;          /* complete; fp: through generated code by frame pointers; ... */
	const struct frame_ref *frames;      /* leaf first; objects stay until thread_stacks_close() */
	const uint64_t *addresses;           /* of each: where it stands, or its return address */
	uint32_t nframes;
};

typedef void thread_stack_fn(void *ctx, const struct thread_stack *stack);

struct thread_stacks_use {
	uint32_t threads;                    /* of the process, in the last call */
	uint32_t refused;                    /* of these: not allowed to be stopped or read */
	uint64_t longest_ns;                 /* for which a thread was stopped, ever */
	uint64_t not_resumed;                /* threads that could not be resumed, having ended meanwhile */
};

/*
 * Other processes of this name, with or without ".exe", in any case of letters, or the one with this number.
 *
 * returns  how many were put into pids, at most max; 0: there is none
 */
uint32_t thread_stacks_find(const char *name, uint32_t *pids, uint32_t max);

/*
 * returns  0; ERR_NOT_FOUND no such process; ERR_ACCESS it is somebody else's; ERR_UNSUPPORTED a 32-bit
 *          program, or Linux; ERR_USAGE this very process; ERR_MEMORY
 */
int thread_stacks_open(uint32_t pid, struct frames *frames, struct thread_stacks **out, struct err *err);
void thread_stacks_close(struct thread_stacks *s);           /* NULL allowed */

/* Which threads and images there are now; thread_stacks_take() knows no others. ERR_NOT_FOUND: it has ended. */
int thread_stacks_refresh(struct thread_stacks *s, struct err *err);

/*
 * One stack of every thread that lives, by thread id.
 *
 * idle_ns  threads that have not used CPU time since their last stack are left alone until it is so old; then
 *          it is told how long they waited. 0 = all have their stack taken, and nothing is told of waits
 * returns  0; ERR_NOT_FOUND, when the process has ended
 */
int thread_stacks_take(struct thread_stacks *s, uint64_t idle_ns, thread_stack_fn *tell, void *ctx, struct err *err);

void thread_stacks_use(const struct thread_stacks *s, struct thread_stacks_use *out);

/* The path of its executable, "" when it is not known. */
const char *thread_stacks_path(const struct thread_stacks *s);

#endif
