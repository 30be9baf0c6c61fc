/*
 * A disk that is full, slow or hangs when a test says so: SQLite's default VFS with another xWrite.
 *
 * Files that SQLite opens between bad_disk_install() and bad_disk_remove() are on it, a good one at
 * first. Any thread may write to them; the functions below belong to the test's own thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void bad_disk_install(void);
void bad_disk_remove(void);

/* Each write takes as long as it would at this speed; 0 = full speed. */
void bad_disk_slow(uint64_t bytes_per_s);

/* Let this many more writes pass, then none; -1 = all pass. */
void bad_disk_full_after(long writes);

/* No write passes while this is true: an input/output error. */
void bad_disk_breaks(bool broken);

/* Each write waits until this is false again. */
void bad_disk_hang(bool hangs);

/* Let no write pass while this file exists; NULL = no such condition. */
void bad_disk_full_while_exists(const char *path);
