/* The sections of an ELF file: the table of all, and one by its name. Any thread. */
#pragma once

#include "symbol/elf.h"

#define ELF_SECTION_NAME_MAX 31

struct elf_section {
	uint32_t name, type, link;    /* name: offset in the section of names */
	uint64_t flags, addr, offset, size, entsize;   /* offset, size: not checked */
};

/*
 * out      head->nsections of them, from malloc, never NULL on success
 * returns  0; ERR_FORMAT, ERR_IO, ERR_MEMORY
 */
int elf_sections_read(const struct bytes *in, const struct elf_head *head,
		      struct elf_section **out, struct err *err);

/*
 * name  at most ELF_SECTION_NAME_MAX bytes; sections without bytes in the file (NOBITS) do not
 *       count
 * returns  0; ERR_NOT_FOUND when there is none; ERR_FORMAT, ERR_IO, ERR_MEMORY
 */
int elf_section_find(const struct bytes *in, const struct elf_head *head, const char *name,
		     struct elf_section *out, struct err *err);
