/*
 * The symbol cache on disk: files by build id in a directory that only its owner can read and
 * write.
 *
 * It serves programs that have gone when their frames are named (deleted, or in a mount namespace
 * that has ended), and saves reading large ones again after a restart. Each reader decides what its
 * file holds (elf_saved.h); here files are found, and written whole or not at all. The least
 * recently used ones go when all together exceed the ceiling.
 *
 * Anybody who can write there can give functions wrong names: the directory and each file must
 * belong to this user, links are not followed, and the directory is made private (0700, files
 * 0600). Several recorders of one user may share it, and it may be deleted at any time. Host: on
 * Windows there is none yet, and opening it says so. Any thread: while one is inside, which may be
 * for ever when the disk hangs, the others find nothing and write nothing.
 */
#pragma once

#include "base/os.h"
#include "model/frame.h"

#define SYMBOL_DISK_FILES_MAX 65536u

struct symbol_disk;

/*
 * dir      made with its parents; its name must not end in a separator
 * returns  0; ERR_ACCESS with a sentence when it is another user's; ERR_UNSUPPORTED, ERR_IO,
 *          ERR_MEMORY
 */
int symbol_disk_open(const char *dir, uint64_t max_bytes, struct symbol_disk **out,
		     struct err *err);
void symbol_disk_close(struct symbol_disk *disk);    /* NULL allowed */

/* Open the file of a build id, making it the most recently used; ERR_NOT_FOUND, ERR_ACCESS. */
int symbol_disk_get(struct symbol_disk *disk, const struct object_key *key, struct os_file **out,
		    struct err *err);

/* Write it, replacing what is there. ERR_LIMIT when it would take over half of the room, ERR_IO. */
int symbol_disk_put(struct symbol_disk *disk, const struct object_key *key, const void *bytes,
		    size_t n, struct err *err);

/* Remove a damaged file. */
void symbol_disk_drop(struct symbol_disk *disk, const struct object_key *key);

struct symbol_disk_use {
	uint64_t bytes, max_bytes;
	uint64_t found, written, evicted;            /* files, since the cache was opened */
};
/* Any thread. */
void symbol_disk_use(const struct symbol_disk *disk, struct symbol_disk_use *out);
