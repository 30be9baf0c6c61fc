/*
 * Probes that a program contains (USDT, sys/sdt.h): the notes of section .note.stapsdt.
 *
 *	u32 8 ("stapsdt" and NUL); u32 description bytes; u32 type 3; "stapsdt\0"; then, ELF64:
 *	u64 address of the probe; u64 address of .stapsdt.base when it was linked; u64 address of
 *	its semaphore, 0 = none; provider, NUL, name, NUL, arguments, NUL; padded to 4 bytes
 *
 * Addresses move by as much as .stapsdt.base moved (prelink). A semaphore other than zero means
 * that somebody listens and the program computes the arguments. An argument: "-4@112(%rsp)": bytes,
 * negative = signed, @, then the operand in assembler. Source: SystemTap wiki,
 * UserSpaceProbeImplementation.
 *
 * ELF64, x86-64. Bytes are not trusted. No host code; any thread.
 */
#pragma once

#include "symbol/elf.h"

#define STAPSDT_SECTION_MAX_BYTES ((uint64_t)4 << 20)
#define STAPSDT_PROBES_MAX 16384u
#define STAPSDT_NAME_MAX 80
#define STAPSDT_ARGS_MAX 256
#define STAPSDT_ARGUMENTS_MAX 12u

struct stapsdt {
	char provider[STAPSDT_NAME_MAX], name[STAPSDT_NAME_MAX];
	char arguments[STAPSDT_ARGS_MAX];    /* "8@%rdi -4@112(%rsp)" */
	uint64_t offset;                     /* of the probe, in the file */
	uint64_t semaphore;                  /* the same; 0 = none */
};

/*
 * Call one() for each, in the file's order; a non-zero result ends the loop and is returned. Probes
 * whose addresses lie in no segment, or whose names are too long, are left out.
 * returns  0; ERR_NOT_FOUND when it has none; ERR_UNSUPPORTED when not ELF64; ERR_FORMAT,
 *          ERR_LIMIT, ERR_MEMORY, ERR_IO
 */
typedef int stapsdt_one(void *ctx, const struct stapsdt *probe);
int stapsdt_each(const struct bytes *in, const struct elf_head *head, stapsdt_one *one, void *ctx,
		 struct err *err);

enum stapsdt_place { STAPSDT_UNKNOWN, STAPSDT_REGISTER, STAPSDT_CONSTANT, STAPSDT_MEMORY };

struct stapsdt_argument {
	enum stapsdt_place place;            /* UNKNOWN: an operand that we do not understand */
	uint8_t bytes;                       /* 1, 2, 4, 8 */
	bool is_signed;
	uint8_t reg;    /* perf's number (asm/perf_regs.h): AX 0 ... SP 7, IP 8, R8 16 ... R15 23 */
	int64_t value;  /* the constant, or the offset added to the register of MEMORY */
};

/* Parse the arguments of a probe; returns how many, at most STAPSDT_ARGUMENTS_MAX. */
unsigned stapsdt_arguments(const char *text, struct stapsdt_argument out[STAPSDT_ARGUMENTS_MAX]);
