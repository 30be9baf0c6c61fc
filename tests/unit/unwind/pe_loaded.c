/* Headers of a loaded image, by hand. */
#include "tests/support/test.h"
#include "unwind/pe_loaded.h"

#include <string.h>

enum { NT = 0x80, OPTIONAL = NT + 24, HEAD_BYTES = 0x200 };

static uint8_t head[HEAD_BYTES];

static void put_u32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

static void make_head(void)
{
	memset(head, 0, sizeof(head));
	memcpy(head, "MZ", 2);
	put_u32(head + 60, NT);
	memcpy(head + NT, "PE\0\0\x64\x86", 6);
	put_u32(head + NT + 8, 0x5f5e1000);
	put_u32(head + NT + 20, 240);                /* 112 and 16 directories */
	put_u32(head + OPTIONAL, 0x20b);
	put_u32(head + OPTIONAL + 56, 0x10000);
	put_u32(head + OPTIONAL + 108, 16);
	put_u32(head + OPTIONAL + 112 + 8 * 3, 0x3000);
	put_u32(head + OPTIONAL + 116 + 8 * 3, 24);
	put_u32(head + OPTIONAL + 112 + 8 * 6, 0x4000);
	put_u32(head + OPTIONAL + 116 + 8 * 6, 28);
}

TEST(the_head_says_where_things_are)
{
	struct pe_loaded out;

	make_head();
	assert_true(pe_loaded_head(head, sizeof(head), &out));
	assert_int_equal(out.timestamp, 0x5f5e1000);
	assert_int_equal(out.image_bytes, 0x10000);
	assert_int_equal(out.pdata_rva, 0x3000);
	assert_int_equal(out.pdata_bytes, 24);
	assert_int_equal(out.debug_rva, 0x4000);
	assert_int_equal(out.debug_bytes, 28);
}

TEST(a_directory_outside_of_the_image_is_none)
{
	struct pe_loaded out;

	make_head();
	put_u32(head + OPTIONAL + 116 + 8 * 3, 0xd001);
	assert_true(pe_loaded_head(head, sizeof(head), &out));
	assert_int_equal(out.pdata_bytes, 0);
	make_head();
	put_u32(head + OPTIONAL + 108, 6);           /* number 6 is not among six */
	assert_true(pe_loaded_head(head, sizeof(head), &out));
	assert_int_equal(out.debug_bytes, 0);
	assert_int_equal(out.pdata_bytes, 24);
}

TEST(what_is_no_x64_image_is_refused)
{
	struct pe_loaded out;

	make_head();
	head[NT + 4] = 0x4c;                         /* x86 */
	head[NT + 5] = 0x01;
	assert_false(pe_loaded_head(head, sizeof(head), &out));
	make_head();
	put_u32(head + 60, 0xfffffff0);
	assert_false(pe_loaded_head(head, sizeof(head), &out));
	make_head();
	for (size_t n = 0; n < OPTIONAL + 112; n++)
		assert_false(pe_loaded_head(head, n, &out));
}

TEST(the_pdb_is_named_by_its_code_view_record)
{
	uint8_t directory[56] = {0}, rsds[PE_LOADED_RSDS_BYTES] = "RSDS0123456789abcdef\x07",
		guid[16];
	uint32_t age;

	put_u32(directory + 12, 13);                 /* another kind before it */
	put_u32(directory + 28 + 12, 2);
	put_u32(directory + 28 + 16, 40);
	put_u32(directory + 28 + 20, 0x5000);
	assert_int_equal(pe_loaded_rsds_at(directory, 56, 0x10000), 0x5000);
	assert_int_equal(pe_loaded_rsds_at(directory, 55, 0x10000), 0);
	assert_int_equal(pe_loaded_rsds_at(directory, 56, 0x5010), 0);
	assert_true(pe_loaded_rsds(rsds, guid, &age));
	assert_memory_equal(guid, "0123456789abcdef", 16);
	assert_int_equal(age, 7);
	rsds[0] = 'N';
	assert_false(pe_loaded_rsds(rsds, guid, &age));
}

TEST(unwind_info_lies_from_the_lowest_to_behind_the_highest)
{
	uint8_t pdata[48] = {0};
	uint32_t rva, nbytes;

	put_u32(pdata + 8, 0x6100);
	put_u32(pdata + 20, 0x6000);
	put_u32(pdata + 32, 0x2001);                 /* another entry of the directory */
	put_u32(pdata + 44, 0x999999);               /* not in the image */
	assert_true(pe_loaded_info_span(pdata, 48, 0x10000, &rva, &nbytes));
	assert_int_equal(rva, 0x6000);
	assert_int_equal(nbytes, 0x100 + PE_LOADED_INFO_MAX_BYTES);
	assert_true(pe_loaded_info_span(pdata, 48, 0x6110, &rva, &nbytes));
	assert_int_equal(nbytes, 0x110);             /* to the end of the image */
	assert_false(pe_loaded_info_span(pdata, 11, 0x10000, &rva, &nbytes));
}

/* As mingw writes it: .eh_frame is "/4", of constants; debug information is discardable. */
TEST(an_x86_image_has_unwind_tables_in_a_section)
{
	enum { SECTIONS = OPTIONAL + 0xe0 };
	struct pe_loaded out;

	make_head();
	memcpy(head + NT + 4, "\x4c\x01\x03\x00", 4);
	memset(head + OPTIONAL, 0, HEAD_BYTES - OPTIONAL);
	put_u32(head + NT + 20, 0xe0);
	put_u32(head + OPTIONAL, 0x10b);
	put_u32(head + OPTIONAL + 56, 0x10000);
	put_u32(head + OPTIONAL + 92, 16);
	put_u32(head + OPTIONAL + 96 + 8 * 6, 0x4000);
	put_u32(head + OPTIONAL + 100 + 8 * 6, 28);
	memcpy(head + SECTIONS, "/19", 4);
	put_u32(head + SECTIONS + 36, 0x42000040);
	memcpy(head + SECTIONS + 40, "/4", 3);
	put_u32(head + SECTIONS + 48, 0x1584);
	put_u32(head + SECTIONS + 52, 0x9000);
	put_u32(head + SECTIONS + 76, 0x40000040);
	assert_true(pe_loaded_head(head, sizeof(head), &out));
	assert_true(out.is_32_bit);
	assert_int_equal(out.debug_rva, 0x4000);
	assert_int_equal(out.pdata_bytes, 0);
	assert_int_equal(out.eh_rva, 0x9000);
	assert_int_equal(out.eh_bytes, 0x1584);
	/* clang's linker cuts the name */
	memcpy(head + SECTIONS + 40, ".eh_fram", 8);
	assert_true(pe_loaded_head(head, sizeof(head), &out));
	assert_int_equal(out.eh_rva, 0x9000);
	put_u32(head + SECTIONS + 52, 0xf000);       /* ends outside of the image */
	assert_true(pe_loaded_head(head, sizeof(head), &out));
	assert_int_equal(out.eh_bytes, 0);
	assert_true(pe_loaded_head(head, SECTIONS + 79, &out));
	assert_int_equal(out.eh_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_head_says_where_things_are),
		cmocka_unit_test(a_directory_outside_of_the_image_is_none),
		cmocka_unit_test(an_x86_image_has_unwind_tables_in_a_section),
		cmocka_unit_test(what_is_no_x64_image_is_refused),
		cmocka_unit_test(the_pdb_is_named_by_its_code_view_record),
		cmocka_unit_test(unwind_info_lies_from_the_lowest_to_behind_the_highest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
