/*
 * A disk that is full when a test says so: SQLite's default VFS with another xWrite. Portable.
 * One thread.
 */
#ifndef TESTS_SUPPORT_FULL_DISK_H
#define TESTS_SUPPORT_FULL_DISK_H

/* Before the first store is opened; once. */
void full_disk_install(void);

/* Let this many writes pass, then none: -1 = all. */
void full_disk_after(long writes);

/* No write passes as long as this file exists; NULL = no such condition. */
void full_disk_while_exists(const char *path);

#endif
