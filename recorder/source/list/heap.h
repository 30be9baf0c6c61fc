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

#define HEAP_VARIABLES 4u
struct heap_environment {
	char *variables[HEAP_VARIABLES];     /* "NAME=value", ending in NULL */
	int ring;                            /* for capture.heap_ring; 0 = none: probes tell */
};
/* What a program needs in its environment, so that one allocation in mean_bytes is sampled. */
int heap_environment(uint64_t mean_bytes, struct heap_environment *out, struct err *err);
void heap_environment_free(struct heap_environment *e);

enum heap_sampler {
	HEAP_SAMPLER_NONE,
	HEAP_SAMPLER_OURS,                   /* it was started with librecorder-heap.so */
	HEAP_SAMPLER_JEMALLOC, HEAP_SAMPLER_TCMALLOC, HEAP_SAMPLER_GO,
	HEAP_SAMPLER_JAVA,                   /* HotSpot's flight recording; below */
};
/* What samples the heap of a process that runs already. ERR_NOT_FOUND: there is none such */
int heap_sampler_of(uint32_t pid, enum heap_sampler *out, struct err *err);

/*
 * A JVM that runs records its own allocations, and samples of objects that are still there, by JDK
 * Flight Recorder. It is asked as jcmd asks it, so it must see this machine's /tmp, where a folder
 * for its file is made. Of a recorder that was killed the recording goes on, in 64 MB of files of
 * the JVM, until the next one begins; that one also removes the folder. Each call waits for the
 * JVM, some seconds at most.
 */
struct heap_java;
/* ERR_UNSUPPORTED: it takes no commands, or has no flight recorder; err says which */
int heap_java_begin(uint32_t pid, struct heap_java **out, struct err *err);
/* End it. path: of its file, which is there until heap_java_free() */
int heap_java_end(struct heap_java *j, const char **path, struct err *err);
void heap_java_free(struct heap_java *j);            /* ends it if need be; NULL allowed */

/*
 * Append --providers of a probe on the malloc of a process that runs: calls with stacks and sizes
 * (Arg1), 1,000 a second at most. Each process that shares the file pays 0.5 us a call meanwhile.
 * ERR_NOT_FOUND: it has no file with a malloc that is known
 */
int heap_probe_malloc(uint32_t pid, struct buf *out, struct err *err);

/* heap_next_begin_at() where the system has it, with the recorder's library. */
int heap_next_begin(const char *name, uint64_t mean_bytes, struct heap_next **out,
		    struct err *err);
