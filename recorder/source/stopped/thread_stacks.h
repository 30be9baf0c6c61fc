/*
 * Takes the stacks of a process's threads, without privileges and without tracing the system. Each
 * thread in turn is suspended while its stack is copied; the copy is unwound afterwards.
 *
 * One thread. Frames may be interned; thread_stacks_name() names those of managed programs, and
 * symbol/symbol.h the others.
 */
#pragma once

#include "model/event.h"
#include "model/frame.h"
#include "symbol/reader.h"

struct thread_stacks;

/* Borrowed for the call. */
struct thread_stack {
	uint32_t tid;
	const char *name;                    /* given by the program; "" = none */
	uint64_t time_ns;
	uint64_t suspended_ns;               /* how long the thread was suspended */
	uint64_t cpu_ns;                     /* used since its last stack; 0 for the first */
	uint64_t waited_ns;                  /* other time since last reported; else 0 */
	const char *wait;                    /* Linux: "waits in read of ...", or "runs"; or NULL */
	uint32_t waits_for;                  /* Linux: who holds the mutex it waits for; or 0 */
	const struct stack_copy *copy;       /* Linux: what was copied of it; else NULL */
	enum stack_quality quality;          /* QUALITY_FP: passes code without unwind tables */
	const struct frame_ref *frames;      /* leaf first; valid until thread_stacks_close() */
	const uint64_t *addresses;     /* of the frames: position or return address; 0 = unknown */
	uint32_t nframes;
};

typedef void thread_stack_fn(void *ctx, const struct thread_stack *stack);

struct thread_stacks_use {
	uint32_t threads;                    /* of the process, in the last call */
	uint32_t refused;                    /* of these: may not be suspended or read */
	uint32_t stuck;                      /* Linux: wait in the kernel and do not stop */
	uint32_t unseen;                     /* never to be stopped, and not seen otherwise */
	const char *unseen_why;              /* why those that run are not; "" = too short */
	uint64_t longest_ns;                 /* longest suspension ever */
	uint64_t not_resumed;                /* threads that ended while suspended */
};

/*
 * Find processes by name, with or without ".exe" and ignoring case, or by pid; not our own by name.
 * NULL: all but our own, and on Linux but the kernel's.
 *
 * returns  how many were put into pids, at most max; 0 = none
 */
uint32_t thread_stacks_find(const char *name, uint32_t *pids, uint32_t max);

/*
 * returns  0; ERR_NOT_FOUND no such process; ERR_ACCESS another user's process; ERR_USAGE this very
 *          process; ERR_LIMIT it does not answer; ERR_MEMORY
 */
int thread_stacks_open(uint32_t pid, struct frames *frames, struct thread_stacks **out,
		       struct err *err);
void thread_stacks_close(struct thread_stacks *s);           /* NULL allowed */

/*
 * From now on stop no thread (Linux). One that waits is copied as it stands, without the registers
 * that its code may have left a value in, and only if it has not run meanwhile; one that runs is
 * sampled by the kernel. ERR_UNSUPPORTED: Windows
 */
int thread_stacks_never_stop(struct thread_stacks *s, struct err *err);

/* Update the lists of threads and images, which thread_stacks_take() uses. ERR_NOT_FOUND: ended. */
int thread_stacks_refresh(struct thread_stacks *s, struct err *err);

/*
 * Take one stack of every live thread, by thread id.
 *
 * idle_ns  a thread that has not used CPU time is skipped until its last stack is so old; then its
 *          wait is reported. 0 = no thread is skipped, and no waits are reported
 * returns  0; ERR_NOT_FOUND when the process has ended
 */
int thread_stacks_take(struct thread_stacks *s, uint64_t idle_ns, thread_stack_fn *tell, void *ctx,
		       struct err *err);

/* The name of a managed frame. false: none, or symbol/symbol.h has it. */
bool thread_stacks_name(struct thread_stacks *s, const struct frame *frame, struct symbol *out);

void thread_stacks_use(const struct thread_stacks *s, struct thread_stacks_use *out);

/* The path of its executable; "" = unknown. */
const char *thread_stacks_path(const struct thread_stacks *s);
