/*
 * Incidents made by hand, for the tests of the model, the exporters and the commands.
 *
 * Everything returns 0 or an error, never fails a test by itself, so that it can be used in a step
 * of alloc_walk(). After an error the incident is still to be freed.
 */
#pragma once

#include "model/incident.h"

/* One frame of a stack by hand; module "[kernel]" and "[jit]" are what they say, "" is unknown. */
struct frame_spec {
	const char *module, *function;       /* function NULL = no name */
	uint64_t offset;
	uint32_t flags;
};

/*
 * Empty incident 7, rule and reason given, from 100 s to 110 s with the trigger at 105 s (wall
 * clock 2026-01-02T03:04:05.678Z), 10 ms period, 120 s + 5 s asked for, 2 kernel and 1 queue
 * losses.
 */
int sample_incident(struct incident *in);

/* A thread of a process, or UINT32_MAX. */
uint32_t sample_thread(struct incident *in, const char *process, uint32_t pid, const char *thread,
		       uint32_t tid);

/* A stack, root first, or STACK_NONE without frames (n = 0); *stack is untouched on error. */
int sample_frames(struct incident *in, const struct frame_spec *root_first, uint32_t n,
		  uint32_t *stack);

/* The same as text: "app!main;app!run;[kernel]!read", "app!?" without a name; "" = no stack. */
int sample_stack(struct incident *in, const char *root_first, uint32_t *stack);

/* count samples with that stack, 10 ms apart, the first 10 ms after the newest one there. */
int sample_add(struct incident *in, uint32_t thread, uint32_t stack, enum stack_quality quality,
	       uint32_t count);

/*
 * Twelve samples of two processes; what each export makes of it is in tests/data/export/small.*:
 * kernel, jitted and unnamed code, a broken and a truncated walk, a sample without a stack, one
 * without a thread, and two addresses of one function.
 */
int sample_small(struct incident *in);

/*
 * sample_small() with samples of two other streams between: 3 of off-CPU time, 1,000,001 + 20 + 7
 * ns, and 2 of allocated memory, 4,096 + 100,000,000 bytes; a counter with 3 values, one of them
 * absent, a garbage collection of 12.5 ms with fields, and a log line with markup, quotes and a
 * line feed.
 */
int sample_streams(struct incident *in);
#define STREAMS_OFF_CPU_NS 1000028u
#define STREAMS_ALLOC_BYTES 100004096u

/* Ending in NULL: names that could break a format, none of them long. */
extern const char *const sample_hostile_names[];

/* One sample for each of them, and for one of 10,000 bytes; head.samples says how many. */
int sample_hostile(struct incident *in);

/*
 * nsamples of nstacks different stacks of `depth` frames, each of one of nthreads threads, few of
 * them hot; the same every time.
 */
int sample_large(struct incident *in, uint32_t nsamples, uint32_t nstacks, uint32_t depth,
		 uint32_t nthreads);
