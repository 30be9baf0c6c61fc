/* Rows of texts between tabs, as two databases write and read them. */
#include "net/tsv.h"
#include "tests/support/test.h"

#include <stdlib.h>

TEST(a_row_is_read_as_it_was_written)
{
	const char *fields[4], *const frames[] = {"it's", "a\\b", "\"q\""};
	struct tsv t = {.clickhouse = true};
	char *at;

	tsv_put_int(&t, -7);
	tsv_put_text(&t, "tab\tline\nback\\slash", 19);
	tsv_put_texts(&t, frames, 3);
	tsv_end_row(&t);
	assert_string_equal(t.text.data, "-7\ttab\\tline\\nback\\\\slash\t"
			    "['it\\'s','a\\\\b','\"q\"']\n");
	at = t.text.data;
	assert_int_equal(tsv_next(&at, fields, 4), 3);
	assert_string_equal(fields[0], "-7");
	assert_string_equal(fields[1], "tab\tline\nback\\slash");
	assert_int_equal(tsv_next(&at, fields, 4), 0);
	buf_free(&t.text);
}

TEST(arrays_of_postgresql_are_escaped_twice)
{
	const char *const frames[] = {"it's", "a\\b", "\"q\""};
	struct tsv t = {0};

	tsv_put_texts(&t, frames, 3);
	tsv_end_row(&t);
	assert_string_equal(t.text.data, "{\"it's\",\"a\\\\\\\\b\",\"\\\\\"q\\\\\"\"}\n");
	buf_free(&t.text);
}

TEST(a_row_that_is_cut_or_too_long_is_read_as_far_as_it_goes)
{
	const char *fields[2];
	char text[] = "a\tb\tc\n\nlast\\";
	char *at = text;

	assert_int_equal(tsv_next(&at, fields, 2), 2);
	assert_string_equal(fields[1], "b");
	assert_int_equal(tsv_next(&at, fields, 2), 1);
	assert_string_equal(fields[0], "");
	assert_int_equal(tsv_next(&at, fields, 2), 1);
	assert_string_equal(fields[0], "last\\");
	assert_int_equal(tsv_next(&at, fields, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_read_as_it_was_written),
		cmocka_unit_test(arrays_of_postgresql_are_escaped_twice),
		cmocka_unit_test(a_row_that_is_cut_or_too_long_is_read_as_far_as_it_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
