/*
 * Where a parser's bytes come from: an open file, or memory.
 *
 * Parsers of outside formats read through this with pread, never through a mapping: a file that
 * shrinks during the read gives an error, not a SIGBUS. Borrowed: its maker closes the file.
 */
#pragma once

#include "base/os.h"

struct bytes {
	const uint8_t *memory;        /* NULL = the file */
	struct os_file *file;
	uint64_t size;
};

struct bytes bytes_of_memory(const void *data, size_t n);
struct bytes bytes_of_file(struct os_file *file, uint64_t size_bytes);

/* Read exactly n bytes at offset; ERR_FORMAT when `what` lies outside, or ERR_IO. */
int bytes_read(const struct bytes *in, uint64_t offset, void *to, size_t n, const char *what,
	       struct err *err);

struct bytes_part {
	const uint8_t *at;
	uint8_t *owned;               /* what was read for it; NULL = it is in memory anyway */
};

/*
 * The same without a copy of what is in memory, of which a program may own the file and change it
 * meanwhile: look at each byte once. out is empty on failure, and bytes_drop() ends its use.
 */
int bytes_take(const struct bytes *in, uint64_t offset, size_t n, const char *what,
	       struct bytes_part *out, struct err *err);
void bytes_drop(struct bytes_part *part);
