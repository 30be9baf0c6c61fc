/*
 * A frame of generated code, between the unwinder and the one who knows that code: the frame
 * readers of managed/, which the source asks (struct unwind_caller).
 *
 * The walk's thread only.
 */
#pragma once

#include "unwind/elf_eh_frame.h"

#define UNWIND_INLINED_MAX 65u               /* functions in one frame of code */

#define REG_BIT(reg) ((uint32_t)1 << (reg))

enum unwind_result {
	UNWIND_ON,                           /* the registers are the caller's */
	UNWIND_UNREADABLE,                   /* a word of the stack is needed that is not there */
	UNWIND_UNKNOWN,                      /* a register is needed that was not tracked */
	UNWIND_BROKEN,
	UNWIND_FOREIGN,                      /* not its code: step as if nobody had been asked */
};

struct unwind_frame {
	/* In: the frame's registers. Out, with UNWIND_ON: its caller's. */
	uint64_t regs[EH_REGISTERS];
	uint32_t known;                      /* a bit for each known register */
	bool interrupted;                    /* RIP is where execution stopped */
	bool generated;                      /* in: its place is in no file */
	uint64_t cfa;                        /* out: where the frame ends */

	/* Read a word of the thread's stack; false = it is not there. */
	bool (*word)(void *stack, uint64_t address, uint64_t *out);
	void *stack;

	bool by_place;                       /* out: it has the name of its place, no functions */
	bool pending;                        /* out: what is missing may be known in a while */

	/* Out, whatever the result: the functions of the frame, the innermost first. */
	struct { uint64_t offset; uint32_t flags; } functions[UNWIND_INLINED_MAX];
	uint32_t nfunctions;
};
