/*
 * PE: what a program or library of Windows says about itself, and the functions that it names.
 *
 * pe_head_read() takes a few small reads, enough to check that a file is the image that a process
 * loaded (by the image's timestamp and size, which ETW's image events have) and which PDB belongs
 * to it. pe_functions() reads the COFF symbol table, which MinGW and clang leave in, and the
 * exports.
 *
 * PE32 and PE32+, little-endian. Every byte is checked. No host code; any thread.
 * Source: Microsoft's "PE Format"; the RSDS record: LLVM's "CodeView" of lib/Object/COFF.
 */
#pragma once

#include "symbol/bytes.h"
#include "symbol/rva_index.h"

#define PE_SECTIONS_MAX 96u
#define PE_SYMBOLS_MAX (8u << 20)            /* table entries looked at */
#define PE_STRINGS_MAX_BYTES ((uint64_t)64 << 20)
#define PE_EXPORTS_MAX 65536u
#define PE_BOUNDS_MAX (2u << 20)
#define PE_PDB_NAME_MAX 260u

struct pe_section {
	uint32_t rva, memory_bytes, file_at, file_bytes;
	bool executable;
};

struct pe_head {
	bool is64;
	uint16_t machine;                    /* 0x14c x86, 0x8664 x64, 0xaa64 ARM64 */
	uint32_t timestamp;              /* seconds since 1970, or a hash for reproducible builds */
	uint32_t image_bytes;                /* SizeOfImage */
	uint64_t image_base;
	bool has_pdb;
	uint8_t pdb_guid[16];                /* byte order as in the file: u32, u16, u16, 8 bytes */
	uint32_t pdb_age;
	/* as the linker wrote it, often a path on the build machine */
	char pdb_name[PE_PDB_NAME_MAX];
	uint32_t export_rva, export_bytes;
	uint32_t pdata_rva, pdata_bytes;     /* exception directory; x64 only, else 0 */
	uint32_t symbols_at, nsymbols;       /* COFF symbol table in the file; 0 = none */
	uint32_t nsections;
	struct pe_section sections[PE_SECTIONS_MAX];
};

#define PE_MACHINE_X86 0x14cu

/*
 * Skip the character that x86 compilers put in front of names: _cdecl, _stdcall@8, @fastcall@8.
 * demangle() removes what follows the name.
 */
static inline const char *pe_undecorated(uint32_t machine, const char *name, size_t *n)
{
	bool skips = machine == PE_MACHINE_X86 && *n > 1 && (*name == '_' || *name == '@');

	*n -= skips;
	return name + skips;
}

/* returns  0, ERR_FORMAT (not PE, cut off, impossible), ERR_IO */
int pe_head_read(const struct bytes *in, struct pe_head *out, struct err *err);

/* The section that holds an RVA, or NULL. */
const struct pe_section *pe_section_at(const struct pe_head *head, uint32_t rva);

/*
 * Add the functions of the COFF symbol table and of the exports to an index. A file without any
 * adds nothing.
 *
 * Exports are few among many functions. On x64, where .pdata bounds nearly all functions, an
 * export's name ends with its function. Elsewhere an export names its first byte only, because
 * nobody knows what follows.
 *
 * returns  0, ERR_FORMAT, ERR_LIMIT, ERR_MEMORY, ERR_IO
 */
int pe_functions(const struct bytes *in, const struct pe_head *head, struct rva_index *index,
		 struct err *err);

/*
 * Add where x64 functions begin and end, from .pdata: bounds for the names of this image's PDB too.
 * Functions that call nothing and keep nothing on the stack are not in it.
 */
int pe_bounds(const struct bytes *in, const struct pe_head *head, struct rva_index *index,
	      struct err *err);

struct symbol_env;
struct object_key;

/*
 * The file of an image that some process loaded: at its path, or on the symbol path. Any thread.
 *
 * key      what identifies it: the PDB's GUID and age, or dev = timestamp and ino = SizeOfImage
 * file     open, for os_close(); *bytes are its
 * returns  false: it is not there, or another is. Servers are not asked
 */
bool pe_image_find(const struct symbol_env *env, const struct object_key *key,
		   struct os_file **file, struct bytes *bytes, struct pe_head *head);
