/*
 * Context switches and wake-ups of all threads, written by a program of the kernel (BPF): at the
 * tracepoints sched_switch and sched_wakeup it writes one record of 64 bytes into a ring of its
 * CPU, a table that we have mapped, and it decides which switches have a stack. Perf's own records
 * cost the kernel five times as much: two of each switch, one of each wake-up, and the tracepoint's
 * work for those without a stack.
 *
 * The ring is one of perf's in all that the reader sees: RECORD_SWITCH_CPU_WIDE of who leaves,
 * PERF_RECORD_WAKE, and RECORD_LOST before the first one that is written after others had no room.
 *
 * Threads: the source's.
 */
#pragma once

#include "base/err.h"
#include "source/probe/trace_format.h"
#include "source/ring/perf_ring_linux.h"

struct switches;

/*
 * Load the programs and run them; rings are written once they are enabled.
 *
 * change, wakeup   of sched/sched_switch and sched/sched_wakeup
 * typed            by the kernel's types, where it tells them: without perf's part of a tracepoint
 * returns          0; ERR_ACCESS, ERR_UNSUPPORTED: this user may not, or the kernel has none
 */
int switches_new(const struct trace_format *change, const struct trace_format *wakeup,
		 unsigned ncpus, bool typed, struct switches **out, struct err *err);
void switches_free(struct switches *s);      /* NULL allowed */

/*
 * Open the ring of a CPU, which is not written yet.
 *
 * stacks   an event of that CPU (PERF_COUNT_SW_BPF_OUTPUT); a sample of it is the stack of the
 *          thread that leaves, just before that record, and its raw data are the thread's state
 * wakes    its ring wakes when another quarter of the new one is full
 */
int switches_open_cpu(struct switches *s, unsigned cpu, int stacks, const struct perf_ring *wakes,
		      struct perf_ring *out, struct err *err);
void switches_enable(const struct perf_ring *ring, bool on);
/*
 * The stack with which a thread is switched out again and again. While its registers and the
 * words on its stack are these, the program takes no stack: the record has the number.
 */
#define SWITCH_WORDS_MAX 24u
#define SWITCH_KERNEL_MAX 8u

struct switch_stack {
	uint64_t ip, sp, di;                 /* di: of what it waits for: a file, a lock */
	uint64_t bp, bp_mask;                /* which of its bits must be equal */
	uint64_t state;                      /* switches_state() */
	uint64_t tid;                        /* switches_tell()'s */
	uint64_t number;                     /* not 0; 32 bits */
	uint64_t repeats, taken_ns;          /* the program's */
	struct {
		uint64_t distance, value;    /* where a frame returns to; value 0 = no more */
	} kernel[SWITCH_KERNEL_MAX];         /* the latest calls */
	uint64_t nwords;
	struct {
		uint64_t address, value;     /* where a frame returns to */
	} words[SWITCH_WORDS_MAX];
};

/*
 * The least raw data of its stacks, whose kernel frames begin with those of the program
 * (perf_record.h); s NULL, or 0: they do not.
 */
uint32_t switches_stack_bytes(const struct switches *s);
/* How a thread with this stack was switched out: blocked, preempted. */
uint8_t switches_state(const struct perf_record *stack);
/* Where it was in the kernel. false: its first return addresses are not all found */
bool switches_kernel(const struct perf_record *stack, struct switch_stack *out);
/* Of a thread's stacks the program knows one for each of these. */
#define SWITCH_PLACES 8u
unsigned switches_place(const struct switch_stack *stack);
/* Whether the program asks for them: since Linux 5.15. */
bool switches_know(const struct switches *s);
void switches_tell(const struct switches *s, uint32_t tid, const struct switch_stack *stack);

/*
 * How many records are missing that are in no ring since the last call: the kernel runs no program
 * while another one runs on that CPU, such as for a wake-up by an interrupt. Since Linux 5.12.
 */
uint64_t switches_missed(struct switches *s);

/* One in n switches of a CPU has a stack from now on. */
void switches_every(const struct switches *s, uint64_t n);
