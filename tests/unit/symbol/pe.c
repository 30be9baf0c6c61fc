/*
 * Images that lld linked from tests/data/pdb/functions.c; numbers as llvm-readobj and llvm-nm give
 * them.
 */
#include "symbol/pe.h"

#include "tests/support/rva_lab.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

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

TEST(an_image_says_what_it_is_and_which_pdb_it_has)
{
	struct buf image = {0};
	struct pe_head head;
	struct bytes in;

	rva_lab_load("functions.exe", &image);
	in = bytes_of(&image);
	assert_int_equal(pe_head_read(&in, &head, NULL), 0);
	assert_true(head.is64);
	assert_int_equal(head.machine, 0x8664);
	assert_int_equal(head.timestamp, 0x797761ca);
	assert_int_equal(head.image_bytes, 20480);
	assert_int_equal(head.image_base, 0x140000000);
	assert_int_equal(head.nsections, 4);
	assert_true(head.has_pdb);
	assert_memory_equal(head.pdb_guid,
			    "\x36\xcb\xce\xf7\x1c\x58\xb8\xff\x4c\x4c\x44\x20\x50\x44\x42\x2e", 16);
	assert_int_equal(head.pdb_age, 1);
	assert_string_equal(head.pdb_name, "functions.pdb");
	assert_int_equal(pe_section_at(&head, 0x1073)->rva, 0x1000);
	assert_null(pe_section_at(&head, 0x1074));
	assert_null(pe_section_at(&head, 0xFFFFFFFF));
	buf_free(&image);
}

TEST(the_symbol_table_names_private_functions_and_no_data)
{
	struct buf image = {0};
	struct rva_index *index;

	rva_lab_load("symtab.exe", &image);
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

TEST(an_export_s_name_ends_with_its_function)
{
	struct buf image = {0};
	struct rva_index *index;

	rva_lab_load("functions.exe", &image);
	index = index_of(&image, true);
	assert_int_equal(rva_index_count(index), 1);
	assert_string_equal(name_at(index, 0x1010), "beta");
	assert_string_equal(name_at(index, 0x1038), "beta");
	assert_string_equal(name_at(index, 0x1040), "");     /* hidden */
	assert_string_equal(name_at(index, 0x1060), "");     /* start */
	rva_index_free(index);
	buf_free(&image);
}

TEST(without_bounds_an_export_names_its_first_byte_only)
{
	struct buf image = {0};
	struct rva_index *index;

	rva_lab_load("functions.exe", &image);
	/* The machine becomes x86's, which has no .pdata. */
	memcpy(image.data + (unsigned char)image.data[60] + 4, "\x4c\x01", 2);
	index = index_of(&image, true);
	assert_string_equal(name_at(index, 0x1010), "beta");
	assert_string_equal(name_at(index, 0x1011), "");
	rva_index_free(index);
	buf_free(&image);
}

TEST(the_best_name_of_an_rva_stays_and_bounds_hide_none)
{
	struct rva_index *index = rva_index_new();

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

static int read_pe(const struct bytes *in, struct rva_index *index)
{
	struct pe_head head;
	int rc = pe_head_read(in, &head, NULL);

	if (!rc)
		rc = pe_functions(in, &head, index, NULL);
	return rc ? rc : pe_bounds(in, &head, index, NULL);
}

TEST(an_image_cut_or_changed_at_any_byte_is_survived)
{
	struct buf image = {0};

	rva_lab_load("symtab.exe", &image);
	rva_lab_damage(&image, 1, 1, true, read_pe);
	buf_free(&image);
}

TEST(lack_of_memory_is_an_error_at_every_place)
{
	struct buf image = {0};

	rva_lab_load("symtab.exe", &image);
	assert_in_range(rva_lab_walk(&image, read_pe), 5, 30);
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
