/*
 * The unwind tables of a real ELF64 file, for tests: sections found by the section headers, or by
 * PT_GNU_EH_FRAME alone, as in a file without them. Trusts the file, which is one of this machine.
 */
#pragma once

#include "unwind/elf_eh_frame.h"

#define UNWIND_FILE_SEGMENTS 32u

struct unwind_file {
	struct eh_frame *tables;        /* NULL = the file has none */
	unsigned nsegments;
	struct { uint64_t offset, vaddr, bytes; } segments[UNWIND_FILE_SEGMENTS];
};

enum unwind_file_how {
	UNWIND_FILE_SECTIONS,           /* both sections */
	UNWIND_FILE_HEADER_ONLY,        /* .eh_frame by .eh_frame_hdr, to the segment's end */
	UNWIND_FILE_NO_INDEX,           /* .eh_frame alone: the index is built */
};

/* returns  false when the file is not there or is no ELF64 */
bool unwind_file_open(const char *path, enum unwind_file_how how, struct unwind_file *out);
void unwind_file_close(struct unwind_file *file);

/* File offset -> vaddr; UINT64_MAX when no segment holds it. */
uint64_t unwind_file_vaddr(const struct unwind_file *file, uint64_t offset);
