/*
 * Unwinding: from what the kernel took at the interrupt to a stack of frames.
 *
 * Portable and without system calls: registers, a copy of stack bytes and the kernel's callchain
 * go in; frames, leaf first, come out with the quality of the walk. The caller says which object an
 * address belongs to. Called by the source thread for every sample; allocates nothing.
 *
 * This version follows the frame-pointer callchain. regs and stack are where an interpreter of
 * unwind tables finds its input.
 */
#ifndef UNWIND_UNWIND_H
#define UNWIND_UNWIND_H

#include "model/event.h"

struct unwind_input {
	const uint64_t *kernel_chain;        /* leaf first; NULL = none */
	uint32_t nkernel;
	const uint64_t *user_chain;          /* the kernel's frame-pointer walk, leaf first */
	uint32_t nuser;
	bool chain_cut;                      /* the kernel stopped at its depth limit */
	bool user_expected;                  /* the thread has user code (no kernel thread) */

	uint32_t regs_abi;                   /* 0 = none, 1 = 32-bit, 2 = 64-bit */
	const uint64_t *regs;                /* in the order of the sampled mask; NULL = none */
	uint64_t regs_mask;
	const uint8_t *stack;                /* bytes from the stack pointer up; NULL = none */
	uint32_t stack_bytes;
};

struct unwind_stack {
	struct frame_ref frames[STACK_MAX_FRAMES];
	uint32_t nframes;
	enum stack_quality quality;
};

/* Which object an address belongs to; fills object and offset. kernel tells the address space. */
typedef void unwind_locate(void *ctx, uint64_t address, bool kernel, struct frame_ref *out);

void unwind_user_and_kernel(const struct unwind_input *in, unwind_locate *locate, void *ctx,
			    struct unwind_stack *out);

#endif
