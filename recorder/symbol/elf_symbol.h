/*
 * The address of a function, by its name: for probes. Any thread.
 */
#pragma once

#include "base/nearest.h"
#include "symbol/elf.h"

#define ELF_SYMBOL_NAME_MAX 512

/* Names near the one that was not found. */
struct elf_near {
	char names[NEAREST_MAX][ELF_SYMBOL_NAME_MAX];
	unsigned n;
};

/*
 * Find a function of .symtab or .dynsym (FUNC or IFUNC, defined) by its linker's name; with '*' at
 * the end, the first that begins so.
 *
 * near     out: names[0] is its whole name; when not found, names like it. NULL = not wanted
 * returns  0; ERR_NOT_FOUND; ERR_FORMAT, ERR_LIMIT, ERR_MEMORY, ERR_IO
 */
int elf_symbol_find(const struct bytes *in, const struct elf_head *head, const char *name,
		    uint64_t *vaddr, struct elf_near *near, struct err *err);
