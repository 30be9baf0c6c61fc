/*
 * A .NET image with precompiled code, made by hand: N.Outer has First and Second, its Inner has
 * Third. Runtime function 0 is First's, 1 its handler, 2 Second's, 3 an instance of Third.
 */
#include "symbol/r2r.h"
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

static void put(uint8_t *to, const void *bytes, size_t n)
{
	memcpy(to, bytes, n);
}

static void put32(uint8_t *to, uint32_t v)
{
	put(to, (uint8_t[]){(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)},
	    4);
}

/* A section's header, the CLR header, the headers of the native code. */
static void put_headers(uint8_t *image)
{
	uint8_t *clr = at_rva(image, 0x1000), *r2r = at_rva(image, 0x1300);

	put(image, "MZ", 2);
	put32(image + 60, 64);
	put(image + 64, "PE\0\0\x1d\xfd\1", 7);
	put(image + 84, "\xf0\0\0\0\x0b\2", 6);
	put32(image + 64 + 24 + 112 + 8 * 14, 0x1000);
	put32(image + 64 + 24 + 240 + 12, SECTION_RVA);
	put32(image + 64 + 24 + 240 + 16, 0x600);
	put32(image + 64 + 24 + 240 + 20, SECTION_AT);
	put32(clr + 8, 0x1100);
	put32(clr + 12, 0x130);
	put32(clr + 64, 0x1300);
	put(r2r, "RTR\0\x9\0\1\0\0\0\0\0\3\0\0\0", 16);
	put(r2r + 16, "\x66\0\0\0\0\x14\0\0\x30\0\0\0", 12);
	put(r2r + 28, "\x67\0\0\0\x40\x14\0\0\x08\0\0\0", 12);
	put(r2r + 40, "\x6d\0\0\0\x80\x14\0\0\x0a\0\0\0", 12);
}

static void put_metadata(uint8_t *image)
{
	static const char strings[] = "\0M.dll\0Outer\0N\0Inner\0First\0Second\0Third\0<Module>";
	uint8_t *root = at_rva(image, 0x1100), *tables = root + 0x40;

	put(root, "BSJB\1\0\1\0\0\0\0\0\4\0\0\0v4\0\0\0\0\2\0", 24);
	put(root + 24, "\x40\0\0\0\x90\0\0\0#~\0\0", 12);
	put(root + 36, "\xd0\0\0\0\x60\0\0\0#Strings\0\0\0\0", 20);
	put(root + 0xd0, strings, sizeof(strings));
	/* Tables 0, 2, 6 and 0x29 have 1, 3, 3 and 1 rows. */
	put(tables, "\0\0\0\0\2\0\0\1\x45\0\0\0\0\2\0\0", 16);
	put(tables + 24, "\1\0\0\0\3\0\0\0\3\0\0\0\1\0\0\0", 16);
	put(tables + 40, "\0\0\1\0\0\0\0\0\0\0", 10);
	put(tables + 50, "\0\0\0\0\x29\0\0\0\0\0\1\0\1\0", 14);
	put(tables + 64, "\0\0\0\0\7\0\xd\0\0\0\1\0\1\0", 14);
	put(tables + 78, "\0\0\0\0\xf\0\0\0\0\0\1\0\3\0", 14);
	put(tables + 92, "\0\0\0\0\0\0\0\0\x15\0\0\0\1\0", 14);
	put(tables + 106, "\0\0\0\0\0\0\0\0\x1b\0\0\0\1\0", 14);
	put(tables + 120, "\0\0\0\0\0\0\0\0\x22\0\0\0\1\0", 14);
	put(tables + 134, "\3\0\2\0", 4);
}

static void put_image(uint8_t image[IMAGE_BYTES])
{
	uint32_t i;

	memset(image, 0, IMAGE_BYTES);
	put_headers(image);
	put_metadata(image);
	for (i = 0; i < 4; i++) {
		put32(at_rva(image, 0x1400) + 12 * i, 0x1500 + 16 * i);
		put32(at_rva(image, 0x1400) + 12 * i + 4, 0x1510 + 16 * i);
	}
	/* 2 elements; a block at 1; its tree goes left, left, left, then to both: 0 and 2 << 1. */
	put(at_rva(image, 0x1440), "\x10\1\2\2\2\x16\0\x8", 8);
	/* One bucket with an entry: a hash, where it is; method 3 of int, function 3 << 1. */
	put(at_rva(image, 0x1480), "\0\2\4\xaa\2\4\3\1\x8\xc", 10);
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
	put32(at_rva(image, 0x1000) + 64, 0);
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
