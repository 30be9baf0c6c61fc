/* Images that lld linked from tests/data/pdb/functions.c; numbers as llvm-readobj and llvm-nm give them. */
#include "symbol/pe.h"

#include "tests/support/alloc_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void load(const char *name, struct buf *out)
{
	char path[200];

	snprintf(path, sizeof(path), "tests/data/pdb/%s", name);
	assert_int_equal(os_load(path, 1 << 20, out, NULL), 0);
}

static struct bytes bytes_of(const struct buf *b)
{
	return bytes_of_memory(b->data, b->len);
}

static struct rva_index *index_of(const struct buf *image, bool bounds)
{
	struct rva_index *index = rva_index_new();
	struct bytes in = bytes_of(image);
	struct pe_head head;

	assert_int_equal(pe_head_read(&in, &head, NULL), 0);
	assert_int_equal(pe_functions(&in, &head, index, NULL), 0);
	if (bounds)
		assert_int_equal(pe_bounds(&in, &head, index, NULL), 0);
	assert_int_equal(rva_index_finish(index, NULL), 0);
	return index;
}

static const char *name_at(const struct rva_index *index, uint32_t rva)
{
	struct rva_function f;

	if (!rva_index_find(index, rva, &f))
		return "";
	assert_in_range(rva, f.rva, f.end - 1);
	return f.name;
}

static void an_image_says_what_it_is_and_which_pdb_it_has(void **state)
{
	struct buf image = {0};
	struct pe_head head;
	struct bytes in;

	(void)state;
	load("functions.exe", &image);
	in = bytes_of(&image);
	assert_int_equal(pe_head_read(&in, &head, NULL), 0);
	assert_true(head.is64);
	assert_int_equal(head.machine, 0x8664);
	assert_int_equal(head.timestamp, 0x797761ca);
	assert_int_equal(head.image_bytes, 20480);
	assert_int_equal(head.image_base, 0x140000000);
	assert_int_equal(head.nsections, 4);
	assert_true(head.has_pdb);
	assert_memory_equal(head.pdb_guid, "\x36\xcb\xce\xf7\x1c\x58\xb8\xff\x4c\x4c\x44\x20\x50\x44\x42\x2e", 16);
	assert_int_equal(head.pdb_age, 1);
	assert_string_equal(head.pdb_name, "functions.pdb");
	assert_int_equal(pe_section_at(&head, 0x1073)->rva, 0x1000);
	assert_null(pe_section_at(&head, 0x1074));
	assert_null(pe_section_at(&head, 0xFFFFFFFF));
	buf_free(&image);
}

static void the_symbol_table_names_private_functions_and_no_data(void **state)
{
	struct buf image = {0};
	struct rva_index *index;

	(void)state;
	load("symtab.exe", &image);
	index = index_of(&image, true);
	assert_int_equal(rva_index_count(index), 4);
	assert_string_equal(name_at(index, 0xFFF), "");
	assert_string_equal(name_at(index, 0x1000), "alpha");
	assert_string_equal(name_at(index, 0x1006), "alpha");
	assert_string_equal(name_at(index, 0x1010), "beta");
	assert_string_equal(name_at(index, 0x1038), "beta");
	assert_string_equal(name_at(index, 0x1039), "");     /* padding behind it */
	assert_string_equal(name_at(index, 0x1040), "hidden");
	assert_string_equal(name_at(index, 0x1073), "start");
	assert_string_equal(name_at(index, 0x1074), "");
	assert_string_equal(name_at(index, 0x3000), "");
	rva_index_free(index);
	buf_free(&image);
}

static void an_export_s_name_ends_with_its_function(void **state)
{
	struct buf image = {0};
	struct rva_index *index;

	(void)state;
	load("functions.exe", &image);
	index = index_of(&image, true);
	assert_int_equal(rva_index_count(index), 1);
	assert_string_equal(name_at(index, 0x1010), "beta");
	assert_string_equal(name_at(index, 0x1038), "beta");
	assert_string_equal(name_at(index, 0x1040), "");     /* hidden */
	assert_string_equal(name_at(index, 0x1060), "");     /* start */
	rva_index_free(index);
	buf_free(&image);
}

