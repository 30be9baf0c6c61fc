/*
 * The variables that libjvm exports for debuggers, found in the target's memory: ELF header,
 * PT_DYNAMIC, DT_SYMTAB, DT_STRTAB, and the number of symbols by DT_GNU_HASH. glibc has added the
 * base to the addresses in the dynamic section, musl has not.
 *
 * Private to this folder; pure but for memory->read().
 */
#pragma once

#include "managed/reader.h"

enum hotspot_export {
	X_STRUCTS, X_STRUCT_STRIDE, X_STRUCT_TYPE, X_STRUCT_FIELD, X_STRUCT_STRING,
	X_STRUCT_STATIC, X_STRUCT_OFFSET, X_STRUCT_ADDRESS,
	X_TYPES, X_TYPE_STRIDE, X_TYPE_NAME, X_TYPE_SIZE,
	HOTSPOT_EXPORTS
};

struct hotspot_exports {
	uint64_t at[HOTSPOT_EXPORTS];        /* addresses of the variables */
};

/* returns  0, ERR_IO, or ERR_UNSUPPORTED: it exports no such tables */
int hotspot_exports_read(const struct managed_memory *memory, uint64_t base,
			 struct hotspot_exports *out, struct err *err);
