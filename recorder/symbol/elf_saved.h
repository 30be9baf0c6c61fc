/*
 * An index of functions as a file: what the symbol cache keeps of an ELF object, by build id.
 *
 * Opening it needs no sorting, and it serves when the object's own file has gone. The bytes are our
 * own, but a disk may have cut or changed them: a checksum covers them all, and everything that an
 * access depends on is checked as well. Portable; any thread.
 */
#pragma once

#include "symbol/elf.h"

#define ELF_SAVED_MAX_BYTES ((uint64_t)128 << 20)

struct elf_saved {
	uint8_t build_id_bytes;
	uint8_t build_id[BUILD_ID_MAX];
	uint64_t file_bytes, mtime_ns;       /* of the object's file when it was read */
	bool complete;                       /* includes .symtab: a debug file would add little */
	struct elf_head head;                /* only what elf_vaddr() and elf_offset() need */
	struct elf_index *index;
	uint32_t checksum;                   /* tells one saved file from another */
};

/*
 * names    where the index's names are, if they are not in memory
 * out      appended to an empty buffer
 * returns  0, ERR_LIMIT when the names are too large to keep, ERR_MEMORY, ERR_IO, ERR_FORMAT
 */
int elf_saved_write(const struct elf_saved *saved, const struct bytes *names, struct buf *out,
		    struct err *err);

/*
 * out->index belongs to the caller; its names are read from in, unless there are few
 * (elf_index_has_names()).
 * returns  0, ERR_FORMAT when damaged or of another version, ERR_MEMORY, ERR_IO
 */
int elf_saved_read(const struct bytes *in, struct elf_saved *out, struct err *err);

/* Does it begin like the file with this checksum? Cheap, for reopening it. */
bool elf_saved_same(const struct bytes *in, uint32_t checksum);
