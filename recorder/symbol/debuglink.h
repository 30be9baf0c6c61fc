/*
 * The debug file that an ELF file names by a link, for files without a build id or whose debug file
 * is not stored by build id. Section .gnu_debuglink holds its name and the CRC-32 of all its bytes.
 *
 * Anybody could put a file of that name there, so none is trusted before its CRC was computed,
 * which reads it whole. Any thread.
 */
#pragma once

#include "symbol/elf_file.h"

#define DEBUGLINK_NAME_MAX 255
#define DEBUGLINK_MAX_NS (5 * NS_PER_SEC)     /* for reading a debug file */

struct debuglink {
	char name[DEBUGLINK_NAME_MAX + 1];    /* a file name without directories */
	uint32_t crc;
};

/* returns  0; ERR_NOT_FOUND when it has no link; ERR_FORMAT, ERR_LIMIT, ERR_IO */
int debuglink_read(const struct bytes *in, const struct elf_head *head, struct debuglink *out,
		   struct err *err);

/* CRC-32 of all bytes, as zlib's crc32(). ERR_LIMIT when it takes longer than DEBUGLINK_MAX_NS. */
int debuglink_crc(const struct bytes *in, uint32_t *out, struct err *err);

/*
 * Find and check it: beside the object, in .debug/ there, under /usr/lib/debug/.
 *
 * head   of the object's own file: the debug file must be for the same machine
 * path   set to where it was found; empty on failure
 * out    close with elf_file_close()
 * returns  0; ERR_NOT_FOUND when nothing is there; ERR_FORMAT when only other files are; ERR_LIMIT,
 *          ERR_IO
 */
int debuglink_open(const struct object *object, uint32_t pid, const struct elf_head *head,
		   const struct debuglink *link, struct buf *path, struct elf_file *out,
		   struct err *err);

/*
 * The debug file of an object, if there is one: by build id, else by the link.
 *
 * own     the object's own file, open
 * linked  set to where it was found when by the link, else emptied
 * out     close with elf_file_close()
 * returns  0; ERR_NOT_FOUND when there is none; else why a linked one is not used, as
 *          debuglink_open()
 */
int debug_file_open(const struct object *object, uint32_t pid, const struct elf_file *own,
		    struct buf *linked, struct elf_file *out, struct err *err);
