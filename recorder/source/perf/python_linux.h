/*
 * Python frames in the samples of this source: peekers (peekers_linux.h) run while a Python program
 * lives, and what they read is put among the frames of each sample's walk.
 *
 * A sample that is without its Python frames for any reason is counted; it keeps its native stack.
 *
 * Threads: the source's, unless stated otherwise.
 */
#pragma once

#include "source/perf/cpus_linux.h"
#include "source/perf/managed_linux.h"
#include "source/perf/peekers_linux.h"

#define PYTHON_IDLE_NS (600 * NS_PER_SEC)    /* peekers run for so long without a Python program */

struct perf_python;

int perf_python_new(struct perf_managed *managed, const struct perf_cpus *cpus, struct log *log,
		    struct perf_python **out, struct err *err);
void perf_python_free(struct perf_python *p);        /* NULL allowed */

/* Is each sample to wake a peeker, from now on? Begins and ends those that are woken otherwise. */
bool perf_python_wants(struct perf_python *p, const struct perf_cpus *cpus, uint64_t now_ns);
/* Start and end peekers as rings came and went; call it after that, and about once a second. */
void perf_python_look(struct perf_python *p, const struct perf_cpus *cpus, uint64_t now_ns);

/* May the sample be put? Its peeker has a few milliseconds from its time on. */
bool perf_python_ready(const struct perf_python *p, const struct perf_process *process,
		       const struct perf_ring *ring, uint64_t now_ns);
/*
 * Put the Python frames of ring->record into the stack of its walk.
 * returns  false: it has some, and is without them
 */
bool perf_python_place(struct perf_python *p, struct perf_process *process,
		       const struct perf_ring *ring, struct unwind_stack *stack);

/*
 * Does the thread of the last sample that was placed hold its process's lock?
 *
 * p        NULL allowed
 * returns  false: that is not known
 */
bool perf_python_has_gil(const struct perf_python *p);

/* Any thread: for status. returns  whether there is something to say */
bool perf_python_note(const struct perf_python *p, char *out, size_t n);
