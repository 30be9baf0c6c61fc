#include "base/bytes.h"
#include "tests/support/test.h"

#include <stdio.h>

static const uint8_t bytes[] = {0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 'h', 'i', 0};

TEST(numbers_are_read_low_byte_first_at_any_address)
{
	assert_int_equal(le16(bytes + 1), 0xa392);
	assert_int_equal(le32(bytes + 1), 0xc5b4a392u);
	assert_true(le64(bytes) == 0xf8e7d6c5b4a39281u);
	assert_true(le_sized(bytes, 1) == 0x81 && le_sized(bytes, 2) == 0x9281);
	assert_true(le_sized(bytes, 3) == 0xa39281 && le_sized(bytes, 4) == 0xb4a39281u);
	assert_true(le_sized(bytes, 8) == le64(bytes));
}

TEST(numbers_are_written_as_they_are_read)
{
	uint8_t to[9] = {0};
	struct buf b = {0};

	put_le32(to + 1, 0x04030201);
	assert_memory_equal(to, "\0\1\2\3\4\0", 6);
	put_le64(to + 1, 0x0807060504030201);
	assert_memory_equal(to, "\0\1\2\3\4\5\6\7\10", 9);
	buf_put_le(&b, 0x030201, 2);
	buf_put_le(&b, 0x03, 1);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "\1\2\3", 3);
	buf_free(&b);
}

TEST(a_number_outside_its_bytes_is_the_one_that_was_given_for_it)
{
	assert_int_equal(le32_or(bytes, 8, 4, 7), 0xf8e7d6c5u);
	assert_int_equal(le32_or(bytes, 8, 5, 7), 7);
	assert_int_equal(le32_or(bytes, 8, SIZE_MAX, 7), 7);
	assert_int_equal(le32_or(NULL, 0, 0, 7), 7);
}

TEST(a_cursor_reads_to_the_end_and_not_beyond)
{
	struct cursor c = cursor_over(bytes, sizeof(bytes));
	uint8_t copy[4];
	uint64_t v;

	assert_true(cursor_number(&c, 2, &v) && v == 0x9281);
	assert_true(cursor_number(&c, 1, &v) && v == 0xa3);
	assert_true(cursor_skip(&c, 1));
	assert_true(cursor_number(&c, 4, &v) && v == 0xf8e7d6c5);
	assert_int_equal(cursor_left(&c), 3);
	assert_false(cursor_number(&c, 4, &v));
	assert_false(cursor_skip(&c, UINT64_MAX));
	assert_false(cursor_get(&c, copy, 4));
	assert_null(cursor_take(&c, 4));
	assert_int_equal(cursor_left(&c), 3);
	assert_string_equal(cursor_text(&c), "hi");
	assert_int_equal(cursor_left(&c), 0);
	assert_null(cursor_text(&c));
	assert_false(cursor_number(&c, 1, &v));
	assert_ptr_equal(cursor_take(&c, 0), bytes + sizeof(bytes));
}

TEST(a_text_without_its_nul_is_not_read)
{
	struct cursor c = cursor_over(bytes, sizeof(bytes) - 1);

	assert_true(cursor_skip(&c, 8));
	assert_null(cursor_text(&c));
	assert_int_equal(cursor_left(&c), 2);
}

TEST(no_bytes_at_all_are_an_empty_cursor)
{
	struct cursor c = cursor_over(NULL, 0);

	assert_int_equal(cursor_left(&c), 0);
	assert_false(cursor_skip(&c, 1));
	assert_true(cursor_skip(&c, 0));
	assert_null(cursor_text(&c));
}

TEST(guids_are_the_same_when_all_bytes_are)
{
	static const uint8_t a[GUID_BYTES] = {1, 2, 3}, b[GUID_BYTES] = {1, 2, 3};
	static const uint8_t other[GUID_BYTES] = {[0] = 1, 2, 3, [15] = 1};

	assert_true(guid_same(a, b));
	assert_false(guid_same(a, other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_low_byte_first_at_any_address),
		cmocka_unit_test(numbers_are_written_as_they_are_read),
		cmocka_unit_test(a_number_outside_its_bytes_is_the_one_that_was_given_for_it),
		cmocka_unit_test(a_cursor_reads_to_the_end_and_not_beyond),
		cmocka_unit_test(a_text_without_its_nul_is_not_read),
		cmocka_unit_test(no_bytes_at_all_are_an_empty_cursor),
		cmocka_unit_test(guids_are_the_same_when_all_bytes_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
