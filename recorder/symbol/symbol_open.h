/*
 * Host: where the bytes of a code object and the facts of a process are to be had.
 *
 * symbol_open_linux.c and symbol_open_windows.c. Only paths and memory of our own are named here;
 * whether a file is the right one is decided in elf_file.c. Any thread.
 */
#ifndef SYMBOL_SYMBOL_OPEN_H
#define SYMBOL_SYMBOL_OPEN_H

#include "model/frame.h"
#include "symbol/bytes.h"

#define SYMBOL_CANDIDATES 3u

/*
 * The which-th path (0..SYMBOL_CANDIDATES-1) under which an object that pid maps may be found, best
 * first, into path (emptied first).
 *
 * same_root  set to whether the path is looked up as the process itself would: then inode numbers
 *            can be compared even where the device number differs
 * returns    false when this candidate does not exist for this object
 */
bool symbol_path(const struct object *object, uint32_t pid, unsigned which, struct buf *path,
		 bool *same_root);

/* The same for the file that holds its debug information, by build id. */
bool symbol_debug_path(const struct object *object, uint32_t pid, unsigned which, struct buf *path,
		       bool *same_root);

/* The vDSO of this process, which is every 64-bit process's; ERR_UNSUPPORTED if there is none. */
int symbol_vdso(struct bytes *out, struct err *err);

/* A process's arguments joined by blanks, at most PROCESS_CMDLINE_MAX bytes; may be empty. */
int symbol_cmdline(uint32_t pid, struct buf *out, struct err *err);

/* Its short name now; false when it has ended. */
bool symbol_comm(uint32_t pid, char out[16]);

#endif
