/*
 * The sections of an ELF file: the table of all, one by its name, and the file that is packed into
 * one. Any thread.
 */
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
/* The first of a type, or NULL. */
const struct elf_section *elf_section_of_type(const struct elf_section *sections, uint32_t n,
					      uint32_t type);

/*
 * name  at most ELF_SECTION_NAME_MAX bytes; sections without bytes in the file (NOBITS) do not
 *       count
 * returns  0; ERR_NOT_FOUND when there is none; ERR_FORMAT, ERR_IO, ERR_MEMORY
 */
int elf_section_find(const struct bytes *in, const struct elf_head *head, const char *name,
		     struct elf_section *out, struct err *err);

#define ELF_MINIDEBUG_PACKED_MAX_BYTES ((uint64_t)16 << 20)
#define ELF_MINIDEBUG_MAX_BYTES ((size_t)64 << 20)      /* unpacked */

/*
 * Unpack MiniDebugInfo: the .symtab of a stripped program, as an ELF file packed with xz into its
 * section .gnu_debugdata (source: GDB manual, "Debugging information in a special section"). All
 * programs of Fedora, RHEL and their relatives have it; it holds what .dynsym lacks.
 *
 * out      appended to an empty buffer: the packed file, for elf_index_new()
 * returns  0; ERR_NOT_FOUND when there is none; ERR_FORMAT, ERR_LIMIT, ERR_IO, ERR_MEMORY;
 *          ERR_UNSUPPORTED when this machine cannot unpack it (xz.h)
 */
int elf_minidebug_read(const struct bytes *in, const struct elf_head *head, struct buf *out,
		       struct err *err);
