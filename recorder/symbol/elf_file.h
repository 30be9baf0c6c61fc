/*
 * The file of an ELF object, found and verified: for its names, and for its unwind tables.
 *
 * Wrong names are worse than none. A path alone proves nothing: the file may have been replaced, or
 * be a different one in another mount namespace. If the key has a build id, the file must have the
 * same; if not, the inode must be the same. Any thread.
 *
 * The vDSO ("[vdso]") is in our own memory, the same for every 64-bit process; that of 32-bit
 * processes ("[vdso32]") is a copy that the kernel gives us, because a process can change its own.
 */
#pragma once

#include "symbol/elf.h"

#include <string.h>

struct elf_file {
	struct os_file *file;         /* NULL = not open, or in memory */
	struct buf memory;            /* bytes of their own */
	struct bytes bytes;
	uint64_t dev, ino, mtime_ns;
	struct elf_head head;
};

/*
 * pid    maps it, or did
 * debug  open its debug file instead, found by build id
 * out    on success; close with elf_file_close()
 * returns  0; ERR_NOT_FOUND; ERR_FORMAT when it is not the file that was mapped; ERR_UNSUPPORTED
 *          when it is no ELF file (Wine maps PE), or the kernel does not give it ([vdso32]);
 *          ERR_LIMIT, ERR_IO
 */
int elf_file_open(const struct object *object, uint32_t pid, bool debug, struct elf_file *out,
		  struct err *err);

/*
 * The same for a .NET image (symbol/r2r.h): PE, whose head is one segment that is the whole file.
 * returns  as elf_file_open(); ERR_UNSUPPORTED when it is no PE file either
 */
int elf_file_open_dll(const struct object *object, uint32_t pid, struct elf_file *out,
		      struct err *err);

/*
 * The same in the directories of a symbol path, for an object with a build id. In each of them:
 *
 *	program  ID/executable, .build-id/ID, its whole path as recorded, its base name
 *	debug    ID/debuginfo, .build-id/ID.debug, usr/lib/debug/.build-id/ID.debug,
 *	         its base name with .debug and without
 *
 * ID is the build id in hex; below .build-id a '/' follows its first byte. The first two are what
 * debuginfod's clients keep.
 *
 * found  set to where it was; emptied on failure
 * returns  0, ERR_NOT_FOUND
 */
int elf_file_open_in(const char *path, const struct object *object, bool debug, struct buf *found,
		     struct elf_file *out);

/*
 * Open whatever regular file is at a path, up to ELF_FILE_MAX_BYTES.
 * returns  0, ERR_NOT_FOUND, ERR_ACCESS, ERR_IO; ERR_FORMAT when it is no ELF file; ERR_LIMIT
 */
int elf_file_open_path(const char *path, struct elf_file *out, struct err *err);
bool elf_file_same(const struct elf_file *a, const struct elf_file *b);   /* by size and time */
void elf_file_close(struct elf_file *f);      /* everything but `file` and `memory` stays */

static inline bool elf_file_is_vdso(const struct object *object)
{
	return strcmp(object->key.path, "[vdso]") == 0 ||
	       strcmp(object->key.path, "[vdso32]") == 0;
}

/* Of several candidates' reasons keep the first, unless it is only that nothing is there. */
void elf_file_keep_reason(struct err *why, const struct err *one);
