#include "base/planes.h"
#include "tests/support/test.h"

#include <string.h>

static bool planes_join(const uint8_t *bytes, size_t n, uint8_t *out)
{
	struct planes_rest rest;
	struct planes p;
	uint64_t v;

	if (!planes_open(&p, &rest, bytes, n))
		return false;
	while (planes_next(&p, &v))
		out += varint_put(out, v);
	return true;
}

/* 1, 300 = ac 02, 5, 70000 = f0 a2 04: first bytes 01 ac 05 f0, second 02 a2, third 04. */
TEST(planes_hold_the_first_bytes_then_the_second_ones)
{
	static const uint8_t varints[] = {0x01, 0xac, 0x02, 0x05, 0xf0, 0xa2, 0x04};
	static const uint8_t planes[] = {0x01, 0xac, 0x05, 0xf0, 0x02, 0xa2, 0x04};
	size_t ends[VARINT_MAX_BYTES];
	uint8_t out[7], back[7];

	planes_split(varints, 7, out, ends);
	assert_memory_equal(out, planes, 7);
	assert_int_equal(ends[0], 4);
	assert_int_equal(ends[1], 6);
	assert_int_equal(ends[2], 7);
	assert_int_equal(ends[9], 7);
	assert_true(planes_join(out, 7, back));
	assert_memory_equal(back, varints, 7);
	assert_true(planes_join(out, 0, back));
}

TEST(varints_of_all_lengths_come_back)
{
	uint8_t varints[64 * VARINT_MAX_BYTES], planes[sizeof(varints)], back[sizeof(varints)];
	size_t ends[VARINT_MAX_BYTES], n = 0;
	unsigned bit;

	for (bit = 0; bit < 64; bit++)
		n += varint_put(varints + n, UINT64_MAX >> (bit * 29 % 64));
	planes_split(varints, n, planes, ends);
	assert_int_equal(ends[0], 64);
	assert_true(planes_join(planes, n, back));
	assert_memory_equal(back, varints, n);
}

/* The same bytes as of their varints. */
TEST(values_of_all_lengths_come_back)
{
	uint8_t varints[64 * VARINT_MAX_BYTES], planes[sizeof(varints)], of_values[sizeof(varints)];
	size_t ends[VARINT_MAX_BYTES], n = 0, len = 0;
	const uint8_t *at = of_values;
	uint64_t values[64], back[64];
	unsigned i;

	for (i = 0; i < 64; i++) {
		values[i] = UINT64_MAX >> (i * 29 % 64);
		n += varint_put(varints + n, values[i]);
	}
	planes_split(varints, n, planes, ends);
	for (i = 0; i < VARINT_MAX_BYTES; i++) {
		len += planes_put(values, 64, i, of_values + len);
		assert_int_equal(len, ends[i]);
	}
	assert_memory_equal(of_values, planes, n);
	assert_true(planes_get(&at, of_values + n, back, 64));
	assert_ptr_equal(at, of_values + n);
	assert_memory_equal(back, values, sizeof(values));
}

/* One value: 2^64 - 1 takes ten bytes, of which the last is 1. */
TEST(values_of_over_64_bits_and_missing_bytes_are_refused)
{
	uint8_t most[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	const uint8_t *at = most;
	uint64_t value;

	assert_true(planes_get(&at, most + 10, &value, 1));
	assert_true(value == UINT64_MAX && at == most + 10);
	at = most;
	assert_false(planes_get(&at, most + 9, &value, 1));
	at = most;
	most[9] = 2;
	assert_false(planes_get(&at, most + 10, &value, 1));
	at = most;
	assert_true(planes_get(&at, most, &value, 0) && at == most);
}

TEST(bytes_that_are_no_planes_are_refused)
{
	static const uint8_t unended[] = {0x80}, few[] = {0x80, 0x80, 0x01},
			     many[] = {0x01, 0x80, 0x01, 0x01};
	uint8_t eleven[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
		out[16];

	assert_false(planes_join(unended, 1, out));
	assert_false(planes_join(few, 2, out));
	assert_true(planes_join(few, 3, out));           /* one of three bytes */
	assert_true(planes_join(eleven + 1, 10, out));
	assert_false(planes_join(eleven, 11, out));
	assert_true(planes_join(many, 4, out));          /* 01, 80 01, 01 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planes_hold_the_first_bytes_then_the_second_ones),
		cmocka_unit_test(varints_of_all_lengths_come_back),
		cmocka_unit_test(values_of_all_lengths_come_back),
		cmocka_unit_test(values_of_over_64_bits_and_missing_bytes_are_refused),
		cmocka_unit_test(bytes_that_are_no_planes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
