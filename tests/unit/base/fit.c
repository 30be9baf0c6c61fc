/*
 * Text fitted to a terminal: what is cut, what goes on on the next line, and that a pipe gets all.
 */
#include "base/fit.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define DOTS "\xe2\x80\xa6"

static void expect_cut(const char *text, size_t columns, const char *want)
{
	struct buf out = {0};

	fit_cut(&out, text, columns);
	assert_string_equal(buf_text(&out), want);
	buf_free(&out);
}

static void expect_last(const char *before, const char *text, size_t indent, size_t columns,
			const char *want)
{
	struct buf out = {0};

	buf_puts(&out, before);
	fit_last(&out, text, indent, columns);
	assert_string_equal(buf_text(&out), want);
	buf_free(&out);
}

static void expect_lines(const char *text, size_t columns, const char *want)
{
	struct buf out = {0};

	fit_lines(&out, text, strlen(text), columns);
	assert_string_equal(buf_text(&out), want);
	buf_free(&out);
}

TEST(what_fits_is_not_cut_and_what_does_not_ends_in_dots)
{
	expect_cut("server!main", 11, "server!main");
	expect_cut("server!main", 10, "server!ma" DOTS);
	expect_cut("one two", 5, "one" DOTS);
	expect_cut("server!main", 1, DOTS);
	expect_cut("server!main", 0, "");
}

TEST(characters_stay_whole)
{
	expect_cut("\xc3\xa4\xc3\xb6\xc3\xbc", 3, "\xc3\xa4\xc3\xb6\xc3\xbc");
	expect_cut("\xc3\xa4\xc3\xb6\xc3\xbc", 2, "\xc3\xa4" DOTS);
	expect_cut("a\xff" "bc", 3, "a\xef\xbf\xbd" DOTS);
	expect_lines("\xc3\xa4\xc3\xb6\xc3\xbc", 2, "\xc3\xa4\xc3\xb6\n\xc3\xbc");
}

TEST(what_nobody_sees_takes_the_columns_that_it_is_shown_in)
{
	expect_cut("a\xe2\x80\xae" "bc", 11, "a\\u{202e}bc");
	expect_cut("a\xe2\x80\xae" "bc", 10, "a\\u{202e}" DOTS);
}

TEST(the_last_cell_takes_what_the_others_leave)
{
	expect_last("a line\n12345  ", "abcdefghijklmnopqrstuvwxyz", 0, 27,
		    "a line\n12345  abcdefghijklmnopqrs" DOTS);
	expect_last("12345  ", "abc", 2, 27, "12345  abc");          /* no room for the indent */
	expect_last("12345  ", "abc", 2, 29, "12345    abc");
}

TEST(it_goes_below_where_they_leave_hardly_any)
{
	expect_last("12345  ", "abcdefghijklmnopqrstuvwxyz", 0, 26,
		    "12345  \n    abcdefghijklmnopqrstu" DOTS);
	expect_last("12345  ", "abc", 0, 3, "12345  \n    " DOTS);
}

TEST(without_a_terminal_all_of_it_stands_there)
{
	char name[5001];
	struct buf out = {0};

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	fit_last(&out, name, 100, FIT_ALL);
	assert_int_equal(out.len, 5100);
	buf_free(&out);
}

TEST(lines_break_at_blanks_and_go_on_under_their_text)
{
	expect_lines("Note      one two three four\nok\n", 26,
		     "Note      one two three\n          four\nok\n");
	expect_lines("one two three", 7, "one two\nthree");
	expect_lines("one two three", 9, "one two\nthree");
	expect_lines("one  two   ", 4, "one\ntwo");
	expect_lines("abcdefgh", 3, "abc\ndef\ngh");
	expect_lines("    abcdefgh", 8, "    abcd\nefgh");     /* no room for an indent */
	expect_lines("", 3, "");
	expect_lines("\n\n", 3, "\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_not_cut_and_what_does_not_ends_in_dots),
		cmocka_unit_test(characters_stay_whole),
		cmocka_unit_test(what_nobody_sees_takes_the_columns_that_it_is_shown_in),
		cmocka_unit_test(the_last_cell_takes_what_the_others_leave),
		cmocka_unit_test(it_goes_below_where_they_leave_hardly_any),
		cmocka_unit_test(without_a_terminal_all_of_it_stands_there),
		cmocka_unit_test(lines_break_at_blanks_and_go_on_under_their_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
