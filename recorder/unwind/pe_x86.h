/*
 * Unwinding x86 Windows code, of 32-bit programs: from the registers of a thread to its callers.
 *
 * There is no .pdata for x86. Where an image has .eh_frame, as mingw's have, that is followed, and
 * exact. Other code is followed like this:
 *
 *   an interrupted thread   in a prologue that sets EBP, or in front of an epilogue or return, the
 *                           instructions say where the return address is
 *   frame pointers          [EBP] is the caller's EBP, the return address is above it. Windows' own
 *                           x86 libraries are built to be followed so
 *   functions without one   where a function begins is known by the int3 bytes in front of it. If
 *                           it sets no EBP, its caller is the return address above its frame,
 *                           behind a call of this very function or one through a pointer
 *
 * A return address is accepted only behind a call instruction. Frame pointers can pass over a
 * function that has none, so a stack with such a step is never called complete.
 *
 * Portable, no system calls, nothing allocated. Registers, stack and code may be hostile: a walk
 * takes EH_BUDGET instructions of tables, and reads PE_X86_READS_MAX pieces of code at most.
 * Threads: any number; the tables are shared, a walk belongs to one.
 *
 * Source: Intel's manual, volume 2 (the encodings of call, ret, push, pop, leave, mov); Microsoft,
 * "/Oy (frame-pointer omission)", "/hotpatch"; for .eh_frame elf_eh_frame.h.
 */
#pragma once

#include "unwind/elf_eh_frame.h"
#include "unwind/pe_pdata.h"

#define PE_X86_READS_MAX 16384u              /* of code, in one walk */
#define PE_X86_SCAN_BYTES 4096u              /* of stack, for one function without EBP */
#define PE_X86_FUNCTION_BYTES 4096u          /* how far back a function's beginning is looked for */

/* What the caller of a walk knows of the process. */
struct pe_x86_process {
	/* The tables of the image that holds an address, counted in addresses; NULL = none. */
	const struct eh_frame *(*tables)(void *ctx, uint64_t address);
	/* Copy n bytes, at most PE_X86_CODE_BYTES, of executable memory; false = it is none. */
	bool (*code)(void *ctx, uint64_t address, uint8_t *to, size_t n);
	void *ctx;
	uint64_t stack_base;                 /* above the thread's stack; 0 = unknown */
};

#define PE_X86_CODE_BYTES 64u

/*
 * Walk all frames, innermost first. The registers are those of x86, in CONTEXT's order as in
 * UNWIND_INFO: the first eight, and rip.
 *
 * end      PE_STEP_ON: the outermost (rip is 0) or max was reached; else why the walk ended
 * guided   every step was exact; false: frame pointers or a search of the stack were needed
 * returns  the number of frames, at most max
 */
uint32_t pe_x86_walk(struct pe_registers *regs, struct stack_view *stack,
		     const struct pe_x86_process *process, struct pe_frame *frames, uint32_t max,
		     enum pe_step *end, bool *guided);
