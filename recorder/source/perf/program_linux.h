/*
 * A program of the kernel (BPF) that runs at each CPU sample, where the kernel lets us load one. It
 * does three things:
 *
 * Of `recorder run`, it drops the samples of processes that are known to be others' before anything
 * is copied: beside a busy machine these filled the rings, whose losses say of nobody whose they
 * were.
 *
 * It wakes a peeker (peekers_linux.h) at the samples of chosen processes only: it looks for the
 * process in a table, and writes a word to an event of its CPU, whose poll() returns then. That
 * costs some 20 us, the program 0.2. Without it the sampler's own ring must wake at each sample
 * (perf_ask.peeked).
 *
 * Of a thread whose stack's end is known it copies what is below that, up to PERF_SHORT_MAX_BYTES,
 * in the place of a copy of fixed size, which the kernel reserves whole: 1 to 10 KB for 32 KB, and
 * complete up to twice that depth. A sample of a small stack costs the kernel half of what it did.
 * Where the program cannot read all of it, the sample is made as without it.
 *
 * A sample by NMI that hits a tracing program on its CPU is not made at all: the kernel runs one
 * at a time there (bpf_overflow_handler(), kernel/events/core.c). Such samples are unexplained.
 *
 * Threads: the source's. A wake may be closed, and waited for, by any.
 */
#pragma once

#include "base/err.h"
#include "source/ring/perf_ring_linux.h"

#define PERF_WAKES_PROCESSES_MAX 1024u
#define PERF_ENDS_MAX 16384u                 /* threads; of more, the kernel forgets the oldest */

#define PERF_LEFT_OUT_MAX 16384u             /* processes; the same */

struct perf_program;

struct perf_wake {
	int fd;                              /* poll(): POLLIN after a sample; -1 = none */
	void *map;
};

/*
 * leaves_out   whether perf_program_leave_out() will be called
 * errors       ERR_ACCESS, ERR_UNSUPPORTED: this user may not, or the kernel has none
 */
int perf_program_new(bool leaves_out, struct perf_program **out, struct err *err);
void perf_program_free(struct perf_program *p);      /* NULL allowed */

/*
 * Run at the samples of this ring, which has just been opened. What the program copies goes to that
 * ring, once it is used.
 * returns  0; an errno: it copies nothing, or does not run at all
 */
int perf_program_attach(const struct perf_program *p, struct perf_ring *sampler,
			const struct perf_ask *ask);
/* The ring's sampler begins, and is the only one of its CPU that runs. */
void perf_program_use(const struct perf_program *p, const struct perf_ring *sampler);

/* A thread's stack ends here: no walk to its root has read beyond. 0 = not known any more */
void perf_program_stack_end(const struct perf_program *p, uint32_t tid, uint64_t end);

/* Samples of this process are dropped from now on, or no more. p NULL: nothing happens */
void perf_program_leave_out(const struct perf_program *p, uint32_t pid, bool yes);

/* Samples of this process wake from now on. false: they do not */
bool perf_program_wake(const struct perf_program *p, uint32_t pid);
void perf_program_wake_no_more(const struct perf_program *p, uint32_t pid);

/* Of the ring's CPU, from the ring's samples. The program must be attached to it. */
int perf_wake_open(const struct perf_program *p, const struct perf_ring *sampler,
		   struct perf_wake *out, struct err *err);
void perf_wake_close(struct perf_wake *wake);
