/* SVG flame graph. What xmllint says of it: tools_linux.c. */
#include "base/array.h"
#include "export/markup.h"
#include "tests/support/export_text.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static uint32_t occurrences(const char *text, const char *what)
{
	uint32_t n = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		n++;
	return n;
}

TEST(boxes_have_name_weight_and_share_as_titles)
{
	static const char *const titles[] = {
		"<title>all (12 samples, 100.0 %)</title>",
		"<title>app (100) (8 samples, 66.7 %)</title>",
		"<title>worker (101) (3 samples, 25.0 %)</title>",
		"<title>app!burn_alpha (4 samples, 33.3 %)</title>",
		"<title>BROKEN (1 samples, 8.3 %)</title>",
		"<title>[unknown] (0) (1 samples, 8.3 %)</title>",
	};
	struct buf text = {0};
	struct incident in;
	size_t i;

	assert_int_equal(sample_small(&in), 0);
	assert_int_equal(export_text(&in, "svg", NULL, &text), 0);
	for (i = 0; i < COUNT_OF(titles); i++) {
		if (!strstr(text.data, titles[i]))
			fail_msg("no %s", titles[i]);
	}
	assert_non_null(strstr(text.data, "over its limit of 80"));
	buf_free(&text);
	incident_free(&in);
}

static const char *colour_of(const char *text, enum code_kind code)
{
	return markup_colour(text, strlen(text), code);
}

TEST(kinds_of_code_have_colours_of_their_own)
{
	struct buf text = {0};
	struct incident in;
	uint32_t stack;
	unsigned i, j;

	for (i = 0; i < CODE_KINDS; i++)
		for (j = 0; j < i; j++)
			assert_string_not_equal(colour_of("m!a.B.f", i), colour_of("m!a.B.f", j));
	assert_int_equal(sample_small(&in), 0);
	assert_int_equal(sample_stack(&in, "[java]!a.B.only", &stack), 0);
	assert_int_equal(sample_add(&in, 0, stack, QUALITY_COMPLETE, 1), 0);
	assert_int_equal(export_text(&in, "svg", NULL, &text), 0);
	assert_non_null(strstr(text.data, colour_of("[java]!a.B.only", CODE_JAVA)));
	buf_free(&text);
	incident_free(&in);
}

/* Modules differ; methods of one managed class do not, and native functions of one module. */
TEST(shades_tell_modules_and_classes_apart)
{
	assert_string_equal(colour_of("libc.so.6!read", CODE_NATIVE),
			    colour_of("libc.so.6!write", CODE_NATIVE));
	assert_string_not_equal(colour_of("libc.so.6!read", CODE_NATIVE),
				colour_of("app!read", CODE_NATIVE));
	assert_string_equal(colour_of("[java]!a.B.f(c.D)", CODE_JAVA),
			    colour_of("[java]!a.B.g()", CODE_JAVA));
	assert_string_not_equal(colour_of("[java]!a.B.f", CODE_JAVA),
				colour_of("[java]!a.C.f", CODE_JAVA));
}

/* app has 8 of 12 samples: 786.667 of 1,180 px, right of [unknown]'s 98.333. */
TEST(a_box_is_as_wide_as_its_share)
{
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_small(&in), 0);
	assert_int_equal(export_text(&in, "svg", NULL, &text), 0);
	assert_non_null(strstr(text.data, "66.7 %)</title><rect x=\"108.333\""));
	assert_non_null(strstr(text.data, "width=\"786.667\""));
	buf_free(&text);
	incident_free(&in);
}

/* The boxes above "all" (y of the second row) carry all the weight. */
TEST(hostile_names_are_text_and_keep_their_weight)
{
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "svg", NULL, &text), 0);
	assert_non_null(strstr(text.data, "<title>all (27 samples, 100.0 %)</title>"));
	assert_int_equal(occurrences(text.data, "<title>app!main (1 samples, 3.7 %)</title>"), 27);
	assert_int_equal(occurrences(text.data, "<script>"), 1);
	assert_int_equal(occurrences(text.data, "]]>"), 1);
	assert_non_null(strstr(text.data, "&lt;script&gt;alert(1)&lt;/script&gt;"));
	assert_null(strstr(text.data, "\xef\xbf\xbf"));
	buf_free(&text);
	incident_free(&in);
}

TEST(nothing_outside_the_file_is_asked_for)
{
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_small(&in), 0);
	assert_int_equal(export_text(&in, "svg", NULL, &text), 0);
	/* The name space, and the same in the script. */
	assert_int_equal(occurrences(text.data, "http"), 2);
	assert_int_equal(occurrences(text.data, "http://www.w3.org/2000/svg"), 2);
	assert_null(strstr(text.data, "href"));
	assert_null(strstr(text.data, "src="));
	assert_null(strstr(text.data, "url("));
	assert_null(strstr(text.data, "import"));
	buf_free(&text);
	incident_free(&in);
}

TEST(boxes_are_few_enough_to_be_drawn_and_the_rest_is_told)
{
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_large(&in, 20000, 1500, 60, 20), 0);
	assert_int_equal(export_text(&in, "svg", NULL, &text), 0);
	assert_in_range(occurrences(text.data, "<g class=\"f\">"), 5000, 10000);
	assert_non_null(strstr(text.data, " px are not drawn"));
	assert_non_null(strstr(text.data, "<title>all (20000 samples, 100.0 %)</title>"));
	buf_free(&text);
	incident_free(&in);
}

TEST(other_streams_have_their_unit)
{
	struct export_options opt = {.stream = STREAM_ALLOC};
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_streams(&in), 0);
	assert_int_equal(export_text(&in, "svg", &opt, &text), 0);
	assert_non_null(strstr(text.data, "<title>all (100004096 bytes, 100.0 %)</title>"));
	assert_non_null(strstr(text.data, "<title>worker (100000000 bytes, 100.0 %)</title>"));
	buf_free(&text);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxes_have_name_weight_and_share_as_titles),
		cmocka_unit_test(kinds_of_code_have_colours_of_their_own),
		cmocka_unit_test(shades_tell_modules_and_classes_apart),
		cmocka_unit_test(a_box_is_as_wide_as_its_share),
		cmocka_unit_test(hostile_names_are_text_and_keep_their_weight),
		cmocka_unit_test(nothing_outside_the_file_is_asked_for),
		cmocka_unit_test(boxes_are_few_enough_to_be_drawn_and_the_rest_is_told),
		cmocka_unit_test(other_streams_have_their_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
