/* Small things done with texts. */
#include "base/text.h"
#include "tests/support/alloc_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_copy_is_cut_at_its_limit(void **state)
{
	char *whole = text_dup("recorder", SIZE_MAX), *cut = text_dup("recorder", 3);

	(void)state;
	assert_string_equal(whole, "recorder");
	assert_string_equal(cut, "rec");
	free(whole);
	free(cut);
}

static void a_base_name_follows_the_last_separator(void **state)
{
	(void)state;
	assert_string_equal(text_base_name("/usr/bin/gcc-12"), "gcc-12");
	assert_string_equal(text_base_name("C:\\Windows\\notepad.exe"), "notepad.exe");
	assert_string_equal(text_base_name("gcc"), "gcc");
	assert_string_equal(text_base_name("/opt/back\\slash"), "back\\slash");
	assert_string_equal(text_base_name("\\Device\\HarddiskVolume2\\a/b.dll"), "b.dll");
	assert_string_equal(text_base_name("/opt/dir/"), "dir/");
	assert_string_equal(text_base_name("/"), "/");
	assert_string_equal(text_base_name(""), "");
}

static void without_memory_there_is_no_copy(void **state)
{
	(void)state;
	alloc_walk_fail_at(1);
	assert_null(text_dup("recorder", SIZE_MAX));
	alloc_walk_fail_at(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_cut_at_its_limit),
		cmocka_unit_test(a_base_name_follows_the_last_separator),
		cmocka_unit_test(without_memory_there_is_no_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
