#include "base/utf8.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t char_of(const char *text)
{
	return utf8_char(text, text + strlen(text));
}

TEST(utf8_char_measures_characters_of_every_length)
{
	assert_int_equal(char_of("a"), 1);
	assert_int_equal(char_of("\xc2\x80"), 2);             /* U+0080, the first of two bytes */
	assert_int_equal(char_of("\xe2\x82\xac"), 3);         /* euro sign */
	assert_int_equal(char_of("\xed\x9f\xbf"), 3);         /* U+D7FF, before the surrogates */
	assert_int_equal(char_of("\xf4\x8f\xbf\xbf"), 4);     /* U+10FFFF, the last */
	assert_int_equal(char_of(""), 0);
}

TEST(utf8_char_refuses_what_is_no_character)
{
	static const char *const wrong[] = {
		"\x80",                   /* starts in the middle */
		"\xc3", "\xe2\x82", "\xf0\x9f\x98",   /* cut */
		"\xc3(",                  /* the rest is something else */
		"\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",   /* overlong */
		"\xed\xa0\x80", "\xed\xbf\xbf",       /* surrogates */
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",   /* over U+10FFFF */
	};
	size_t i;

	for (i = 0; i < COUNT_OF(wrong); i++)
		assert_int_equal(char_of(wrong[i]), 0);
}

static void assert_clean(const char *text, size_t n, size_t max_bytes, const char *expected)
{
	struct buf b = {0};

	utf8_put_clean(&b, text, n, max_bytes);
	assert_string_equal(buf_text(&b), expected);
	buf_free(&b);
}

TEST(utf8_clean_text_has_no_control_characters_or_invalid_bytes)
{
	assert_clean("caf\xc3\xa9", 5, 100, "caf\xc3\xa9");
	assert_clean("a\n\x1b[31m\x7f!", 9, 100, "a  [31m !");
	assert_clean("a\0b", 3, 100, "a b");
	assert_clean("a\xff\xc3(", 4, 100, "a\xef\xbf\xbd\xef\xbf\xbd(");
	assert_clean("", 0, 100, "");
	/* U+009B starts a terminal's control sequence as ESC [ does. */
	assert_clean("a\xc2\x9b" "31m", 6, 100, "a 31m");
	assert_clean("\xc2\xa0", 2, 100, "\xc2\xa0");
}

TEST(utf8_clean_text_shows_what_nobody_sees)
{
	assert_clean("a\xe2\x80\xae" "b\xe2\x81\xa6\xd8\x9c" "c", 11, 100,
		     "a\\u{202e}b\\u{2066}\\u{061c}c");
	assert_clean("\xf3\xa0\x81\x81\xef\xbb\xbf\xc2\xad", 9, 100,
		     "\\u{e0041}\\u{feff}\\u{00ad}");
	assert_clean("\xd9\x85\xe2\x80\x90\xc2\xae", 7, 100, "\xd9\x85\xe2\x80\x90\xc2\xae");
	assert_clean("a\xe2\x80\xae", 4, 8, "a\xe2\x80\xa6");
}

TEST(utf8_clean_text_is_cut_between_characters_with_an_ellipsis)
{
	assert_clean("abcdef", 6, 6, "abcdef");
	assert_clean("abcdefg", 7, 6, "abcdef\xe2\x80\xa6");
	assert_clean("ab\xc3\xa9", 4, 3, "ab\xe2\x80\xa6");
	assert_clean("ab\xff", 3, 4, "ab\xe2\x80\xa6");
}

TEST(utf8_clean_appends_and_limits_only_its_own_part)
{
	struct buf b = {0};

	buf_puts(&b, "name: ");
	utf8_put_clean(&b, "abcd", 4, 4);
	assert_string_equal(buf_text(&b), "name: abcd");
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_char_measures_characters_of_every_length),
		cmocka_unit_test(utf8_char_refuses_what_is_no_character),
		cmocka_unit_test(utf8_clean_text_has_no_control_characters_or_invalid_bytes),
		cmocka_unit_test(utf8_clean_text_shows_what_nobody_sees),
		cmocka_unit_test(utf8_clean_text_is_cut_between_characters_with_an_ellipsis),
		cmocka_unit_test(utf8_clean_appends_and_limits_only_its_own_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
