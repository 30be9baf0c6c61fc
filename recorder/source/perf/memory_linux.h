/*
 * Whose stacks made memory grow: one page fault in so many is a sample of the stream rss, and this
 * keeps track of what became of the page.
 *
 * Each fault that was put as a sample stands for `period` pages (a prime; when faults are frequent
 * the next larger one, so that a flood of faults costs no more than FAULTS_PER_SEC records). A
 * helper looks at /proc/PID/pagemap: soon after a fault, again and again while the process lives,
 * and when an incident begins. A page that is not there any more, or belongs to a file, gets a mark
 * (model/event.h), and so does a huge page. What is unmapped gets its mark at once, by the
 * tracepoint maple_tree/ma_write (since 6.1; those of system calls would make every call slower).
 * What it does not tell (madvise, an older kernel, more than UNMAPS_PER_SEC) is found by a bound:
 * no stretch of memory can hold more than is resident there. Where faults say more, because
 * addresses were used again between two looks, the newest count.
 *
 * Resident sizes are told as events Memory/RSS of each process, when they have changed by
 * TOLD_PAGES; the ten largest ones in detail (Memory/Rollup) when an incident begins.
 *
 * The source's thread only, except perf_memory_fired(). Nothing here opens a file itself.
 */
#pragma once

#include "source/perf/state_linux.h"
#include "source/probe/trace_format.h"

#define FAULTS_PER_SEC 200u                  /* for each CPU; over it the period becomes longer */
#define FAULTS_CALM 40u                      /* under it, shorter again */
#define PAGES_MAX (1u << 18)                 /* of all processes; 56 bytes each */
#define UNMAPS_PER_SEC 5000u                 /* for each CPU; over it they are not recorded: */
#define UNMAPS_PAUSE_NS (2 * NS_PER_SEC)

struct perf_memory;
struct perf_cpus;

struct perf_unmaps {
	struct trace_format format;
	uint32_t first, last;                /* its fields */
};

/* The tracepoint's id; 0 = this kernel has none, or tracefs is missing. Not the source's thread. */
uint32_t perf_memory_tracepoint(struct perf_unmaps *out);

/* cpus: its fault_period is the shortest; unmaps: borrowed */
int perf_memory_new(struct perf_state *state, struct queue *queue, struct perf_cpus *cpus,
		    const struct perf_unmaps *unmaps, struct perf_memory **out, struct err *err);
void perf_memory_free(struct perf_memory *m);        /* NULL allowed */

/* The bytes that a fault of this time stands for. */
double perf_memory_weight(const struct perf_memory *m, uint64_t time_ns);
/* A fault that was put as a sample. */
void perf_memory_fault(struct perf_memory *m, const struct perf_record *r,
		       const struct process *process);
/* A record of that tracepoint. */
void perf_memory_unmapped(struct perf_memory *m, const struct perf_record *r);
/* An event of a rule: oom/mark_victim has the last size of a process. m: NULL allowed */
void perf_memory_event(struct perf_memory *m, const struct event *e);
/* Call it often. now_ns: up to which all events are in the queue; marks get this time. */
void perf_memory_look(struct perf_memory *m, uint64_t now_ns);
/* Look at all pages once more, at the end; waits a second at most. */
void perf_memory_finish(struct perf_memory *m, uint64_t now_ns);
/* Any thread: an incident begins, so look at all pages and at the largest processes. */
void perf_memory_fired(struct perf_memory *m);
struct pool *perf_memory_pool(const struct perf_memory *m);
/* For status: what was left out; "" = nothing. Any thread */
void perf_memory_note(const struct perf_memory *m, char *out, size_t n);
