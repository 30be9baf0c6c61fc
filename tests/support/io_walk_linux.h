/*
 * Walk the failures of a disk: make one chosen system call on a file fail, as alloc_walk.h does for
 * memory.
 *
 * A test that calls these functions is linked with definitions of open, mkdir, read, write, pread,
 * pwrite, fsync, fdatasync, ftruncate, rename, unlink, rmdir and mmap (of a file), which stand
 * before those of the C library, for SQLite too. Calls are counted from io_walk_fail_at() on, if
 * they can fail in the way that is walked. Descriptors up to 2 are never touched. One thread.
 */
#pragma once

#include <stdbool.h>

enum io_fault {
	IO_BREAKS,                           /* EIO, once */
	IO_BROKEN,                           /* EIO, from that call on */
	IO_FULL,                             /* ENOSPC, from that call on; of what takes space */
	IO_INTERRUPTED,                      /* EINTR, once */
	IO_SHORT,                            /* half of what was asked for, once */
	IO_FAULTS,
};

const char *io_fault_text(enum io_fault fault);

/* Fail at the nth call from now on; 0 = none fails. Either way the count starts again. */
void io_walk_fail_at(enum io_fault fault, unsigned long n);
/* Nothing fails any more. Returns the name of the call that did, "pwrite"; NULL = none. */
const char *io_walk_end(void);

/* Ask for a made file at each open: a descriptor, or -1 and errno. false: it is none of these. */
void io_walk_make(bool (*open_made)(const char *path, int *fd));
