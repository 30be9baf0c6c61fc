/*
 * A made stream of samples, the same on every host.
 *
 * Threads in processes of five, each process with a program of its own, all with one libc and one
 * kernel. A stack shares a root part of random length with an earlier one of its process, as call
 * trees do; from there on a frame mostly calls what it called before, at times one of six others.
 * Threads and stacks are drawn by Zipf's law (exponent 1); one sample in eight sees the thread that
 * its CPU ran before. Timers are up to 25 us late. Two CPUs, 99 Hz each.
 *
 * How diverse that is beside real recordings, by bench_density, which says what the words mean: the
 * programs of tests/bench/load.sh on two CPUs that did much else; two C++ compilers, javac, node,
 * python3 and a browser at once; the trace net.4.5.2.x64. --random is the stream of earlier
 * versions, with 20,000 stacks and frames and 200 threads: a function by chance at each new step,
 * half of the samples see the thread before, timers are punctual.
 *
 *	of 4,000 samples       load.sh   compilers   trace   this stream   --random
 *	  stacks                 2,674       3,014   1,641         2,055      1,723
 *	  threads                  340         352      71           363        189
 *	  nodes                 11,298      22,473   9,736        21,077     21,598
 *	  frames                 6,337      11,579   4,798         8,663      5,971
 *	thread not that before    87 %        86 %    10 %          84 %       48 %
 *	of the nodes
 *	  a sample                2.56        4.92    4.11          4.24       4.19
 *	  new frames              51 %        46 %    31 %          34 %       23 %
 *	  strange frames           9.8 %       9.0 %   6.8 %         21 %       67 %
 *	encoded bytes a sample    7.95        8.77   34.6           6.86       8.75
 *	  of them for events  some 2.2         1.7   29                0          0
 *
 * So --random is too diverse by seven times in one respect, that calls do not repeat, and not
 * enough in most others; it takes as many bytes as it should, for the wrong reason.
 */
#pragma once

#include "base/os.h"
#include "model/ring.h"

enum { BENCH_CPUS = 2, BENCH_FREQ_HZ = 99, BENCH_DEPTH_MAX = 30, BENCH_THREADS_PER_PROCESS = 5 };
enum { BENCH_STAY_PERCENT = 13, BENCH_USUAL_PERCENT = 85, BENCH_OTHERS = 6 };

#define BENCH_PERIOD_NS (NS_PER_SEC / BENCH_FREQ_HZ)

struct settings {
	bool json, keep, random, no_exports, store_only;
	const char *dir;
	uint32_t samples, stacks, frames, threads, ring_mb;
	uint32_t seed;                       /* another stream of the same kind */
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
