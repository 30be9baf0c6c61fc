/*
 * The paths of files by device and inode, as tracepoints of the kernel name files. Any thread that
 * may wait: a process that the kernel holds can stop whoever looks at it.
 *
 * Of ext4 the kernel opens a file by its number, also when the process has closed it or ended; its
 * path is where this machine has it. Others are looked for among the files that the process has
 * open or maps. That path is as the process' own mounts have it (/data/a in a container), and ends
 * in " (deleted)" where the file has no name any more. A number is used again for another file once
 * its file is gone, so each answer says from when on it was this one.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define FILE_PATHS_ENTRIES 4096u             /* of each kind; a process can have a million */

struct file_path {
	uint32_t pid;                        /* who has it open */
	dev_t dev;                           /* of the file system: in a tracepoint, s_dev */
	uint64_t ino;
	char *path;                          /* out: NULL = not found; the caller's */
	uint64_t born_ns, seen_ns;           /* out, recorder clock: it was this file meanwhile */
};

/*
 * Find those that have no path yet. Of an overlay whose layers are all in one file system, pages
 * are of the layer's file, which has another device than the one that the process sees.
 */
void file_paths_find(struct file_path *files, uint32_t n);
