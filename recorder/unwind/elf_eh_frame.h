/*
 * The unwind tables of one ELF file: for an address, how to find its caller's registers.
 *
 * .eh_frame holds a description (FDE) per function: a program for a small machine that says, up to
 * the address, where the frame begins (CFA) and where the caller's registers are kept, in DWARF's
 * call frame instructions. .eh_frame_hdr is its index, sorted by address. The caller reads both
 * into memory; nothing is read or mapped here, nor allocated after eh_frame_new(). Nothing is
 * trusted: every table, program and expression may be hostile, and costs at most its budget.
 *
 * x86-64: 17 columns, 8-byte addresses. i386: 9 columns, which are given the names of x86-64's
 * registers, and 4-byte addresses. Little-endian. Addresses are the file's own (vaddr).
 *
 * Threads: immutable after eh_frame_new() and eh_frame_add_code(); then any number of threads may
 * look up at the same time.
 *
 * Source: Linux Standard Base 5.0, "Exception Frames" (.eh_frame, .eh_frame_hdr, augmentations,
 * pointer encodings); DWARF 5, sections 2.5 (expressions) and 6.4 (call frame information); System
 * V ABI for x86-64, figure "DWARF Register Number Mapping"; that for i386 (Intel386, version 1.1),
 * table 2.14.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EH_FRAME_MAX_BYTES ((size_t)128 << 20)  /* each section; Chromium's .eh_frame has 20 MB */
#define EH_FRAME_MAX_FDES (4u << 20)
#define EH_REMEMBERED_MAX 8u            /* depth of DW_CFA_remember_state; compilers use 1 */
#define EH_EXPRESSION_DEPTH_MAX 32u
#define EH_EXPRESSION_STEPS_MAX 256u    /* loops included */

/*
 * Instructions that one stack may cost, over all its frames: the sum of what programs and
 * expressions execute. The longest program of libc, libcrypto and python3 has 219, of node
 * 2,236, of cc1 13,365 (tests/unit/unwind/files_linux.c prints them).
 */
#define EH_BUDGET (128u << 10)

/* DWARF's register numbers on x86-64. In tables of i386, EH_RAX stands for EAX, and so on. */
enum eh_register {
	EH_RAX, EH_RDX, EH_RCX, EH_RBX, EH_RSI, EH_RDI, EH_RBP, EH_RSP,
	EH_R8, EH_R9, EH_R10, EH_R11, EH_R12, EH_R13, EH_R14, EH_R15,
	EH_RIP,                         /* the return address column */
	EH_REGISTERS,
};

enum eh_result {
	EH_OK,
	EH_NONE,                        /* no FDE holds the address */
	EH_BAD,                         /* malformed, unsupported, or over a limit */
	EH_UNKNOWN_REGISTER,            /* needs a register whose value is unknown */
	EH_UNREADABLE,                  /* needs memory that could not be read */
};

/* The sections as they are in the file. */
struct eh_sections {
	uint8_t *header;                /* .eh_frame_hdr, by PT_GNU_EH_FRAME; NULL = none */
	size_t header_bytes;
	uint64_t header_vaddr;
	uint8_t *frames;                /* .eh_frame; bytes after its end do no harm */
	size_t frames_bytes;
	uint64_t frames_vaddr;
	bool is_32_bit;                 /* i386 */
	bool cfa_only;                  /* .debug_frame of Go: nothing says where RBP is saved */
};

struct eh_frame;

/*
 * Make .eh_frame of a .debug_frame, in place: CIEs have another number, and FDEs name theirs by its
 * place in the section. Its address is 0. What is malformed describes nothing afterwards.
 */
void eh_frame_of_debug_frame(uint8_t *bytes, size_t n);

/*
 * The address of .eh_frame according to .eh_frame_hdr, for files without section headers.
 * returns  false when the header is malformed
 */
bool eh_frame_pointer(const uint8_t *header, size_t header_bytes, uint64_t header_vaddr,
		      uint64_t *frames_vaddr);

/*
 * Make tables from sections. Without a usable index (none, another encoding than 0x3b, not sorted)
 * a pass over .eh_frame builds one: 8 bytes per FDE.
 *
 * in       takes both buffers (from malloc), also when it fails
 * returns  0, ERR_FORMAT (no FDE at all), ERR_LIMIT, ERR_MEMORY
 */
int eh_frame_new(const struct eh_sections *in, struct eh_frame **out, struct err *err);
void eh_frame_free(struct eh_frame *tables);     /* NULL allowed */

