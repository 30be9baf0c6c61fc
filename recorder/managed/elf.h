/*
 * The program headers of an ELF file that a process maps, read in the target's memory.
 *
 * Pure but for memory->read(); any thread. Source: elf(5).
 */
#pragma once

#include "managed/reader.h"

#define MANAGED_PHDRS_MAX 64u
#define MANAGED_PHDR_BYTES 56u            /* of one header */

enum { MANAGED_PT_LOAD = 1, MANAGED_PT_DYNAMIC = 2, MANAGED_PT_EH_FRAME_HDR = 0x6474e550 };

struct managed_elf {
	uint8_t programs[MANAGED_PHDRS_MAX * MANAGED_PHDR_BYTES];
	unsigned n;
	uint64_t bias;                       /* what to add to the file's addresses */
};

/*
 * base     where the first byte of the file is mapped
 * returns  false: it cannot be read, or is none of 64 bits
 */
bool managed_elf_read(const struct managed_memory *memory, uint64_t base, struct managed_elf *out);

/* Where in memory the segment of a type begins, the last one if there are several; 0 = none. */
uint64_t managed_elf_segment(const struct managed_elf *elf, uint32_t type);
/* Where in the file an address of it is; false: nowhere. */
bool managed_elf_offset(const struct managed_elf *elf, uint64_t vaddr, uint64_t *offset);
