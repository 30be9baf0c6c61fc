/*
 * What the parts of switches_linux.h share: switches_linux.c (tables, rings, what is told), and
 * switch_code_linux.c (the programs).
 */
#pragma once

#include "source/probe/bpf_code_linux.h"
#include "source/probe/kernel_types_linux.h"
#include "source/probe/switches_linux.h"

#include <linux/perf_event.h>
#include <stddef.h>

#define PAGE 4096                            /* of x86-64 */
#define DATA (1 << 20)                       /* bytes of records */
#define KNOWN_MAX 8192u                      /* stacks; one takes the place of another */
#define STATES 0xff                          /* of a task; without TASK_REPORT_MAX */
#define WINDOW 384                           /* bytes read at once to compare words */
#define PIECE 128                            /* less than what is above all frames: pt_regs */

/* At the start of the first page, where perf has nothing that the reader needs. */
struct control {
	uint64_t enabled;
	uint64_t left;                       /* switches until the next one that has a stack */
	uint64_t lost;                       /* records, not told yet */
	uint64_t own;                        /* where the program's own stack is */
};

struct switches {
	int rings, stacks, wakes;            /* tables; rings: of tables */
	int known;                           /* -1 = not here, or: */
	struct switch_stack *stacks_known;   /* KNOWN_MAX of them, mapped: bpf(2) for one would
					        keep programs from running meanwhile */
	int every;                           /* of one number: switches to a stack, less one */
	int programs[2], attached[2];        /* attached: to the tracepoints */
	struct kernel_types types;           /* on_switch 0 = programs see records of tracepoints */
	const struct trace_field *fields[4]; /* these, while programs are loaded */
	uint64_t missed;                     /* that were told */
};

/* Where the records are, in perf's first page. */
enum {
	HEAD = offsetof(struct perf_event_mmap_page, data_head),
	TAIL = offsetof(struct perf_event_mmap_page, data_tail),
	ENABLED = offsetof(struct control, enabled),
	LEFT = offsetof(struct control, left),
	LOST = offsetof(struct control, lost),
	OWN = offsetof(struct control, own),
	TAKEN = PAGE / 2,                    /* what a stack that is taken has as raw data: */
	TAKEN_STATE = TAKEN, TAKEN_KERNEL = TAKEN + 8, TAKEN_BYTES = 8 + 12 * PIECE,
	READ = PAGE - WINDOW,                /* the window, behind that */
};

/* What the tracepoints tell: of sched_switch and the last one of sched_wakeup. */
enum { PREV, NEXT, CHANGE, WOKEN };          /* CHANGE: the state of the one that leaves */

/* Write the program at sched_switch, and the one at sched_wakeup. */
void switch_code_change(struct bpf_code *c, const struct switches *s);
void switch_code_wakeup(struct bpf_code *c, const struct switches *s);
