/*
 * Counters in a file that another program keeps mapped, read in place without a system call. With a
 * dozen such programs, system calls would cost as much as the wake-up to read them (10 files of 64
 * bytes on an idle machine: 90 us by pread(), 55 us mapped, of which the wake-up is 50 us).
 *
 * The file belongs to another program, which may truncate it at any time. Reading a part that is
 * gone then fails, by a SIGBUS handler that knows which thread reads. That handler is this module's
 * only state outside its caller; any other SIGBUS ends the process as usual.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Empty = all zero. */
struct mapped {
	const unsigned char *at;
	size_t bytes;
};

/*
 * fd: a readable plain file that has at least so many bytes now; the caller may close it
 * afterwards.
 */
int mapped_open(struct mapped *m, int fd, size_t bytes, struct err *err);
void mapped_close(struct mapped *m);            /* an empty one is allowed */

/*
 * Copy bytes [from, from + n), both multiples of 8, to an address aligned to 8. Copies whole words
 * of 8 bytes in file order, so no value is half old and half new.
 *
 * returns  false when the bytes are not mapped or the file was truncated; `to` may be written in
 *          part
 */
bool mapped_read(const struct mapped *m, void *to, size_t from, size_t n);
