/*
 * MiniDebugInfo: the .symtab of a stripped program, as an ELF file packed with xz into its section
 * .gnu_debugdata (source: GDB manual, "Debugging information in a special section"). All programs
 * of Fedora, RHEL and their relatives have it; it holds what .dynsym lacks. Any thread.
 */
#pragma once

#include "symbol/elf.h"

#define ELF_MINIDEBUG_PACKED_MAX_BYTES ((uint64_t)16 << 20)
#define ELF_MINIDEBUG_MAX_BYTES ((size_t)64 << 20)      /* unpacked */

/*
 * out      appended to an empty buffer: the packed file, for elf_index_new_mini()
 * returns  0; ERR_NOT_FOUND when there is none; ERR_FORMAT, ERR_LIMIT, ERR_IO, ERR_MEMORY;
 *          ERR_UNSUPPORTED when this machine cannot unpack it (xz.h)
 */
int elf_minidebug_read(const struct bytes *in, const struct elf_head *head, struct buf *out,
		       struct err *err);
