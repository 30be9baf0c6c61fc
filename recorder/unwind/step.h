/*
 * One step of a walk: from the registers in a frame to those in its caller.
 *
 * The fast way follows an 8-byte rule and tracks RSP, RBP and RIP of callers, which is enough for
 * nearly all code. The other callee-saved registers are tracked only in a walk that was restarted
 * with `all` set, because a frame needed them. Further ones are known only in the leaf and in a
 * frame that a signal interrupted. A step that fails leaves the registers unchanged.
 *
 * Private to unwind/. One thread.
 */
#pragma once

#include "unwind/rule.h"
#include "unwind/stack_view.h"

#define STEP_SIGNALS_MAX 16u             /* signal frames in one stack */

enum step_result {
	STEP_ON,                        /* the registers are the caller's */
	STEP_ROOT,                      /* there is no caller */
	STEP_END,                       /* the frame pointers end: perhaps at the root */
	STEP_UNREADABLE,                /* view.missing is needed */
	STEP_UNKNOWN,                   /* needs a register that was not tracked */
	STEP_BROKEN,
	STEP_CUT,                       /* a frame could not be put: the walk's quality is set */
};

struct stepper {
	uint64_t regs[EH_REGISTERS];
	uint32_t known;                 /* a bit for each known register */
	bool interrupted;               /* RIP is where execution stopped, not a return address */
	bool all;                       /* track all callee-saved registers */
	bool switched;                  /* a signal frame was passed, perhaps to another stack */
	unsigned nsignals;
	unsigned word;                  /* 8; 4 in 32-bit programs */
	uint64_t cfa;                   /* of the frame that the step leaves; 0 = unknown */
	uint32_t budget;
	struct stack_view view;
	view_fetch *code;               /* reads code, to work out an unknown RBP; NULL = never */
	bool worked_out;                /* RBP of a frame was */
};

/* Step by the tables; where they describe no function, step_undescribed(). */
enum step_result step_tables(struct stepper *s, struct rule_cache *cache,
			     const struct eh_frame *tables, uint64_t vaddr, bool *by_pointer);

/* Code without tables: a ucontext that a signal handler returns to, else frame pointers. */
enum step_result step_undescribed(struct stepper *s, bool *by_pointer);

/* Frame pointers: [RBP] is the caller's RBP, the return address is above it. */
enum step_result step_frame_pointer(struct stepper *s);

/* The leaf is in no mapping: a call through a wild pointer, with the return address on top. */
enum step_result step_wild(struct stepper *s);
