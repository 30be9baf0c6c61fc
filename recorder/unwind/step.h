/*
 * One step of a walk: from the registers in a frame to those in its caller.
 *
 * The fast way follows an 8-byte rule and knows RSP, RBP and RIP of callers, which nearly all code
 * needs; RBX and R12-R15 are followed only in a walk that was started again with `all` set, because
 * a frame asked for them. Registers other than these are known in the leaf and in a frame that a
 * signal interrupted. A step that fails leaves the registers as they were.
 *
 * Private to unwind/. One thread.
 */
#ifndef UNWIND_STEP_H
#define UNWIND_STEP_H

#include "unwind/rule.h"
#include "unwind/stack_view.h"

#define STEP_SIGNALS_MAX 16u             /* signal frames in one stack */

enum step_result {
	STEP_ON,                        /* the registers are the caller's */
	STEP_ROOT,                      /* there is no caller */
	STEP_END,                       /* frame pointers end here: perhaps the root */
	STEP_UNREADABLE,                /* view.missing is needed */
	STEP_UNKNOWN,                   /* a register is needed that was not followed */
	STEP_BROKEN,
};

struct stepper {
	uint64_t regs[EH_REGISTERS];
	uint32_t known;                 /* a bit for each register */
	bool interrupted;               /* RIP is where execution stands, no return address */
	bool all;                       /* follow all callee-saved registers */
	bool switched;                  /* a signal frame was passed: perhaps on another stack */
	unsigned nsignals;
	unsigned word;                  /* 8; 4 in 32-bit programs */
	uint64_t cfa;                   /* of the frame that was left, or would be; 0 = not known */
	uint32_t budget;
	struct stack_view view;
};

/* By the tables; where they describe no function, as step_undescribed(). */
enum step_result step_tables(struct stepper *s, struct rule_cache *cache,
			     const struct eh_frame *tables, uint64_t vaddr, bool *by_pointer);

/* Code without tables: a ucontext that a signal handler returns to, else frame pointers. */
enum step_result step_undescribed(struct stepper *s, bool *by_pointer);

/* Frame pointers: [RBP] is the caller's, the return address above it. */
enum step_result step_frame_pointer(struct stepper *s);

/* The leaf lies nowhere: a call of a wild pointer, whose return address is on top of the stack. */
enum step_result step_wild(struct stepper *s);

#endif
