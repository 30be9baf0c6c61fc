/*
 * The debug file that an ELF file names by a link, for those without a build id or where the file
 * is not kept by build id: section .gnu_debuglink has its name and the CRC-32 of all its bytes.
 *
 * Anybody could put a file by that name there, so none is believed before its CRC was computed,
 * which reads it whole. Any thread.
 */
#ifndef SYMBOL_DEBUGLINK_H
#define SYMBOL_DEBUGLINK_H

#include "symbol/elf_file.h"

#define DEBUGLINK_NAME_MAX 255
#define DEBUGLINK_MAX_NS (5 * NS_PER_SEC)        /* for reading a debug file */

struct debuglink {
	char name[DEBUGLINK_NAME_MAX + 1];    /* of a file: no directory */
	uint32_t crc;
};

/* returns  0; ERR_NOT_FOUND it has no link; ERR_FORMAT, ERR_LIMIT, ERR_IO */
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
 * returns  0; ERR_NOT_FOUND nothing is there; ERR_FORMAT only other files are; ERR_LIMIT, ERR_IO
 */
int debuglink_open(const struct object *object, uint32_t pid, const struct elf_head *head,
		   const struct debuglink *link, struct buf *path, struct elf_file *out,
		   struct err *err);

/* Open again what debuglink_open() found; ERR_FORMAT when size or time of change differ. */
int debuglink_reopen(const char *path, const struct elf_file *was, struct elf_file *out,
		     struct err *err);

/*
 * The debug file of an object, if there is one: by build id, else by the link.
 *
 * own     the object's own file, open
 * linked  set to where it was found when by the link, else emptied
 * out     close with elf_file_close()
 * returns  0; ERR_NOT_FOUND there is none; else why one that is linked is not used, as debuglink_open()
 */
int debug_file_open(const struct object *object, uint32_t pid, const struct elf_file *own,
		    struct buf *linked, struct elf_file *out, struct err *err);

#endif
