#include "symbol/bytes.h"

#include <inttypes.h>
#include <stdlib.h>
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

static int check_range(const struct bytes *in, uint64_t offset, size_t n, const char *what,
		       struct err *err)
{
	if (offset <= in->size && n <= in->size - offset)
		return 0;
	return err_set(err, ERR_FORMAT, "%s (%zu bytes at %" PRIu64 ") lies outside the file of %"
		       PRIu64 " bytes", what, n, offset, in->size);
}

int bytes_read(const struct bytes *in, uint64_t offset, void *to, size_t n, const char *what,
	       struct err *err)
{
	size_t got = 0;
	int rc = check_range(in, offset, n, what, err);

	if (rc)
		return rc;
	if (in->memory && n)
		memcpy(to, in->memory + offset, n);
	else if (n)
		rc = os_pread(in->file, to, n, offset, &got, err);
	if (!rc && !in->memory && got < n)
		return err_set(err, ERR_FORMAT, "the file became shorter while %s was read", what);
	return rc;
}

int bytes_take(const struct bytes *in, uint64_t offset, size_t n, const char *what,
	       struct bytes_part *out, struct err *err)
{
	int rc = check_range(in, offset, n, what, err);

	*out = (struct bytes_part){0};
	if (rc)
		return rc;
	if (in->memory) {
		out->at = in->memory + offset;
		return 0;
	}
	out->at = out->owned = malloc(n ? n : 1);
	if (!out->owned)
		return err_memory(err, "for what a file says of its functions");
	rc = bytes_read(in, offset, out->owned, n, what, err);
	if (rc)
		bytes_drop(out);
	return rc;
}

void bytes_drop(struct bytes_part *part)
{
	free(part->owned);
	*part = (struct bytes_part){0};
}
