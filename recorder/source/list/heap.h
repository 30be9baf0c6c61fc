/*
 * --heap: sampled allocations of programs that are started with librecorder-heap.so
 * (recorder/preload/heap.c), which stands beside the recorder or in ../lib/recorder. Linux only:
 * on Windows the ETW source has the heap's events, of --heap-next and --heap-process.
 */
#pragma once

#include "base/buf.h"
#include "model/needs.h"
#include "source/list/heap_next.h"

/*
 * Add its probes, for --heap or any of the texts of --heap-next and --heap-process; NULL = without.
 * returns  0; ERR_NOT_FOUND the library is not there; ERR_UNSUPPORTED not on this host
 */
int heap_needs(const char *next, const char *process, struct needs *needs, struct err *err);

#define HEAP_VARIABLES 3u
struct heap_environment {
	char *variables[HEAP_VARIABLES];     /* "NAME=value", ending in NULL */
};
/* What a program needs in its environment, so that one allocation in mean_bytes is sampled. */
int heap_environment(uint64_t mean_bytes, struct heap_environment *out, struct err *err);
void heap_environment_free(struct heap_environment *e);

enum heap_sampler {
	HEAP_SAMPLER_NONE,
	HEAP_SAMPLER_OURS,                   /* it was started with librecorder-heap.so */
	HEAP_SAMPLER_JEMALLOC, HEAP_SAMPLER_TCMALLOC,
};
/* What samples the heap of a process that runs already. ERR_NOT_FOUND: there is none such */
int heap_sampler_of(uint32_t pid, enum heap_sampler *out, struct err *err);

/*
 * Append --providers of a probe on the malloc of a process that runs: calls with stacks and sizes
 * (Arg1), 1,000 a second at most. Each process that shares the file pays 0.5 us a call meanwhile.
 * ERR_NOT_FOUND: it has no file with a malloc that is known
 */
int heap_probe_malloc(uint32_t pid, struct buf *out, struct err *err);

/* heap_next_begin_at() where the system has it, with the recorder's library. */
int heap_next_begin(const char *name, uint64_t mean_bytes, struct heap_next **out,
		    struct err *err);
