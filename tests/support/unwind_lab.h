/*
 * A made-up thread to unwind: a program of ten functions with unwind tables, a stack, registers.
 *
 * Addresses: the program is mapped at LAB_CODE, and its tables count from 0; jitted code, a library
 * whose tables are still being loaded, and nothing at all lie elsewhere. The stack has LAB_WORDS
 * words from LAB_STACK up, of which the sample has copied copy_words.
 */
#pragma once

#include "unwind/unwind.h"

#define LAB_CODE 0x400000u
#define LAB_STACK 0x7ffe00000000u
#define LAB_WORDS 32768u
#define LAB_REMOTE_BYTES (64u << 10)

/* Functions, 0x100 bytes each; a return address into one is its number + 1 or more. */
enum lab_function {
	LAB_USUAL = LAB_CODE + 0x1000,	   /* push rbp; at 4 CFA = rbp + 16; at 0xf0 popped */
	LAB_SUB24 = LAB_CODE + 0x1100,	   /* CFA = rsp + 32, nothing saved */
	LAB_ROOT = LAB_CODE + 0x1200,	   /* the return address is undefined */
	LAB_RESTORER = LAB_CODE + 0x1300,  /* a signal frame, described as glibc does; to 0xf0 */
	LAB_REALIGNED = LAB_CODE + 0x1400, /* CFA = [rbp - 8] */
	LAB_BY_RBX = LAB_CODE + 0x1500,	   /* CFA = rbx + 16 */
	LAB_SAVES_RBX = LAB_CODE + 0x1600, /* CFA = rsp + 24, rbx saved at -16 */
	LAB_BIG = LAB_CODE + 0x1700,	   /* CFA = rsp + 4096 */
	LAB_WRONG = LAB_CODE + 0x1800,	   /* its program makes no sense */
	LAB_STUCK = LAB_CODE + 0x1900,	   /* CFA = rsp */
	LAB_BARE = LAB_CODE + 0x1a00,	   /* no FDE */
	/* CFA = rsp + 8; its FDE ends before its system call, at 0x100 */
	LAB_CLONE = LAB_CODE + 0x1b00,
	LAB_CHILD = LAB_CODE + 0x1c0a, /* the FDE after that gap: the return address is undefined */
	LAB_VFORK = LAB_CODE + 0x1d20, /* CFA = rsp: the return address has been popped into rdi */
	LAB_ENTRY = LAB_CODE + 0x1f00, /* where the kernel starts the program; no FDE */
	LAB_JIT = 0x500000,
	LAB_PENDING = 0x600000,
	LAB_NOWHERE = 0x700000,
};

struct unwind_lab {
	struct unwinder *unwinder;
	struct eh_frame *tables;
	uint64_t *stack;                /* LAB_WORDS */
	uint64_t regs[EH_REGISTERS];
	uint32_t known;                 /* which registers are sampled; all */
	uint32_t copy_words;
	uint32_t remote_words;          /* what remote reading sees; 0 = forbidden */
	unsigned reads;
	bool doubtful;                  /* what was jitted may use RBP for anything */
	unwind_managed *managed;        /* what was jitted is a runtime's; NULL = of none */
	uint64_t top;                   /* 0x100 bytes that nothing calls on their stack */
	uint64_t injected;              /* 0x100 bytes whose caller was interrupted */
	struct unwind_memory memory;
	struct unwind_input in;         /* chains; registers and stack are put in */
	struct unwind_stack out;
};

void unwind_lab_open(struct unwind_lab *lab);
void unwind_lab_close(struct unwind_lab *lab);
/* The same for a test of its own: *state is the laboratory. */
int unwind_lab_setup(void **state);
int unwind_lab_teardown(void **state);

/* Set the leaf: RIP, and RSP at the given word of the stack. */
void unwind_lab_leaf(struct unwind_lab *lab, uint64_t rip, uint32_t word);

/* The address of a word of the stack. */
uint64_t unwind_lab_at(uint32_t word);

void unwind_lab_walk(struct unwind_lab *lab);
