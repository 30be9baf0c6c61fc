/*
 * The file of an ELF object, found and made sure of: for its names, and for its unwind tables.
 *
 * Wrong names are worse than none. A path alone proves nothing: the file may have been replaced, or
 * be another one in another mount namespace. With a build id in the key the file must have the
 * same; without one the inode must be the same. Any thread.
 */
#ifndef SYMBOL_ELF_FILE_H
#define SYMBOL_ELF_FILE_H

#include "symbol/elf.h"

struct elf_file {
	struct os_file *file;         /* NULL = not open */
	struct bytes bytes;
	uint64_t mtime_ns;
	struct elf_head head;
};

/*
 * pid    maps it, or did
 * debug  its debug file, found by build id, in place of itself
 * again  what was opened before and must be the very same bytes; NULL = nothing was
 * out    on success; close with elf_file_close()
 * returns  0; ERR_NOT_FOUND; ERR_FORMAT it is another file than was mapped; ERR_UNSUPPORTED it is no
 *          ELF at all (Wine maps PE), or what the kernel maps ([vdso32]); ERR_LIMIT, ERR_IO
 */
int elf_file_open(const struct object *object, uint32_t pid, bool debug,
		  const struct elf_file *again, struct elf_file *out, struct err *err);
void elf_file_close(struct elf_file *f);      /* head and bytes.size stay */

#endif
