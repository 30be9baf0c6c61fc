#include "base/varint.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t edges[] = {
	0, 1, 127, 128, 300, 16383, 16384, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX,
};
static const size_t edge_bytes[] = {1, 1, 1, 2, 2, 2, 3, 5, 10, 10};

#define NEDGES COUNT_OF(edges)

TEST(varint_reads_back_what_it_wrote_in_the_fewest_bytes)
{
	uint8_t bytes[VARINT_MAX_BYTES];
	size_t i;

	for (i = 0; i < NEDGES; i++) {
		const uint8_t *at = bytes;
		uint64_t v = 1234;

		assert_int_equal(varint_put(bytes, edges[i]), edge_bytes[i]);
		assert_true(varint_get(&at, bytes + edge_bytes[i], &v));
		assert_true(v == edges[i]);
		assert_ptr_equal(at, bytes + edge_bytes[i]);
	}
}

TEST(varint_bytes_are_leb128)
{
	uint8_t bytes[VARINT_MAX_BYTES];

	assert_int_equal(varint_put(bytes, 300), 2);
	assert_int_equal(bytes[0], 0xac);   /* 300 = 2 * 128 + 44, 44 | 0x80 */
	assert_int_equal(bytes[1], 0x02);
}

TEST(varint_cut_anywhere_is_refused)
{
	uint8_t bytes[VARINT_MAX_BYTES];
	size_t i, n;

	for (i = 0; i < NEDGES; i++) {
		varint_put(bytes, edges[i]);
		for (n = 0; n < edge_bytes[i]; n++) {
			const uint8_t *at = bytes;
			uint64_t v = 1234;

			assert_false(varint_get(&at, bytes + n, &v));
			assert_true(v == 1234);
		}
	}
}

TEST(varint_of_more_than_64_bits_is_refused)
{
	uint8_t bytes[11] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0};
	const uint8_t *at = bytes;
	uint64_t v = 1234;

	assert_false(varint_get(&at, bytes + sizeof(bytes), &v));
	bytes[9] = 0x81;              /* an eleventh byte would follow */
	at = bytes;
	assert_false(varint_get(&at, bytes + sizeof(bytes), &v));
	assert_true(v == 1234);
}

TEST(zigzag_puts_small_numbers_of_both_signs_first)
{
	static const int64_t signed_of[] = {0, -1, 1, -2, 2};
	uint64_t i;

	for (i = 0; i < 5; i++) {
		assert_true(zigzag(signed_of[i]) == i);
		assert_true(unzigzag(i) == signed_of[i]);
	}
	assert_true(zigzag(INT64_MAX) == UINT64_MAX - 1);
	assert_true(zigzag(INT64_MIN) == UINT64_MAX);
	assert_true(unzigzag(UINT64_MAX) == INT64_MIN);
	assert_true(unzigzag(UINT64_MAX - 1) == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varint_reads_back_what_it_wrote_in_the_fewest_bytes),
		cmocka_unit_test(varint_bytes_are_leb128),
		cmocka_unit_test(varint_cut_anywhere_is_refused),
		cmocka_unit_test(varint_of_more_than_64_bits_is_refused),
		cmocka_unit_test(zigzag_puts_small_numbers_of_both_signs_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
