/*
 * Thread time of the perf source: context switches and wake-ups become samples of the stream off-cpu, whose
 * weight is a time in ns and whose leaf says how it was spent: CPU_TIME, BLOCKED_TIME, DISK_TIME (the
 * kernel waits for a device, io_schedule()), READIED_TIME, UNKNOWN_TIME. See thread_time.h. The source's
 * thread, except new, read_kernel, free and name.
 *
 * Switches are PERF_RECORD_SWITCH_CPU_WIDE, not sched_switch, as they come twice: as a record of who leaves and
 * as one of who comes. The kernel of a sandbox may keep silent about all that its process 1 does: with one record
 * of both threads, each thread that came to a CPU after one of that process seemed never to have come.
 *
 * Stacks are taken of PERF_TIME_STACKS switches a second and CPU at most; above that of one in n, and
 * times whose stack is not known have none.
 */
#ifndef SOURCE_PERF_TIME_LINUX_H
#define SOURCE_PERF_TIME_LINUX_H

#include "model/queue.h"
#include "source/perf/state_linux.h"
#include "source/probe/probes_linux.h"
#include "symbol/reader.h"

#define PERF_TIME_STACKS 5000u

struct perf_time;

/* frames: where its leaves are named. state and probes: asked, not owned. */
int perf_time_new(struct frames *frames, struct queue *queue, struct log *log, struct perf_state *state,
		  struct probes *probes, struct perf_time **out, struct err *err);
void perf_time_free(struct perf_time *t);
/* Learn what DISK_TIME is from kallsyms, before all else; where the kernel hides it these times are BLOCKED_TIME. */
void perf_time_read_kernel(struct perf_time *t);

/* A record of a new thread, PERF_KIND_FORK, which the state knows already. */
void perf_time_born(struct perf_time *t, const struct perf_record *r);
/* A record of a context switch, PERF_KIND_SWITCH. */
void perf_time_switch(struct perf_time *t, const struct perf_record *r);
/* A wake-up, or the stack of a switch, unwound. */
void perf_time_take(struct perf_time *t, const struct probe *probe, const struct perf_record *r,
		    const struct unwind_stack *stack);
/* A CPU sample that was delivered. */
void perf_time_sample(struct perf_time *t, const struct perf_record *r, const struct unwind_stack *stack);
/* Records of switches were lost. */
void perf_time_lost(struct perf_time *t, uint64_t now_ns);
/* Once a second. */
void perf_time_look(struct perf_time *t, uint64_t now_ns, unsigned ncpus);
/* Any thread: one sentence; "" = nothing to say. */
void perf_time_note(const struct perf_time *t, char *out, size_t n);

/* As source_ops.name_frame. */
bool perf_time_name(const struct perf_time *t, const struct frame *frame, struct symbol *out);

#endif
