/*
 * Hand-made ELF images: one executable segment, a build id, symbol tables, in memory.
 *
 *   0      header, program headers, build id note
 *   0x400  text_bytes of code (int3), mapped at vaddr: file offset = 0x400 + (address - vaddr)
 *   then   .symtab, .strtab, .dynsym, .dynstr, section headers
 *
 * Sections: 1 .text, 2 .data (not executable), 3 .symtab, 4 .strtab, 5 .dynsym, 6 .dynstr.
 */
#pragma once

#include "base/buf.h"

#define ELF_IMAGE_TEXT_AT 0x400u

enum elf_image_type { ELF_IMAGE_NOTYPE, ELF_IMAGE_OBJECT, ELF_IMAGE_FUNC, ELF_IMAGE_IFUNC = 10 };
enum elf_image_binding { ELF_IMAGE_LOCAL, ELF_IMAGE_GLOBAL, ELF_IMAGE_WEAK };

struct elf_image_symbol {
	const char *name;
	uint64_t value, size;
	enum elf_image_type type;
	enum elf_image_binding binding;
	unsigned section;               /* 0 = .text */
	bool undefined, dynamic;        /* dynamic: in .dynsym instead of .symtab */
};

struct elf_image {
	bool is32, no_sections;
	bool no_symtab;                 /* section 3 is none of any type that is read */
	uint16_t machine;               /* 0 = x86 */
	uint64_t vaddr, text_bytes;
	const char *build_id;           /* its bytes; NULL = none */
	size_t build_id_bytes;
	size_t padding;                 /* bytes added to .strtab, to make it large */
	const struct elf_image_symbol *symbols;
	size_t nsymbols;
};

/* Appends the image to an empty buffer. */
void elf_image_build(const struct elf_image *image, struct buf *out);
