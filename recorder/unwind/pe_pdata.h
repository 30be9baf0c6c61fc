/*
 * Unwinding x64 Windows code: from the registers in a frame to those in its caller, according to
 * .pdata and UNWIND_INFO of the image that holds the address.
 *
 * Every function that calls or that moves the stack pointer has an entry. It lists what the
 * prologue did, last first: undoing that gives the caller. An interrupted thread may be inside the
 * prologue, of which only a part is undone, or in an epilogue, which is recognized by its
 * instructions and followed.
 *
 * Portable, no system calls, nothing allocated. The caller provides the bytes of image and stack,
 * which may be hostile: each step reads at most PE_CHAIN_MAX descriptions.
 * Threads: any number may use a pe_tables, a pe_registers belongs to one.
 *
 * Source: Microsoft, "x64 exception handling" (RUNTIME_FUNCTION, UNWIND_INFO, unwind procedure) and
 * "x64 prolog and epilog". In version 2, the codes that list epilogues are skipped.
 */
#pragma once

#include "unwind/stack_view.h"

#define PE_CHAIN_MAX 32u                     /* descriptions that continue one another */

/* Bytes of a loaded image: .pdata, the data with UNWIND_INFO, code for epilogues. */
struct pe_range {
	uint32_t rva, nbytes;
	const uint8_t *bytes;
};

struct pe_tables {
	const struct pe_range *ranges;       /* in any order */
	uint32_t nranges;
	uint32_t pdata_rva, pdata_bytes;     /* the exception directory */
};

/* Numbered as in UNWIND_INFO and CONTEXT. */
enum {
	PE_RAX, PE_RCX, PE_RDX, PE_RBX, PE_RSP, PE_RBP, PE_RSI, PE_RDI, PE_REGISTERS = 16,
};

struct pe_registers {
	uint64_t r[PE_REGISTERS];            /* RAX RCX RDX RBX RSP RBP RSI RDI R8-R15 */
	uint64_t rip;
	bool interrupted;                 /* rip is where execution stopped, not a return address */
};

enum pe_step {
	PE_STEP_ON,                          /* the registers are the caller's */
	PE_STEP_UNREADABLE,                  /* the view lacks the bytes; see view.missing */
	PE_STEP_BROKEN,                   /* the tables are malformed, or the stack does not rise */
};

/*
 * One step from a frame in this image. After PE_STEP_ON the registers are the caller's (rip 0:
 * there is none); otherwise they are unchanged. Code without an entry is a leaf, whose return
 * address is on top of the stack. Only an interrupted frame can be one; for others this is
 * PE_STEP_BROKEN.
 *
 * rva   of the frame's address: the instruction for an interrupted frame, else inside the call
 */
enum pe_step pe_step(const struct pe_tables *tables, uint32_t rva, struct pe_registers *regs,
		     struct stack_view *stack);

struct pe_frame {
	uint64_t address;
	bool returns;                        /* a call returns there */
};

/* The tables of the image that holds an address, and the place in it; NULL = no image. */
typedef const struct pe_tables *pe_find(void *ctx, uint64_t address, uint32_t *rva);

/*
 * Walk all frames from the registers on, innermost first. Generated code, outside images, is
 * followed by frame pointers.
 *
 * end      PE_STEP_ON: the outermost or max was reached; else why the walk ended after the last one
 * returns  their number, at most max
 */
uint32_t pe_walk(struct pe_registers *regs, struct stack_view *stack, pe_find *find, void *ctx,
		 struct pe_frame *frames, uint32_t max, enum pe_step *end);
