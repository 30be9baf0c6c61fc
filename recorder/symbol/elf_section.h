/*
 * One section of an ELF file, by its name: for sections that only their name identifies. Any
 * thread.
 */
#pragma once

#include "symbol/elf.h"

#define ELF_SECTION_NAME_MAX 31

struct elf_section {
	uint64_t offset, size;        /* in the file; not checked against its end */
};

/*
 * name  at most ELF_SECTION_NAME_MAX bytes; sections without bytes in the file (NOBITS) do not
 *       count
 * returns  0; ERR_NOT_FOUND when there is none; ERR_FORMAT, ERR_IO, ERR_MEMORY
 */
int elf_section_find(const struct bytes *in, const struct elf_head *head, const char *name,
		     struct elf_section *out, struct err *err);
