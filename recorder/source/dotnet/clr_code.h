/*
 * Names of generated .NET code read in a program's memory, for programs whose diagnostic socket is
 * closed (DOTNET_EnableDiagnostics=0). .NET 8 and 9, x86-64; of other versions nothing is found.
 *
 *	g_dacTable of the runtime, u64 0 -> ranges of code: five levels of 256 pointers, then
 *		fragments {next, begin, end, section}; bit 0 of a pointer is a flag
 *	section		u32 flags 0x10: 2 = generated, and never given back; heap 0x28
 *	heap		where its map begins 0x20, its map 0x28: a nibble for each 32 bytes, the
 *			highest of a u32 first; n = a method begins 4 * (n - 1) behind
 *	method		u64 at start - 8 -> header; its MethodDesc at 0x18
 *	MethodDesc	u16 0: low 12 bits of the token; u8 2: its number of 8 bytes in a chunk,
 *			whose head has 0x18 bytes: the type's table 0; u16 0x12: high 12 bits
 *	table of a type	u16 0xa or u32 8 >> 8: the type's number in the metadata; module 0x18
 *	module		somewhere a pointer to its name, which stands among the strings of its
 *			metadata; these begin with "BSJB"
 *
 * A name counts only if the metadata say that the method is one of that type: a layout that is not
 * understood gives no name. Memory of such code is not used again, so it may be read later than it
 * was sampled. Code that may be given back (dynamic methods, collectible assemblies) has no name.
 *
 * All of it is hostile: bounded in reads and bytes. Pure but for memory->read(); one thread.
 * Source: dotnet/runtime, src/coreclr/vm/codeman.h, method.hpp, methodtable.h; checked beside the
 * runtime's own events, .NET 8.
 */
#pragma once

#include "managed/reader.h"
#include "symbol/clr_metadata.h"

#define CLR_CODE_MODULES_MAX 1024u
#define CLR_CODE_BYTES_MAX ((size_t)16 << 20)        /* of metadata kept; else read again */
#define CLR_METADATA_MAX_BYTES (16u << 20)           /* of one module */

struct clr_module;

struct clr_code {
	uint64_t ranges;                     /* 0 = not found */
	struct clr_module *modules;
	uint32_t nmodules, room;
	size_t bytes;                        /* of metadata that are kept */
};

/* base: where the first byte of the runtime's file is mapped. false: it has no such table */
bool clr_code_open(struct clr_code *c, const struct managed_memory *memory, uint64_t base);
void clr_code_free(struct clr_code *c);

struct clr_method {
	uint64_t start;                      /* of its code */
	char name[CLR_NAME_BYTES + 1];       /* "Namespace.Class.Method" */
	char module[CLR_MODULE_BYTES + 1];   /* without ".dll" */
};

/* The method whose generated code is at this address. false: none that is sure */
bool clr_code_find(struct clr_code *c, const struct managed_memory *memory, uint64_t address,
		   struct clr_method *out);
