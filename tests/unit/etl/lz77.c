#include "source/etl/lz77.h"

#include "tests/support/lz77_pack.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 1 << 20 };

static uint8_t out[OUT_MAX];
static size_t got;

#define EXPAND(bytes, n) lz77_expand((const uint8_t *)(bytes), sizeof(bytes) - 1, out, (n), &got)

/* [MS-XCA] 3.1 and 3.2: the two examples of the document. */
TEST(the_document_s_examples_expand)
{
	assert_int_equal(EXPAND("\x3f\0\0\0abcdefghijklmnopqrstuvwxyz", 26), LZ77_WHOLE);
	assert_memory_equal(out, "abcdefghijklmnopqrstuvwxyz", 26);
	/* 300 bytes of abc: 3 literals, then distance 3, length 294 + 3 */
	assert_int_equal(EXPAND("\xff\xff\xff\x1f" "abc" "\x17\x00\x0f\xff\x26\x01", 300),
			 LZ77_WHOLE);
	for (size_t i = 0; i < 300; i++)
		assert_int_equal(out[i], "abc"[i % 3]);
}

TEST(each_form_of_a_length_is_read)
{
	/*
	 * 'a', then distance 1 and: token 2 -> 5; nibble 4 -> 14; byte 9 -> 34; u16 300 -> 303;
	 * u32.
	 */
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x02\0", 6), LZ77_WHOLE);
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x07\0\x04", 15), LZ77_WHOLE);
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x07\0\x0f\x09", 35), LZ77_WHOLE);
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x07\0\x0f\xff\x2c\x01", 304), LZ77_WHOLE);
	assert_int_equal(EXPAND("\0\0\0\x40"
				"a"
				"\x07\0\x0f\xff\0\0\0\0\x01\0",
				65540),
			 LZ77_WHOLE);
	assert_int_equal(out[65539], 'a');
	/* The second long length takes the high half of the first one's nibble: 4 and 5. */
	assert_int_equal(EXPAND("\0\0\0\x60" "a" "\x07\0\x54" "\x07\0", 1 + 14 + 15), LZ77_WHOLE);
}

TEST(bytes_that_are_no_stream_are_told_apart)
{
	assert_int_equal(EXPAND("", 1), LZ77_SHORT);
	assert_int_equal(EXPAND("\0\0\0\0" "ab", 3), LZ77_SHORT);
	assert_int_equal(got, 2);
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x07\0", 30), LZ77_SHORT);
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x07\0\x0f", 30), LZ77_SHORT);
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x07\0\x0f\xff\x01", 30), LZ77_SHORT);
	/* Distance 2 with one byte there; a 16-bit length that a shorter form would have said. */
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x08\0", 6), LZ77_BAD);
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x07\0\x0f\xff\x15\0", 30), LZ77_BAD);
	/* A copy past the end; input that is left over, but for one word of flags. */
	assert_int_equal(EXPAND("\0\0\0\x40" "a" "\x02\0", 5), LZ77_LONG);
	assert_int_equal(got, 5);
	assert_int_equal(EXPAND("\0\0\0\0" "a" "\0\0\0\0", 1), LZ77_WHOLE);
	assert_int_equal(EXPAND("\0\0\0\0" "a" "\0\0\0\0\0", 1), LZ77_LONG);
	assert_int_equal(EXPAND("", 0), LZ77_WHOLE);
}

/* Bytes of every kind: runs, text, noise; expanded into a block of exactly their size. */
TEST(what_the_packer_packs_expands_to_the_same)
{
	static uint8_t plain[300000];
	uint32_t seed = 1;
	size_t n = 0;

	while (n + 70000 < sizeof(plain)) {
		size_t run = seed >> 20 & 1 ? seed >> 24 : seed >> 16;
		bool noise = seed >> 13 & 1;

		for (size_t i = 0; i < run; i++) {
			seed = seed * 1664525 + 1013904223;
			plain[n++] = (uint8_t)(noise	 ? seed >> 24
					       : run % 5 ? i % (run % 5 + 1)
							 : 7);
		}
		seed = seed * 1664525 + 1013904223;
	}
	for (size_t size = 0; size <= n; size = size * 3 + 1) {
		struct buf packed = {0};
		uint8_t *exact = malloc(size ? size : 1);

		assert_non_null(exact);
		lz77_pack(plain, size, &packed);
		assert_int_equal(lz77_expand((const uint8_t *)buf_text(&packed), packed.len, exact,
					     size, &got),
				 LZ77_WHOLE);
		assert_memory_equal(exact, plain, size);
		/* Cut anywhere, what comes out is the beginning of it. */
		for (size_t cut = 0; cut < packed.len; cut += 1 + packed.len / 50) {
			assert_int_equal(lz77_expand((const uint8_t *)buf_text(&packed), cut, exact,
						     size, &got),
					 LZ77_SHORT);
			assert_memory_equal(exact, plain, got);
		}
		free(exact);
		buf_free(&packed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_document_s_examples_expand),
		cmocka_unit_test(each_form_of_a_length_is_read),
		cmocka_unit_test(bytes_that_are_no_stream_are_told_apart),
		cmocka_unit_test(what_the_packer_packs_expands_to_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
