#include "symbol/bytes.h"

#include <inttypes.h>
#include <string.h>

struct bytes bytes_of_memory(const void *data, size_t n)
{
	/* A valid pointer even for no bytes, because NULL means "the file". */
	return (struct bytes){.memory = n ? data : (const uint8_t *)"", .size = n};
}

struct bytes bytes_of_file(struct os_file *file, uint64_t size_bytes)
{
	return (struct bytes){.file = file, .size = size_bytes};
}

int bytes_read(const struct bytes *in, uint64_t offset, void *to, size_t n, const char *what,
	       struct err *err)
{
	size_t got = 0;
	int rc = 0;

	if (offset > in->size || n > in->size - offset)
		return err_set(err, ERR_FORMAT,
			       "%s (%zu bytes at %" PRIu64 ") lies outside the file of %" PRIu64
			       " bytes", what, n, offset, in->size);
	if (in->memory && n)
		memcpy(to, in->memory + offset, n);
	else if (n)
		rc = os_pread(in->file, to, n, offset, &got, err);
	if (!rc && !in->memory && got < n)
		return err_set(err, ERR_FORMAT, "the file became shorter while %s was read", what);
	return rc;
}
