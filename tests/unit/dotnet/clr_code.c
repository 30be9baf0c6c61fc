/*
 * A runtime's tables of its code, made by hand in 4.5 KB of memory: N.Outer.First is at 0x1020,
 * N.Outer.Second at 0x1064, its Inner's Third at 0x10a0.
 */
#include "source/dotnet/clr_code.h"
#include "tests/support/symbol_world.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define BASE UINT64_C(0x10000000)
#define BYTES 0x1200u

enum {
	LAST_TABLE = 0x60, FRAGMENT = 0x480, SECTION = 0x4a0, HEAP = 0x4e0, MAP = 0x520,
	HEADER = 0x740, CHUNK = 0x800, INNER_CHUNK = 0x860, OUTER = 0x8c0, INNER = 0x8e0,
	MODULE = 0x900, ROOT = 0xb40,
};

static uint8_t image[BYTES];

static size_t read_image(void *ctx, uint64_t address, void *to, size_t n)
{
	uint64_t at = address - BASE;

	(void)ctx;
	if (at >= BYTES)
		return 0;
	n = n < BYTES - at ? n : BYTES - at;
	memcpy(to, image + at, n);
	return n;
}

static const struct managed_memory memory = {.read = read_image};

static void point(uint32_t at, uint32_t to)
{
	put_u32(image + at, (uint32_t)BASE + to);
}

/* A method whose code is at `code`, and what says which it is. */
static void put_method(uint32_t code, uint32_t header, uint32_t desc, uint8_t number,
		       uint8_t method)
{
	point(code - 8, header);
	point(header + 0x18, desc);
	image[desc] = method;
	image[desc + 2] = number;
}

static void put_image(void)
{
	memset(image, 0, sizeof(image));
	point(0, 8);                                 /* the tables lie within each other */
	point(8, 16);
	point(16, 24);
	point(24 + 8 * 8, LAST_TABLE);
	point(LAST_TABLE, FRAGMENT);
	point(FRAGMENT + 8, 0x1000);
	point(FRAGMENT + 16, 0x1100);
	point(FRAGMENT + 24, SECTION);
	image[SECTION + 0x10] = 2;
	point(SECTION + 0x28, HEAP);
	point(HEAP + 0x20, 0x1000);
	point(HEAP + 0x28, MAP);
	put_u32(image + MAP, 0x01020100);            /* of the blocks 1, 3 and 5 */
	put_method(0x1020, HEADER, CHUNK + 0x18, 0, 1);
	put_method(0x1064, HEADER + 0x20, CHUNK + 0x28, 2, 2);
	put_method(0x10a0, HEADER + 0x40, INNER_CHUNK + 0x18, 0, 3);
	point(CHUNK, OUTER);
	point(INNER_CHUNK, INNER);
	image[OUTER + 0xa] = 2;
	image[INNER + 0xa] = 3;
	point(OUTER + 0x18, MODULE);
	point(INNER + 0x18, MODULE);
	put_clr_metadata(image + ROOT);
	point(MODULE + 0x100, CHUNK);                /* no name */
	point(MODULE + 0x108, ROOT + CLR_STRINGS_AT + 7);
}

/* "MODULE!NAME" of an address, "" = none. */
static const char *name_at(uint32_t at)
{
	static char text[CLR_NAME_BYTES + CLR_MODULE_BYTES + 16];
	struct clr_code code = {.ranges = BASE};
	struct clr_method method;

	text[0] = '\0';
	if (clr_code_find(&code, &memory, BASE + at, &method))
		snprintf(text, sizeof(text), "%s!%s+%x", method.module, method.name,
			 (unsigned)(BASE + at - method.start));
	clr_code_free(&code);
	return text;
}

