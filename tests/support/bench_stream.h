/*
 * A made stream of samples, the same on every host.
 *
 * Threads in processes of five, each process with a program of its own, all with one libc and one
 * kernel. A stack shares a root part of random length with an earlier one of its process, as call
 * trees do. Threads and stacks are drawn by Zipf's law (exponent 1); half of the samples see the
 * thread that their CPU ran before. Two CPUs, 99 Hz each.
 */
#ifndef TESTS_SUPPORT_BENCH_STREAM_H
#define TESTS_SUPPORT_BENCH_STREAM_H

#include "base/os.h"
#include "model/ring.h"

enum { BENCH_CPUS = 2, BENCH_FREQ_HZ = 99, BENCH_DEPTH_MAX = 30, BENCH_THREADS_PER_PROCESS = 5 };

#define BENCH_PERIOD_NS (NS_PER_SEC / BENCH_FREQ_HZ)

struct settings {
	bool json, keep;
	const char *dir;
	uint32_t samples, stacks, frames, threads, ring_mb;
};

struct bench_stack {
	uint32_t n;
	struct frame_ref leaf_first[BENCH_DEPTH_MAX];
};

struct world {
	const struct settings *settings;
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder;
	struct thread **threads;
	struct object *kernel, *libc;
	struct bench_stack *stacks; /* those of process 0, then those of process 1, ... */
	uint32_t nprocesses, stacks_each, frames_each;
	uint16_t *thread_of; /* per sample; after the last it starts over */
	uint32_t *stack_of;
	uint64_t next;		   /* number of the next sample */
	struct segment **segments; /* of the first settings->samples samples */
	uint32_t nsegments;
};

/* 0 or ERR_MEMORY; free it in any case. settings are borrowed for its life. */
int world_make(struct world *w, const struct settings *s, struct err *err);
void world_free(struct world *w);

/* The number-th sample; after settings->samples they start over, later in time. */
void world_sample(const struct world *w, uint64_t number, struct event *e);

/* For segment_stack(); ctx is the world. What the symbol worker does, at once. */
void world_name_frame(void *ctx, struct frame *frame);

#endif