static void without_bounds_an_export_names_its_first_byte_only(void **state)
{
	struct buf image = {0};
	struct rva_index *index;

	(void)state;
	load("functions.exe", &image);
	/* The machine becomes x86's, which has no .pdata. */
	memcpy(image.data + (unsigned char)image.data[60] + 4, "\x4c\x01", 2);
	index = index_of(&image, true);
	assert_string_equal(name_at(index, 0x1010), "beta");
	assert_string_equal(name_at(index, 0x1011), "");
	rva_index_free(index);
	buf_free(&image);
}

static void the_best_name_of_an_rva_stays_and_bounds_hide_none(void **state)
{
	struct rva_index *index = rva_index_new();

	(void)state;
	assert_int_equal(rva_index_bound(index, 100, 120, NULL), 0);
	assert_int_equal(rva_index_add(index, 100, 1000, 1, "second", 6, NULL), 0);
	assert_int_equal(rva_index_add(index, 100, 1000, 2, "first", 5, NULL), 0);
	assert_int_equal(rva_index_add(index, 100, 1000, 2, "third", 5, NULL), 0);
	assert_int_equal(rva_index_add(index, 0xFFFFFFF0, 0xFFFFFFFF, 0, "end", 3, NULL), 0);
	assert_int_equal(rva_index_add(index, 200, 1000, 0, "four\0five", 9, NULL), 0);
	assert_int_equal(rva_index_add(index, 300, 300, 0, "empty", 5, NULL), 0);
	assert_int_equal(rva_index_bound(index, 220, 230, NULL), 0);
	assert_int_equal(rva_index_finish(index, NULL), 0);
	assert_int_equal(rva_index_count(index), 3);
	assert_string_equal(name_at(index, 119), "first");
	assert_string_equal(name_at(index, 120), "");
	assert_string_equal(name_at(index, 219), "four");
	assert_string_equal(name_at(index, 225), "");
	assert_string_equal(name_at(index, 300), "");
	assert_string_equal(name_at(index, 0xFFFFFFF1), "end");
	rva_index_free(index);
}

static void an_image_cut_or_changed_at_any_byte_is_survived(void **state)
{
	struct buf image = {0};

	(void)state;
	load("symtab.exe", &image);
	for (size_t i = 0; i < image.len * 2; i++) {
		size_t n = i < image.len ? i : image.len;
		struct rva_index *index = rva_index_new();
		uint8_t *exact = malloc(n ? n : 1);
		struct bytes in = bytes_of_memory(exact, n);
		struct pe_head head;

		assert_non_null(exact);
		memcpy(exact, image.data, n);
		if (i >= image.len)
			exact[i - image.len] ^= 0xFF;
		if (!pe_head_read(&in, &head, NULL) && !pe_functions(&in, &head, index, NULL) &&
		    !pe_bounds(&in, &head, index, NULL) && !rva_index_finish(index, NULL))
			name_at(index, 0x1040);
		rva_index_free(index);
		free(exact);
	}
	buf_free(&image);
}

static int read_all(void *ctx)
{
	struct rva_index *index = rva_index_new();
	struct bytes in = bytes_of(ctx);
	struct pe_head head;
	int rc = index ? pe_head_read(&in, &head, NULL) : ERR_MEMORY;

	if (!rc)
		rc = pe_functions(&in, &head, index, NULL);
	if (!rc)
		rc = pe_bounds(&in, &head, index, NULL);
	if (!rc)
		rc = rva_index_finish(index, NULL);
	rva_index_free(index);
	return rc;
}

static void lack_of_memory_is_an_error_at_every_place(void **state)
{
	struct buf image = {0};

	(void)state;
	load("symtab.exe", &image);
	assert_in_range(alloc_walk(read_all, &image), 5, 30);
	buf_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_image_says_what_it_is_and_which_pdb_it_has),
		cmocka_unit_test(the_symbol_table_names_private_functions_and_no_data),
		cmocka_unit_test(an_export_s_name_ends_with_its_function),
		cmocka_unit_test(without_bounds_an_export_names_its_first_byte_only),
		cmocka_unit_test(the_best_name_of_an_rva_stays_and_bounds_hide_none),
		cmocka_unit_test(an_image_cut_or_changed_at_any_byte_is_survived),
		cmocka_unit_test(lack_of_memory_is_an_error_at_every_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