TEST(each_address_has_the_method_that_begins_last_before_it)
{
	put_image();
	assert_string_equal(name_at(0x101f), "");
	assert_string_equal(name_at(0x1020), "M!N.Outer.First+0");
	assert_string_equal(name_at(0x1063), "M!N.Outer.First+43");
	assert_string_equal(name_at(0x1064), "M!N.Outer.Second+0");
	assert_string_equal(name_at(0x10ff), "M!N.Outer+Inner.Third+5f");
	assert_string_equal(name_at(0x1100), "");
}

/* Its memory may be another method's by now. */
TEST(code_that_may_be_given_back_has_no_name)
{
	put_image();
	image[SECTION + 0x10] = 3;
	assert_string_equal(name_at(0x1020), "");
	put_image();
	image[CHUNK + 0x18 + 6] = 7;                 /* a dynamic method */
	assert_string_equal(name_at(0x1020), "");
	assert_string_equal(name_at(0x1064), "M!N.Outer.Second+0");
}

TEST(a_stub_has_no_name)
{
	put_image();
	put_u32(image + 0x1020 - 8, 15);
	assert_string_equal(name_at(0x1020), "");
}

/* Where the metadata say otherwise, the tables were not understood. */
TEST(a_method_of_another_type_than_the_metadata_say_has_no_name)
{
	put_image();
	image[OUTER + 0xa] = 3;
	assert_string_equal(name_at(0x1020), "");
	put_image();
	image[CHUNK + 0x18] = 3;
	assert_string_equal(name_at(0x1020), "");
	put_image();
	image[CHUNK + 0x18] = 9;
	assert_string_equal(name_at(0x1020), "");
}

/* .NET 9: u32 8, its low byte are flags. */
TEST(the_number_of_a_type_may_have_more_bits)
{
	put_image();
	image[OUTER + 0xa] = 0;
	image[OUTER + 9] = 2;
	assert_string_equal(name_at(0x1020), "M!N.Outer.First+0");
}

TEST(a_module_without_metadata_gives_no_names)
{
	put_image();
	image[ROOT] = 'X';
	assert_string_equal(name_at(0x1020), "");
	put_image();
	put_u32(image + MODULE + 0x108, 0);
	assert_string_equal(name_at(0x1020), "");
}

/* Every word of the tables in turn is 0, points to itself, or beyond the memory. */
TEST(any_word_may_be_wrong)
{
	const uint64_t wrong[] = {0, BASE, BASE + BYTES - 4, UINT64_MAX - 7};
	uint32_t at, i;

	for (at = 0; at + 8 <= BYTES; at += 8)
		for (i = 0; i < 4; i++) {
			put_image();
			memcpy(image + at, &wrong[i], 8);
			name_at(0x1020);
			name_at(0x10ff);
		}
}

/* A name once seen is the one of the same method later, though other modules' bytes came. */
TEST(metadata_are_read_once_for_a_module)
{
	struct clr_code code = {.ranges = BASE};
	struct clr_method method;

	put_image();
	assert_true(clr_code_find(&code, &memory, BASE + 0x1020, &method));
	assert_int_equal(code.nmodules, 1);
	assert_int_equal(code.bytes, CLR_METADATA_BYTES);
	assert_true(clr_code_find(&code, &memory, BASE + 0x10a0, &method));
	assert_int_equal(code.nmodules, 1);
	assert_int_equal(code.bytes, CLR_METADATA_BYTES);
	clr_code_free(&code);
	assert_int_equal(code.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_has_the_method_that_begins_last_before_it),
		cmocka_unit_test(code_that_may_be_given_back_has_no_name),
		cmocka_unit_test(a_stub_has_no_name),
		cmocka_unit_test(a_method_of_another_type_than_the_metadata_say_has_no_name),
		cmocka_unit_test(the_number_of_a_type_may_have_more_bits),
		cmocka_unit_test(a_module_without_metadata_gives_no_names),
		cmocka_unit_test(any_word_may_be_wrong),
		cmocka_unit_test(metadata_are_read_once_for_a_module),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