/* A number that no other tables of this process have or will have: the key of rule caches. */
uint32_t eh_frame_id(const struct eh_frame *tables);
uint64_t eh_frame_first(const struct eh_frame *tables);      /* the lowest address in its index */
bool eh_frame_is_32_bit(const struct eh_frame *tables);
bool eh_frame_cfa_only(const struct eh_frame *tables);
size_t eh_frame_bytes(const struct eh_frame *tables);
uint32_t eh_frame_count(const struct eh_frame *tables);      /* FDEs in the index */
/* The range [*start, *end) of the nth FDE, by address; false when it is malformed. */
bool eh_frame_range(const struct eh_frame *tables, uint32_t n, uint64_t *start, uint64_t *end);

/* The first address of the function that an FDE describes at vaddr; false = none does. */
bool eh_frame_start(const struct eh_frame *tables, uint64_t vaddr, uint64_t *start);

/* Where a register of the caller (or the CFA) is found. */
enum eh_how {
	EH_UNSET,                       /* not mentioned: callee-saved registers keep their value */
	EH_SAME,
	EH_UNDEFINED,                  /* lost; for the return address: this is the thread's root */
	EH_AT,                          /* saved at CFA + value */
	EH_VALUE,                       /* is CFA + value; for the CFA itself: reg + value */
	EH_IN_REGISTER,                 /* is in reg */
	EH_AT_EXPRESSION,               /* saved where an expression says; value = its place */
	EH_EXPRESSION,                  /* is the result of an expression */
};

struct eh_rule {
	uint8_t how, reg;
	int32_t value;
};

/* The rules that hold in [start, end). */
struct eh_row {
	uint64_t start, end;
	bool signal;                    /* a signal frame: its caller was interrupted */
	uint8_t return_column;
	struct eh_rule cfa;             /* EH_VALUE or EH_EXPRESSION */
	struct eh_rule regs[EH_REGISTERS];
};

/*
 * Compute the row of an address.
 *
 * budget   instructions left; goes down by those executed
 * returns  EH_OK, EH_NONE or EH_BAD
 */
enum eh_result eh_frame_row(const struct eh_frame *tables, uint64_t vaddr, uint32_t *budget,
			    struct eh_row *out);

/*
 * clone() and clone3() end their FDE before the system call, because in the new thread its rules
 * would be wrong, and begin one where the child continues, with an undefined return address. This
 * gives the row for the few instructions between the two.
 *
 * out      the last row of the FDE before, which holds in the parent
 * returns  EH_OK; EH_NONE when the address is in no such gap; EH_BAD
 */
enum eh_result eh_frame_clone_row(const struct eh_frame *tables, uint64_t vaddr, uint32_t *budget,
				  struct eh_row *out);

/* What holds at one instruction of a function without an FDE. */
struct eh_code {
	uint64_t start, end;            /* [start, end) */
	uint32_t depth;                 /* the return address is at RSP + this */
	bool rbp_saved;              /* the caller's RBP is right below it; else RBP is untouched */
};

#define EH_CODE_MAX 48u                 /* instructions; a library's four functions have some 30 */
#define EH_CODE_BYTES 64u               /* enough of one function */

/*
 * Add a function by its code, as far as it can be followed (elf_eh_code.c). For the functions of a
 * program's start and end, which have no FDE; does nothing if there is one. Call before the tables
 * are shared. x86-64 only.
 */
void eh_frame_add_code(struct eh_frame *tables, uint64_t vaddr, const uint8_t *code, size_t n);

/* Find the instruction that holds the address; NULL = unknown. */
const struct eh_code *eh_frame_find_code(const struct eh_frame *tables, uint64_t vaddr);

/* The bytes of an expression at a rule's value; false when they lie outside the section. */
bool eh_frame_expression(const struct eh_frame *tables, int32_t value, const uint8_t **bytes,
			 size_t *n);

/* What an expression works on. */
struct eh_machine {
	const uint64_t *regs;           /* EH_REGISTERS of them */
	uint32_t known;                 /* a bit for each register with a value */
	/* Read n (1, 2, 4 or 8) bytes of the thread's memory; false when they are not available. */
	bool (*read)(void *ctx, uint64_t address, unsigned n, uint64_t *out);
	void *ctx;
	uint32_t *budget;
	bool is_32_bit;                 /* i386's register numbers, and addresses of 4 bytes */
};

/*
 * Run an expression on a stack that begins with `start` (NULL = empty).
 * returns  EH_OK, EH_BAD, EH_UNKNOWN_REGISTER or EH_UNREADABLE
 */
enum eh_result eh_evaluate(const uint8_t *bytes, size_t n, const uint64_t *start,
			   const struct eh_machine *machine, uint64_t *out);
