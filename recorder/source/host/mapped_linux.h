/*
 * Counters in a file that another program keeps mapped, read where they lie: no call of the system, which beside
 * a dozen programs costs as much as the wake-up to read them (10 files of 64 bytes on an idle machine: 90 us by
 * pread(), 55 mapped, of which the wake-up is 50).
 *
 * The file is another's, who may cut it off at any time: a reading of what is gone says so, by a handler of SIGBUS
 * that knows which thread reads. That is the only state of this module that is not its caller's; a SIGBUS from
 * anywhere else ends the process as it always did.
 */
#ifndef SOURCE_MAPPED_LINUX_H
#define SOURCE_MAPPED_LINUX_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Empty = all zero. */
struct mapped {
	const unsigned char *at;
	size_t bytes;
};

/* fd: of a plain file that may be read, with at least so many bytes now; may be closed afterwards. */
int mapped_open(struct mapped *m, int fd, size_t bytes, struct err *err);
void mapped_close(struct mapped *m);            /* an empty one too */

/*
 * Copy bytes [from, from + n): both multiples of 8, `to` aligned to 8. In words of 8 bytes in the order of the
 * file, each of them whole: never half of an old and half of a new value.
 * returns  false: not in what is mapped, or the file has become shorter; `to` may be written in part
 */
bool mapped_read(const struct mapped *m, void *to, size_t from, size_t n);

#endif
