/*
 * Symbols that a runtime exports, found in the target's memory: ELF header, PT_DYNAMIC, DT_SYMTAB,
 * DT_STRTAB, found by DT_GNU_HASH as the dynamic linker finds them. glibc has added the base to the
 * addresses in the dynamic section, musl has not.
 *
 * Pure but for memory->read(); any thread.
 */
#pragma once

#include "managed/reader.h"

struct managed_export {
	const char *name;
	uint64_t at, size;                   /* out: its address; untouched: not defined there */
};

/*
 * base     where the first byte of the file is mapped
 * returns  0, ERR_IO
 */
int managed_exports_read(const struct managed_memory *memory, uint64_t base,
			 struct managed_export *wanted, unsigned nwanted, struct err *err);
