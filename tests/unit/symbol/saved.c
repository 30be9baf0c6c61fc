/* An index as a file: what comes back is what went in, and damage is seen. */
#include "symbol/elf_saved.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/elf_image.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0x401000u

static const struct elf_image_symbol symbols[] = {
	{"alpha", BASE + 0x10, 0x20, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, false},
	{"beta", BASE + 0x40, 0x10, ELF_IMAGE_FUNC, ELF_IMAGE_LOCAL, 0, false, false},
	{"gamma", BASE + 0x60, 0x10, ELF_IMAGE_FUNC, ELF_IMAGE_GLOBAL, 0, false, true},
};

struct lab {
	struct buf image, file;
	struct bytes in;
	struct elf_saved saved;
};

/* padding makes its string table too large to be kept in memory. */
static void build(struct lab *lab, size_t padding)
{
	struct elf_image image = {.vaddr = BASE, .text_bytes = 0x100, .symbols = symbols,
				  .nsymbols = 3, .padding = padding};

	memset(lab, 0, sizeof(*lab));
	elf_image_build(&image, &lab->image);
	lab->in = bytes_of_memory(lab->image.data, lab->image.len);
	lab->saved = (struct elf_saved){.build_id_bytes = 20,
					.build_id = "0123456789abcdefghij",
					.file_bytes = 4321,
					.mtime_ns = 1234567890123,
					.complete = true};
	assert_int_equal(elf_head_read(&lab->in, &lab->saved.head, NULL), 0);
	assert_int_equal(elf_index_new(&lab->in, &lab->saved.head, NULL, &lab->saved.index, NULL),
			 0);
	assert_int_equal(elf_saved_write(&lab->saved, &lab->in, &lab->file, NULL), 0);
}

static void clear(struct lab *lab)
{
	elf_index_free(lab->saved.index);
	buf_free(&lab->image);
	buf_free(&lab->file);
}

static const char *name_at(const struct elf_saved *s, const struct bytes *in, uint64_t vaddr)
{
	static char name[100];
	struct elf_function f;

	name[0] = '\0';
	if (elf_find(s->index, vaddr, &f))
		assert_int_equal(elf_function_name(s->index, in, &f, name, sizeof(name), NULL), 0);
	return name;
}

TEST(saved_index_names_what_the_file_did)
{
	struct elf_saved again;
	struct bytes in;
	struct lab lab;
	uint64_t vaddr;

	build(&lab, ELF_STRINGS_KEPT_BYTES);
	in = bytes_of_memory(lab.file.data, lab.file.len);
	assert_int_equal(elf_saved_read(&in, &again, NULL), 0);
	assert_int_equal(again.build_id_bytes, 20);
	assert_memory_equal(again.build_id, "0123456789abcdefghij", 20);
	assert_true(again.file_bytes == 4321 && again.mtime_ns == 1234567890123 && again.complete);
	assert_int_equal(again.index->nentries, 3);
	assert_string_equal(name_at(&again, &in, BASE + 0x2f), "alpha");
	assert_string_equal(name_at(&again, &in, BASE + 0x30), "");
	assert_string_equal(name_at(&again, &in, BASE + 0x40), "beta");
	assert_string_equal(name_at(&again, &in, BASE + 0x6f), "gamma");
	/* File offset 0x400 is the first byte of the code. */
	assert_true(elf_vaddr(&again.head, 0x440, &vaddr));
	assert_true(vaddr == BASE + 0x40);
	assert_true(elf_saved_same(&in, again.checksum));
	assert_false(elf_saved_same(&in, again.checksum + 1));
	elf_index_free(again.index);
	clear(&lab);
}

TEST(saved_index_that_is_cut_or_changed_is_refused)
{
	struct elf_saved again;
	struct bytes in;
	struct lab lab;
	size_t i;

	build(&lab, 0);
	for (i = 0; i < lab.file.len; i++) {
		uint8_t *copy = malloc(i ? i : 1);

		assert_non_null(copy);
		memcpy(copy, lab.file.data, i);      /* of just that size: a sanitizer sees more */
		in = bytes_of_memory(copy, i);
		assert_int_equal(elf_saved_read(&in, &again, NULL), ERR_FORMAT);
		free(copy);
		in = bytes_of_memory(lab.file.data, lab.file.len);
		lab.file.data[i] = (char)(lab.file.data[i] ^ 1);
		assert_int_equal(elf_saved_read(&in, &again, NULL), ERR_FORMAT);
		lab.file.data[i] = (char)(lab.file.data[i] ^ 1);
	}
	assert_int_equal(elf_saved_read(&in, &again, NULL), 0);
	elf_index_free(again.index);
	clear(&lab);
}

static int read_walk(void *ctx)
{
	struct lab *lab = ctx;
	struct bytes in = bytes_of_memory(lab->file.data, lab->file.len);
	struct elf_saved again;
	int rc = elf_saved_read(&in, &again, NULL);

	if (!rc)
		elf_index_free(again.index);
	return rc;
}

static int write_walk(void *ctx)
{
	struct lab *lab = ctx;
	struct buf out = {0};
	int rc = elf_saved_write(&lab->saved, &lab->in, &out, NULL);

	buf_free(&out);
	return rc;
}

TEST(saving_and_reading_survive_every_failed_allocation)
{
	struct lab lab;

	build(&lab, 0);
	assert_in_range(alloc_walk(read_walk, &lab), 3, 10);
	assert_in_range(alloc_walk(write_walk, &lab), 3, 60);
	clear(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(saved_index_names_what_the_file_did),
		cmocka_unit_test(saved_index_that_is_cut_or_changed_is_refused),
		cmocka_unit_test(saving_and_reading_survive_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
