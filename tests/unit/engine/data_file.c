/* --data-file: which file, in which format, and that none is ever replaced. */
#include "engine/data_file.h"

#include "base/array.h"
#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(the_suffix_gives_the_format_and_an_etl_is_perfviews)
{
	static const char *const names[][2] = {
		{"x.html", "x.html"}, {"d/x.FOLDED", "d/x.FOLDED"}, {"x", "x.perfView.xml.zip"},
		{"x.etl", "x.perfView.xml.zip"}, {"x.ETL.zip", "x.perfView.xml.zip"},
		{"x.2026.etl", "x.2026.perfView.xml.zip"}, {"x.perfView.xml", "x.perfView.xml"},
		{"d.etl/x", "d.etl/x.perfView.xml.zip"}, {"x.foo", "x.foo.perfView.xml.zip"},
	};
	struct buf out = {0};
	size_t i;

	for (i = 0; i < COUNT_OF(names); i++) {
		buf_reset(&out);
		data_file_first(names[i][0], &out);
		assert_string_equal(buf_text(&out), names[i][1]);
	}
	buf_free(&out);
}

TEST(names_that_cannot_be_are_refused_at_the_start)
{
	static const char *const bad[] = {"", ".html", ".etl", "no/such/directory/x.html",
					  "./.html", "./"};
	struct err err = {0};
	size_t i;

	assert_int_equal(data_file_check("x.html", &err), 0);
	for (i = 0; i < COUNT_OF(bad); i++) {
		if (data_file_check(bad[i], &err) != ERR_USAGE)
			fail_msg("'%s' is not refused", bad[i]);
		assert_non_null(strstr(err.text, "--data-file: "));
	}
}

TEST(a_store_that_is_not_there_leaves_no_file)
{
	struct buf path = {0};
	struct err err = {0};

	assert_int_equal(data_file_write("no-such-store.db", 1, "never.html", NULL, &path, &err),
			 ERR_NOT_FOUND);
	assert_int_equal(path.len, 0);
	assert_false(os_exists("never.html"));
	buf_free(&path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_suffix_gives_the_format_and_an_etl_is_perfviews),
		cmocka_unit_test(names_that_cannot_be_are_refused_at_the_start),
		cmocka_unit_test(a_store_that_is_not_there_leaves_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
