/*
 * A disk that is full or slow when a test says so: SQLite's default VFS with another xWrite.
 *
 * Files that SQLite opens between bad_disk_install() and bad_disk_remove() are on it, a good one at
 * first. Any thread may write to them; the functions below belong to the test's own thread.
 */
#pragma once

#include <stdint.h>

void bad_disk_install(void);
void bad_disk_remove(void);

/* Each write takes as long as it would at this speed; 0 = full speed. */
void bad_disk_slow(uint64_t bytes_per_s);

/* Let this many more writes pass, then none; -1 = all pass. */
void bad_disk_full_after(long writes);

/* Let no write pass while this file exists; NULL = no such condition. */
void bad_disk_full_while_exists(const char *path);
