/*
 * SQLite's default file system, made slow or full: every write of the store waits, or fails with
 * SQLITE_FULL. For tests of what a bad disk does to recording.
 */
#ifndef TESTS_SUPPORT_SLOW_VFS_H
#define TESTS_SUPPORT_SLOW_VFS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on the default; bytes_per_s 0 = full speed. */
void slow_vfs_install(uint64_t bytes_per_s);
void slow_vfs_set(uint64_t bytes_per_s, bool full);
void slow_vfs_remove(void);

#endif
