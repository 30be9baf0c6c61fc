/* Small things done with texts. */
#include "base/text.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(a_copy_is_cut_at_its_limit)
{
	char *whole = text_dup("recorder", SIZE_MAX), *cut = text_dup("recorder", 3);

	assert_string_equal(whole, "recorder");
	assert_string_equal(cut, "rec");
	free(whole);
	free(cut);
}

TEST(a_base_name_follows_the_last_separator)
{
	assert_string_equal(text_base_name("/usr/bin/gcc-12"), "gcc-12");
	assert_string_equal(text_base_name("C:\\Windows\\notepad.exe"), "notepad.exe");
	assert_string_equal(text_base_name("gcc"), "gcc");
	assert_string_equal(text_base_name("/opt/back\\slash"), "back\\slash");
	assert_string_equal(text_base_name("\\Device\\HarddiskVolume2\\a/b.dll"), "b.dll");
	assert_string_equal(text_base_name("/opt/dir/"), "dir/");
	assert_string_equal(text_base_name("/"), "/");
	assert_string_equal(text_base_name(""), "");
}

TEST(without_memory_there_is_no_copy)
{
	alloc_walk_fail_at(1);
	assert_null(text_dup("recorder", SIZE_MAX));
	alloc_walk_fail_at(0);
}

TEST(hex_digits_have_values_in_both_cases)
{
	assert_int_equal(hex_digit('0'), 0);
	assert_int_equal(hex_digit('9'), 9);
	assert_int_equal(hex_digit('a'), 10);
	assert_int_equal(hex_digit('F'), 15);
	assert_int_equal(hex_digit('g'), -1);
	assert_int_equal(hex_digit('@'), -1);
	assert_int_equal(hex_digit('\0'), -1);
	assert_int_equal(hex_digit('\xe1'), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_cut_at_its_limit),
		cmocka_unit_test(a_base_name_follows_the_last_separator),
		cmocka_unit_test(without_memory_there_is_no_copy),
		cmocka_unit_test(hex_digits_have_values_in_both_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
