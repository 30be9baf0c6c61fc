/*
 * ELF: what a program or library says about itself, and an index of its functions.
 *
 * elf_head_read() is cheap (two or three small reads): segments and build id, enough to check that
 * a file is the one a process maps. elf_index_new() reads .symtab and .dynsym into a sorted index
 * of 12 bytes per function. Names stay in the file unless its string table is small, so node's
 * 86,000 functions take 1 MB; to get names of a big one, keep the file open.
 *
 * ELF32 and ELF64, little-endian. Bytes are not trusted: everything is bounds-checked, and each
 * ceiling gives an error sentence that starts with what is wrong, because the caller knows the
 * path. No host code; any thread, one at a time per index.
 */
#pragma once

#include "model/frame.h"
#include "symbol/bytes.h"

#define ELF_FILE_MAX_BYTES ((uint64_t)2 << 30)
#define ELF_SEGMENTS_MAX 64u            /* PT_LOADs; programs have 2 to 10 */
#define ELF_SYMBOLS_MAX (16u << 20)     /* table entries looked at */
#define ELF_FUNCTIONS_MAX (2u << 20)    /* kept; Chromium has 0.7 M */
#define ELF_STRINGS_MAX_BYTES ((uint64_t)64 << 20)   /* read while indexing */
#define ELF_STRINGS_KEPT_BYTES ((uint64_t)256 << 10) /* kept, so that the file can be closed */
#define ELF_INDEX_MAX_NS (5 * NS_PER_SEC)

struct elf_segment {                  /* a PT_LOAD */
	uint64_t offset, vaddr, file_bytes, memory_bytes;
	bool executable;
};

enum { ELF_386 = 3, ELF_X86_64 = 62 };     /* e_machine */

struct elf_head {
	bool is64;
	uint16_t machine;               /* ELF_386, ELF_X86_64 or another */
	uint8_t build_id_bytes;       /* 0 = none, or too long for a key */
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t nsegments;
	struct elf_segment segments[ELF_SEGMENTS_MAX];
	struct elf_segment unwind;    /* PT_GNU_EH_FRAME: .eh_frame_hdr; file_bytes 0 = none */
	struct elf_segment dynamic;   /* PT_DYNAMIC; file_bytes 0 = none */
	uint64_t entry;               /* where it starts, a vaddr; 0 = nowhere */
	uint64_t sections_at;         /* section headers in the file; nsections 0 = stripped off */
	uint32_t nsections;
};

/* returns  0, ERR_FORMAT (not ELF, cut off, absurd), ERR_LIMIT, ERR_IO */
int elf_head_read(const struct bytes *in, struct elf_head *out, struct err *err);

/*
 * Convert file offset <-> address through the segment that holds it (an executable one first). A
 * mapping's pgoff + (ip - start) is a file offset, so this serves ET_EXEC, PIE and libraries alike.
 */
bool elf_vaddr(const struct elf_head *head, uint64_t offset, uint64_t *vaddr);
bool elf_offset(const struct elf_head *head, uint64_t vaddr, uint64_t *offset);
/* The executable segment that holds an address in memory, or NULL. */
const struct elf_segment *elf_code_segment(const struct elf_head *head, uint64_t vaddr);

#define ELF_CALLED_MAX 10u              /* _init, _fini, and four of each array */

/*
 * The functions that the dynamic linker calls after loading the file and before unloading it:
 * DT_INIT, DT_FINI, and the first of DT_INIT_ARRAY and DT_FINI_ARRAY, if the file holds their
 * addresses (GNU ld writes them; other linkers leave them to relocations).
 * returns  how many; also 0 when it cannot be read
 */
uint32_t elf_called(const struct bytes *in, const struct elf_head *head,
		    uint64_t out[ELF_CALLED_MAX]);

struct elf_function {
	uint64_t vaddr;
	uint32_t size;                /* bytes */
	uint32_t name;                /* for elf_function_name() */
};

#define ELF_TABLES 2u                   /* .symtab, .dynsym */

struct elf_index {
	uint64_t base;                /* lowest executable address */
	struct elf_entry {
		uint32_t start;       /* address - base; ascending */
		uint32_t size, name;
	} *entries;
	uint32_t nentries;
	/* The names' string tables; a saved index (elf_saved.h) has all names in the first. */
	struct elf_strings {
		uint64_t offset, size;       /* in the file; size 0 = there is no such table */
		char *kept;                  /* size bytes, or NULL = not in memory */
	} strings[ELF_TABLES];
};

/*
 * Index the functions of .symtab and .dynsym: FUNC, IFUNC, and labels without a type in executable
 * sections, as hand-written assembly leaves. A file without any gives an empty index. Of several
 * names for one address one stays: typed before untyped, global before weak before local, .symtab
 * before .dynsym, fewer leading underscores, first in the table. A symbol without a size reaches to
 * the next one, or to the end of its section. Stubs of calls to other files (elf_plt.h) are called
 * "name@plt".
 *
 * mini     its unpacked .gnu_debugdata (elf_section.h), for a file without .symtab; NULL = none
 * returns  0, ERR_FORMAT, ERR_LIMIT (a ceiling, including time), ERR_MEMORY, ERR_IO
 */
int elf_index_new(const struct bytes *in, const struct elf_head *head, const struct bytes *mini,
		  struct elf_index **out, struct err *err);
void elf_index_free(struct elf_index *index);        /* NULL allowed */
size_t elf_index_bytes(const struct elf_index *index);
/* Are all names in memory? Then elf_function_name() needs no file. */
bool elf_index_has_names(const struct elf_index *index);

/* Find the innermost function that holds the address; false in gaps. */
bool elf_find(const struct elf_index *index, uint64_t vaddr, struct elf_function *out);

/* Its name as in the table, cut to n - 1 bytes. Does not read in when elf_index_has_names(). */
int elf_function_name(const struct elf_index *index, const struct bytes *in,
		      const struct elf_function *function, char *out, size_t n, struct err *err);

/* Load a string table, with a NUL at its end; *out from malloc. ERR_MEMORY, ERR_IO, ERR_FORMAT. */
int elf_strings_load(const struct elf_strings *strings, const struct bytes *in, char **out,
		     struct err *err);
#define ELF_NAME_IN_DYNSYM 0x80000000u  /* top bit of an entry's name: the second string table */
#define ELF_NAME_OF_STUB 0x40000000u    /* the next one: "@plt" follows the text */
#define ELF_NAME_BITS (ELF_NAME_IN_DYNSYM | ELF_NAME_OF_STUB)
