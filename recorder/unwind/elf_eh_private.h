/*
 * What elf_eh_frame.c, elf_eh_program.c, elf_eh_expression.c, elf_eh_code.c and rule.c share:
 * bounded reading, and a parsed FDE. Nobody else includes it.
 */
#pragma once

#include "base/bytes.h"
#include "unwind/elf_eh_frame.h"

/* A reader that turns bad at the first missing byte, and stays so; from then on it gives 0. */
struct eh_cursor {
	const uint8_t *bytes;
	size_t at, end;
	uint64_t vaddr;                 /* the address of bytes[0] */
	bool is_32_bit;
	bool bad;
};

/* n = 1, 2, 4 or 8 */
static inline uint64_t eh_get(struct eh_cursor *c, unsigned n)
{
	if (c->bad || c->end - c->at < n) {
		c->bad = true;
		return 0;
	}
	c->at += n;
	return le_sized(c->bytes + c->at - n, n);
}

static inline int64_t eh_get_signed(struct eh_cursor *c, unsigned n)
{
	uint64_t v = eh_get(c, n), sign = (uint64_t)1 << (8 * n - 1);

	return (int64_t)((v ^ sign) - sign);
}

/* LEB128; bits over the 64th are dropped; a number longer than 16 bytes is bad. */
uint64_t eh_get_uleb(struct eh_cursor *c);
int64_t eh_get_sleb(struct eh_cursor *c);

enum {
	EH_ENCODING_OMIT = 0xff,
	EH_ENCODING_INDIRECT = 0x80,
	EH_ENCODING_PCREL = 0x10,
	EH_ENCODING_DATAREL = 0x30,
	EH_ENCODING_FORM = 0x0f,
	EH_ENCODING_BASE = 0x70,
	EH_ENCODING_TABLE = 0x3b,      /* .eh_frame_hdr's: relative to the header, 4 bytes signed */
};

/* The register of a DWARF number; EH_REGISTERS: one that we do not follow. */
static inline unsigned eh_register(bool is_32_bit, uint64_t number)
{
	static const uint8_t i386[] = {EH_RAX, EH_RCX, EH_RDX, EH_RBX, EH_RSP, EH_RBP, EH_RSI,
				       EH_RDI, EH_RIP};

	if (is_32_bit)
		return number < sizeof(i386) ? i386[number] : EH_REGISTERS;
	return number < EH_REGISTERS ? (unsigned)number : EH_REGISTERS;
}

/* An address of i386 wraps at 4 GB. */
static inline uint64_t eh_address(bool is_32_bit, uint64_t v)
{
	return is_32_bit ? v & UINT32_MAX : v;
}

/* A pointer; data-relative ones count from data_vaddr. Indirect ones are bad. */
uint64_t eh_get_pointer(struct eh_cursor *c, unsigned encoding, uint64_t data_vaddr);

struct eh_cie {
	size_t at;                      /* of its length field; SIZE_MAX = none parsed yet */
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointers;               /* the encoding of addresses in its FDEs */
	uint8_t return_column;
	bool augmented, signal;         /* 'z', 'S' */
	size_t program, end;            /* initial instructions */
};

struct eh_fde {
	struct eh_cie cie;
	uint64_t start, end;
	size_t program, program_end;
};

struct eh_frame {
	struct eh_sections in;
	uint32_t id;
	uint32_t count;
	const uint8_t *index;           /* pairs of i32, counted from base: address, FDE */
	uint64_t base;
	uint64_t first;      /* the lowest address in the index: rule caches need it at each step */
	uint8_t *own_index;             /* NULL when .eh_frame_hdr's is used */
	struct eh_code code[EH_CODE_MAX];
	uint32_t ncode;
};

/* Run an FDE's program up to vaddr. EH_OK or EH_BAD. */
enum eh_result eh_program_run(const struct eh_frame *tables, const struct eh_fde *fde,
			      uint64_t vaddr, uint32_t *budget, struct eh_row *out);
