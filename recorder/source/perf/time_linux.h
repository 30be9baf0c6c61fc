/*
 * Thread time of the perf source. Context switches and wake-ups become samples of the stream
 * off-cpu. A sample's weight is a time in ns, and its leaf says how that time was spent: CPU_TIME,
 * BLOCKED_TIME, DISK_TIME (the kernel waits for a device, io_schedule()), GIL (a Python thread
 * waits for the lock of its process), READIED_TIME or UNKNOWN_TIME. See thread_time.h. The source's
 * thread only, except new, read_kernel, free and name.
 *
 * Switches are read from PERF_RECORD_SWITCH_CPU_WIDE, not from sched_switch, because it has two
 * records for each: one of the thread that leaves and one of the thread that comes. A sandbox's
 * kernel may hide everything that its process 1 does; with one record for both threads, a thread
 * that follows process 1 on a CPU would seem never to have come. Where the kernel takes it, a
 * program writes one such record for each switch, which has both threads: probe/switches_linux.h.
 *
 * At most PERF_TIME_STACKS switches a second and CPU have their stack taken. Above that, one in n
 * has, and the times of the others are recorded without one. A stack that repeats is not taken
 * where that program recognizes it.
 */
#pragma once

#include "model/queue.h"
#include "source/perf/state_linux.h"
#include "source/probe/probes_linux.h"
#include "symbol/reader.h"

#define PERF_TIME_STACKS 5000u

struct perf_time;

/* Borrows state, managed and probes. */
int perf_time_new(const struct source_config *cfg, struct perf_state *state,
		  struct perf_managed *managed, struct probes *probes, struct perf_time **out,
		  struct err *err);
void perf_time_free(struct perf_time *t);

/* A record of a new thread (PERF_KIND_FORK) that the state knows already. */
void perf_time_born(struct perf_time *t, const struct perf_record *r);
/* A record of a context switch (PERF_KIND_SWITCH). */
void perf_time_switch(struct perf_time *t, const struct perf_record *r);
/* A record of a wake-up (PERF_KIND_WAKE). */
void perf_time_woken(struct perf_time *t, const struct perf_record *r);
/* A wake-up, or the unwound stack of a switch. */
void perf_time_take(struct perf_time *t, const struct probe *probe, const struct perf_record *r,
		    const struct unwind_stack *stack);
/* A CPU sample that was delivered. has_gil: of a thread that has its process's lock */
void perf_time_sample(struct perf_time *t, const struct perf_record *r,
		      const struct unwind_stack *stack, bool has_gil);
/* An event of a probe: thread_time_mark(). t, stack: NULL = none. */
void perf_time_event(struct perf_time *t, const struct perf_record *r,
		     const struct unwind_stack *stack);
/* Switch records were lost. */
void perf_time_lost(struct perf_time *t, uint64_t now_ns);
/* Call once a second. */
void perf_time_look(struct perf_time *t, uint64_t now_ns, unsigned ncpus);
/* Any thread: one sentence for status; t NULL or nothing to say: untouched. */
void perf_time_note(const struct perf_time *t, char *out, size_t n);

/* As source_ops.name_frame: the merge thread. */
bool perf_time_name(struct perf_time *t, const struct frame *frame, struct symbol *out);
