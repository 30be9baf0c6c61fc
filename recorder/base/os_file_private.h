/*
 * What os_file.c has from os_file_linux.c and os_file_windows.c. On false, and with a handle of -1,
 * the system's error code says why.
 */
#pragma once

#include "base/os.h"

struct os_file {
	intptr_t handle;              /* a descriptor, or a HANDLE */
	const char *path;             /* stands behind the struct, or is constant */
	bool standard;                /* lives as long as the process */
	/* Windows: */
	unsigned long kind;           /* FILE_TYPE_DISK, _CHAR, _PIPE */
	uint64_t read_at;             /* of a disk file: where reading goes on */
	bool console;                 /* takes UTF-16 */
	char held[4];                 /* the first bytes of a character whose rest will follow */
	size_t nheld;
};

#define OS_FILE_NEXT UINT64_MAX       /* the offset: where the last read or write ended */

/* Open a file; the sentence names the path. */
int os_file_open(const char *path, enum os_open how, intptr_t *out, struct err *err);
int os_file_open_temp(intptr_t *out, struct err *err);
/* Open a file to be locked, without following a link. */
intptr_t os_file_open_lock(const char *path);
/* Lock it now; *held = another process has the lock. */
bool os_file_lock(struct os_file *file, bool *held);
void os_file_empty(struct os_file *file);
void os_file_init(struct os_file *file);       /* the fields of this host, from the handle */
void os_file_close(intptr_t handle);

/* Read or write at least one of n bytes; *done = 0 at the end of the file. */
bool os_file_read(struct os_file *file, void *to, size_t n, uint64_t offset, size_t *done);
bool os_file_write(struct os_file *file, const void *bytes, size_t n, uint64_t offset,
		   size_t *done);
bool os_handle_info(intptr_t handle, struct os_file_info *out);

/* err_os() for a write: a missing folder is a failure (ERR_IO), not "the thing is not there". */
int os_file_cannot(struct err *err, const char *format, const char *path);
