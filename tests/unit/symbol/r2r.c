/*
 * A .NET image with precompiled code, made by hand: N.Outer has First and Second, its Inner has
 * Third. Runtime function 0 is First's, 1 its handler, 2 Second's, 3 an instance of Third.
 */
#include "symbol/r2r.h"
#include "tests/support/symbol_world.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define IMAGE_BYTES 2048u
#define SECTION_RVA 0x1000u
#define SECTION_AT 0x200u

static uint8_t *at_rva(uint8_t *image, uint32_t rva)
{
	return image + SECTION_AT + (rva - SECTION_RVA);
}

/* A section's header, the CLR header, the headers of the native code. */
static void put_headers(uint8_t *image)
{
	uint8_t *clr = at_rva(image, 0x1000), *r2r = at_rva(image, 0x1300);

	put_bytes(image, "MZ", 2);
	put_u32(image + 60, 64);
	put_bytes(image + 64, "PE\0\0\x1d\xfd\1", 7);
	put_bytes(image + 84, "\xf0\0\0\0\x0b\2", 6);
	put_u32(image + 64 + 24 + 112 + 8 * 14, 0x1000);
	put_u32(image + 64 + 24 + 240 + 12, SECTION_RVA);
	put_u32(image + 64 + 24 + 240 + 16, 0x600);
	put_u32(image + 64 + 24 + 240 + 20, SECTION_AT);
	put_u32(clr + 8, 0x1100);
	put_u32(clr + 12, 0x130);
	put_u32(clr + 64, 0x1300);
	put_bytes(r2r, "RTR\0\x9\0\1\0\0\0\0\0\3\0\0\0", 16);
	put_bytes(r2r + 16, "\x66\0\0\0\0\x14\0\0\x30\0\0\0", 12);
	put_bytes(r2r + 28, "\x67\0\0\0\x40\x14\0\0\x08\0\0\0", 12);
	put_bytes(r2r + 40, "\x6d\0\0\0\x80\x14\0\0\x0a\0\0\0", 12);
}

static void put_image(uint8_t image[IMAGE_BYTES])
{
	uint32_t i;

	memset(image, 0, IMAGE_BYTES);
	put_headers(image);
	put_clr_metadata(at_rva(image, 0x1100));
	for (i = 0; i < 4; i++) {
		put_u32(at_rva(image, 0x1400) + 12 * i, 0x1500 + 16 * i);
		put_u32(at_rva(image, 0x1400) + 12 * i + 4, 0x1510 + 16 * i);
	}
	/* 2 elements; a block at 1; its tree goes left, left, left, then to both: 0 and 2 << 1. */
	put_bytes(at_rva(image, 0x1440), "\x10\1\2\2\2\x16\0\x8", 8);
	/* One bucket with an entry: a hash, where it is; method 3 of int, function 3 << 1. */
	put_bytes(at_rva(image, 0x1480), "\0\2\4\xaa\2\4\3\1\x8\xc", 10);
}

static const char *name_at(const struct elf_index *index, uint32_t offset)
{
	struct elf_function function;
	static char name[100];

	if (!elf_find(index, offset, &function) ||
	    elf_function_name(index, NULL, &function, name, sizeof(name), NULL))
		return "";
	return name;
}

TEST(methods_handlers_and_instances_have_names)
{
	uint8_t image[IMAGE_BYTES] = {0};
	struct bytes in = bytes_of_memory(image, sizeof(image));
	struct elf_index *index;

	put_image(image);
	assert_int_equal(r2r_index_new(&in, &index, NULL), 0);
	assert_int_equal(index->nentries, 4);
	assert_string_equal(name_at(index, 0x6ff), "");
	assert_string_equal(name_at(index, 0x700), "M!N.Outer.First");
	assert_string_equal(name_at(index, 0x71f), "M!N.Outer.First");
	assert_string_equal(name_at(index, 0x720), "M!N.Outer.Second");
	assert_string_equal(name_at(index, 0x730), "M!N.Outer+Inner.Third");
	assert_string_equal(name_at(index, 0x740), "");
	elf_index_free(index);
}

/* Whose code it is cannot be said: it is another module's, or two have the same function. */
TEST(an_instance_of_another_module_has_no_name)
{
	uint8_t image[IMAGE_BYTES] = {0};
	struct bytes in = bytes_of_memory(image, sizeof(image));
	struct elf_index *index;

	put_image(image);
	at_rva(image, 0x1480)[5] = 0x14;             /* by reference */
	assert_int_equal(r2r_index_new(&in, &index, NULL), 0);
	assert_string_equal(name_at(index, 0x720), "M!N.Outer.Second");
	assert_string_equal(name_at(index, 0x730), "");
	elf_index_free(index);
	put_image(image);
	at_rva(image, 0x1480)[9] = 8;                /* function 2, which is Second's */
	assert_int_equal(r2r_index_new(&in, &index, NULL), 0);
	assert_string_equal(name_at(index, 0x70f), "M!N.Outer.First");
	assert_string_equal(name_at(index, 0x720), "");
	elf_index_free(index);
}

TEST(what_is_no_precompiled_image_is_said_to_be_none)
{
	uint8_t image[IMAGE_BYTES] = {0};
	struct bytes in = bytes_of_memory(image, sizeof(image));
	struct elf_index *index;

	put_image(image);
	put_u32(at_rva(image, 0x1000) + 64, 0);
	assert_int_equal(r2r_index_new(&in, &index, NULL), ERR_NOT_FOUND);
	memset(image, 0, 64);
	assert_int_equal(r2r_index_new(&in, &index, NULL), ERR_NOT_FOUND);
	in.size = 1;
	assert_int_equal(r2r_index_new(&in, &index, NULL), ERR_FORMAT);
}

/* Every byte changed, every length: an answer, whatever it is. */
TEST(damaged_images_do_no_harm)
{
	uint8_t image[IMAGE_BYTES] = {0}, was;
	struct bytes in = bytes_of_memory(image, sizeof(image));
	struct elf_index *index;
	uint32_t i, k;

	put_image(image);
	for (i = 0; i < IMAGE_BYTES; i++)
		for (k = 0; k < 3; k++) {
			was = image[i];
			image[i] = k == 0 ? 0xff : k == 1 ? 0x80 : (uint8_t)(was + 1);
			if (!r2r_index_new(&in, &index, NULL))
				elf_index_free(index);
			image[i] = was;
		}
	for (in.size = IMAGE_BYTES; in.size--;)
		if (!r2r_index_new(&in, &index, NULL))
			elf_index_free(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_handlers_and_instances_have_names),
		cmocka_unit_test(an_instance_of_another_module_has_no_name),
		cmocka_unit_test(what_is_no_precompiled_image_is_said_to_be_none),
		cmocka_unit_test(damaged_images_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
