/* Numbers and texts as the commands print them. */
#include "base/fit.h"
#include "cli/cmd.h"
#include "tests/support/test.h"

#include <string.h>

TEST(numbers_are_written_for_people)
{
	char t[NUMBER_BYTES];

	assert_string_equal(text_count(0, t), "0");
	assert_string_equal(text_count(999, t), "999");
	assert_string_equal(text_count(1000, t), "1,000");
	assert_string_equal(text_count(1234567, t), "1,234,567");
	assert_string_equal(text_count(UINT64_MAX, t), "18,446,744,073,709,551,615");
	assert_string_equal(text_bytes(999, t), "999 B");
	assert_string_equal(text_bytes(1000, t), "1.0 KB");
	assert_string_equal(text_bytes(1 << 20, t), "1.0 MB");
	assert_string_equal(text_bytes((uint64_t)1500 << 20, t), "1.5 GB");
	assert_string_equal(text_seconds(5, t), "5 s");
	assert_string_equal(text_seconds(61.25, t), "61.2 s");
	assert_string_equal(text_seconds(3600, t), "60.0 min");
	assert_string_equal(text_seconds(86400, t), "24.0 h");
	assert_string_equal(text_seconds(864000, t), "10.0 days");
}

TEST(text_is_cut_between_characters)
{
	struct buf out = {0};

	fit_cut(&out, "short", 5);
	assert_string_equal(buf_text(&out), "short");
	buf_reset(&out);
	fit_cut(&out, "longer", 5);
	assert_string_equal(buf_text(&out), "long\xe2\x80\xa6");
	buf_reset(&out);
	fit_cut(&out, "\xc3\xa4\xc3\xb6\xc3\xbc", 2);
	assert_string_equal(buf_text(&out), "\xc3\xa4\xe2\x80\xa6");
	buf_reset(&out);
	fit_cut(&out, "a\nb", 9);
	assert_string_equal(buf_text(&out), "a b");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_written_for_people),
		cmocka_unit_test(text_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
