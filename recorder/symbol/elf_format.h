/*
 * The ELF structures, as far as we read them; private to symbol/.
 *
 * Source: System V ABI, chapters "Object Files" (headers, sections, symbol table) and "Program
 * Loading" (program header, notes); the build id note: GNU ld, --build-id. Byte offsets; "word" is
 * 4 bytes in ELF32 and 8 in ELF64.
 *
 *   header            ELF32  ELF64        section header    ELF32  ELF64
 *   magic 7f E L F        0      0        type       u32        4      4
 *   class 1=32 2=64       4      4        flags      word       8      8
 *   data  1=little        5      5        addr       word      12     16
 *   machine   u16        18     18        offset     word      16     24
 *   phoff     word       28     32        size       word      20     32
 *   shoff     word       32     40        link       u32       24     40
 *   phentsize u16        42     54        entsize    word      36     56
 *   phnum     u16        44     56        (bytes)             40     64
 *   shentsize u16        46     58
 *   shnum     u16        48     60        symbol            ELF32  ELF64
 *   (bytes)              52     64        name       u32        0      0
 *                                         value      word       4      8
 *   program header    ELF32  ELF64        size       word       8     16
 *   type      u32         0      0        info       u8        12      4   binding << 4 | type
 *   offset    word        4      8        shndx      u16       14      6
 *   vaddr     word        8     16        (bytes)             16     24
 *   filesz    word       16     32
 *   memsz     word       20     40        note: namesz u32, descsz u32, type u32, name, desc;
 *   flags     u32        24      4        name and desc padded to 4 bytes (8 when the segment is
 *   align     word       28     48        aligned to 8). Build id: name "GNU\0", type 3.
 *   (bytes)              32     56
 */
#pragma once

#include "base/bytes.h"
#include "symbol/elf.h"

struct elf_layout {
	unsigned word;
	struct { unsigned phoff, shoff, phentsize, phnum, shentsize, shnum, bytes; } header;
	struct { unsigned offset, vaddr, filesz, memsz, flags, align, bytes; } program;
	struct { unsigned addr, offset, size, link, entsize, bytes; } section;
	struct { unsigned value, size, info, shndx, bytes; } symbol;
};

extern const struct elf_layout elf_layout32, elf_layout64;

enum {
	ELF_MACHINE_AT = 18,
	ELF_ENTRY_AT = 24,            /* a word */
	ELF_MACHINE_ARM = 40,
	ELF_PT_LOAD = 1,
	ELF_PT_DYNAMIC = 2,
	ELF_PT_NOTE = 4,
	ELF_PT_GNU_EH_FRAME = 0x6474e550,
	ELF_PF_X = 1,
	ELF_NOTE_BUILD_ID = 3,
	ELF_DT_INIT = 12,        /* dynamic section: pairs of words, tag and value, up to tag 0 */
	ELF_DT_FINI = 13,
	ELF_DT_INIT_ARRAY = 25,
	ELF_DT_FINI_ARRAY = 26,
	ELF_DT_INIT_ARRAYSZ = 27,
	ELF_DT_FINI_ARRAYSZ = 28,
	ELF_SECTION_FLAGS_AT = 8,
	ELF_SHT_SYMTAB = 2,
	ELF_SHT_STRTAB = 3,
	ELF_SHT_DYNSYM = 11,
	ELF_SHF_EXECINSTR = 4,
	ELF_SHN_UNDEF = 0,
	ELF_SHN_LORESERVE = 0xff00,
	ELF_STT_NOTYPE = 0,
	ELF_STT_FUNC = 2,
	ELF_STT_GNU_IFUNC = 10,
	ELF_STB_LOCAL = 0,
	ELF_STB_WEAK = 2,
	ELF_EXTENDED = 0xffff,        /* PN_XNUM: the real number stands elsewhere */
};

static inline const struct elf_layout *elf_layout_of(const struct elf_head *head)
{
	return head->is64 ? &elf_layout64 : &elf_layout32;
}

struct elf_note {
	uint32_t type, name_bytes, desc_bytes;
	const uint8_t *name, *desc;
};

/* Read a note, which ends at a multiple of align (4 or 8); false at the end, or when cut off. */
bool elf_note_next(struct cursor *c, unsigned align, struct elf_note *out);
