/*
 * A disk that is full, slow, broken, hangs or loses its power when a test says so: SQLite's default
 * VFS with other methods to write, sync and close.
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

/*
 * A power cut: what the disk may hold afterwards. What was written to a file since its last sync
 * may or may not have reached it, sector by sector. Files that are opened from now on are watched,
 * by one thread at a time.
 */
void bad_disk_watch(void);
/*
 * Before the n-th write or sync from now on (0 = the next), copy all watched files into this
 * directory, each sector of 512 bytes that was not synced drawn by lot. Writing goes on.
 */
void bad_disk_cut_after(long writes, const char *dir, uint64_t seed);
/* Whether that was reached. */
bool bad_disk_cut_happened(void);

/* Let no write pass while this file exists; NULL = no such condition. */
void bad_disk_full_while_exists(const char *path);
