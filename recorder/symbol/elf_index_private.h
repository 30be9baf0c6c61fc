/* What elf_index.c builds, for elf_saved.c, which writes and reads it. */
#pragma once

#include "symbol/elf.h"

enum { TABLES = 2 };                /* .symtab, .dynsym; a saved index has all names in the first */

#define NAME_IN_DYNSYM 0x80000000u     /* top bit of a name: which string table */

struct elf_entry {
	uint32_t start;                /* address - base; ascending */
	uint32_t size;
	uint32_t name;
};

struct elf_strings {
	uint64_t offset, size;         /* in the file */
	char *kept;                    /* size bytes, or NULL */
};

struct elf_index {
	uint64_t base;                 /* lowest executable address */
	struct elf_entry *entries;
	uint32_t nentries;
	struct elf_strings strings[TABLES];
};
