/*
 * Hand-made unwind tables: a .eh_frame of CIEs and FDEs with programs given as bytes, and its
 * .eh_frame_hdr. struct cfi c = {.vaddr = 0x9000} is empty; each FDE belongs to the CIE before it.
 * cfi_sections() or cfi_tables() ends it and leaves it empty.
 */
#pragma once

#include "base/buf.h"
#include "unwind/elf_eh_frame.h"

#define CFI_FDES_MAX 64u

struct cfi_cie {                        /* 0 = what GCC writes for x86-64; in (): for i386 */
	unsigned version;               /* 1 */
	const char *augmentation;       /* "zR" */
	uint8_t encoding;               /* of addresses: 0x1b = pc-relative, 4 bytes */
	unsigned code_align;            /* 1 */
	int data_align;                 /* -8 (-4) */
	unsigned return_column;         /* 16 (8) */
	bool is64;                      /* with a 64-bit length field */
	const uint8_t *program;         /* NULL: def_cfa rsp 8, offset rip -8 (esp 4, eip -4) */
	size_t nprogram;
};

#define CFI_ABSOLUTE 0xe0u              /* stands for encoding 0 */

struct cfi {
	bool is_32_bit;
	uint64_t vaddr;                 /* of .eh_frame; .eh_frame_hdr lies 0x10000 before it */
	struct buf frames;
	size_t cie;
	struct cfi_cie shape;
	unsigned nfdes;
	struct cfi_fde { uint64_t start; size_t at; } fdes[CFI_FDES_MAX];
};

enum cfi_index {
	CFI_SORTED,                     /* as a linker makes it */
	CFI_UNSORTED,                   /* in the order of the FDEs */
	CFI_OTHER_ENCODING,             /* the table has 8-byte numbers */
	CFI_NONE,                       /* no .eh_frame_hdr */
};

void cfi_put_cie(struct cfi *c, const struct cfi_cie *cie);
void cfi_put_fde(struct cfi *c, uint64_t start, uint64_t bytes, const uint8_t *program, size_t n);

/* The sections, in malloc'ed buffers; .eh_frame ends in the zero length. */
void cfi_sections(struct cfi *c, enum cfi_index index, struct eh_sections *out);

/* The same made into tables; NULL when they are refused. */
struct eh_frame *cfi_tables(struct cfi *c, enum cfi_index index);
