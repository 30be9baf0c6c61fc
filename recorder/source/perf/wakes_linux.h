/*
 * Wakes a peeker (peekers_linux.h) at the samples of chosen processes only, where the kernel has
 * BPF: a program at the sampler's event looks for the process in a table, and writes a word to an
 * event of its CPU, whose poll() returns then. Samples of all other processes wake nobody; a
 * wake-up costs some 20 us, the program 0.2.
 *
 * Without it the sampler's own ring must wake at each sample (perf_ask.peeked).
 *
 * Threads: the source's. A wake may be closed, and waited for, by any.
 */
#pragma once

#include "base/err.h"
#include "source/ring/perf_ring_linux.h"

#define PERF_WAKES_PROCESSES_MAX 1024u

struct perf_wakes;

struct perf_wake {
	int fd;                              /* poll(): POLLIN after a sample; -1 = none */
	void *map;
};

/* ERR_ACCESS, ERR_UNSUPPORTED: this user may not, or the kernel has none. */
int perf_wakes_new(struct perf_wakes **out, struct err *err);
void perf_wakes_free(struct perf_wakes *w);          /* NULL allowed */

/* Samples of this process wake from now on. false: they do not */
bool perf_wakes_add(struct perf_wakes *w, uint32_t pid);
void perf_wakes_remove(struct perf_wakes *w, uint32_t pid);

/* Of the ring's CPU, from the ring's samples. The program stays with the ring's event. */
int perf_wake_open(struct perf_wakes *w, const struct perf_ring *sampler, struct perf_wake *out,
		   struct err *err);
void perf_wake_close(struct perf_wake *wake);
