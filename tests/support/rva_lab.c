#include "rva_lab.h"

#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rva_lab_load(const char *name, struct buf *out)
{
	char path[200];

	snprintf(path, sizeof(path), "tests/data/pdb/%s", name);
	assert_int_equal(os_load(path, 1 << 20, out, NULL), 0);
}

struct bytes bytes_of(const struct buf *b)
{
	return bytes_of_memory(b->data, b->len);
}

const char *name_at(const struct rva_index *index, uint32_t rva)
{
	struct rva_function f;

	if (!rva_index_range(index, rva, &f) || !f.name)
		return "";
	assert_in_range(rva, f.rva, f.end - 1);
	return f.name;
}

/*
 * The first n bytes, one of them inverted; n = none. In memory of just that size, for the
 * sanitizer.
 */
static void read_damaged(const struct buf *file, size_t n, size_t inverted, rva_reader *read)
{
	struct rva_index *index = rva_index_new();
	uint8_t *exact = malloc(n ? n : 1);
	struct bytes in = bytes_of_memory(exact, n);

	assert_non_null(index);
	assert_non_null(exact);
	memcpy(exact, file->data, n);
	if (inverted < n)
		exact[inverted] ^= 0xFF;
	if (!read(&in, index) && !rva_index_finish(index, NULL))
		name_at(index, 0x1040);
	rva_index_free(index);
	free(exact);
}

void rva_lab_damage(const struct buf *file, size_t cut_step, size_t change_step, bool zeros,
		    rva_reader *read)
{
	size_t i;

	for (i = 0; i < file->len; i += cut_step)
		read_damaged(file, i, i, read);
	for (i = 0; i < file->len; i += change_step)
		if (zeros || file->data[i])
			read_damaged(file, file->len, i, read);
}

struct walked {
	const struct buf *file;
	rva_reader *read;
};

static int read_all(void *ctx)
{
	const struct walked *w = ctx;
	struct rva_index *index = rva_index_new();
	struct bytes in = bytes_of(w->file);
	int rc = index ? w->read(&in, index) : ERR_MEMORY;

	if (!rc)
		rc = rva_index_finish(index, NULL);
	rva_index_free(index);
	return rc;
}

int rva_lab_walk(const struct buf *file, rva_reader *read)
{
	struct walked w = {file, read};

	return alloc_walk(read_all, &w);
}
