/*
 * Reading the JSON of a recorder's answer.
 */
#include "base/json_read.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(struct json_value v)
{
	static struct buf text;

	buf_free(&text);
	json_put_text(v, &text);
	return buf_text(&text);
}

TEST(members_and_items_are_found_behind_nested_ones)
{
	static const char text[] =
		" { \"note\" : \"a \\\"b\\\", {c}\" , \"rules\":[ "
		"{\"rule\":\"x,y\",\"value\":null},"
		"{\"rule\":\"z\",\"value\":-1.5e1} ], \"n\": 12, \"e\": [], \"o\":{} }";
	struct json_value all, rules, r = {0};
	double number = 0;

	assert_true(json_read(text, &all));
	assert_string_equal(text_of(json_member(all, "note")), "a \"b\", {c}");
	assert_true(json_number(json_member(all, "n"), &number));
	assert_true(number == 12);
	rules = json_member(all, "rules");
	r = json_next(rules, r);
	assert_string_equal(text_of(json_member(r, "rule")), "x,y");
	assert_false(json_number(json_member(r, "value"), &number));
	assert_string_equal(text_of(json_member(r, "value")), "");
	r = json_next(rules, r);
	assert_true(json_number(json_member(r, "value"), &number));
	assert_true(number == -15);
	assert_null(json_next(rules, r).at);
	assert_null(json_next(json_member(all, "e"), (struct json_value){0}).at);
	assert_null(json_member(json_member(all, "o"), "x").at);
	assert_null(json_member(all, "missing").at);
	assert_null(json_member(rules, "rule").at);
	text_of((struct json_value){0});
}

TEST(what_is_no_json_is_refused)
{
	static const char *const wrong[] = {
		"", "{", "}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "[1,]", "[1 2]", "\"a", "\"a\\",
		"nul", "{} {}", "{a:1}", "[", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
	};
	struct json_value v;
	size_t i;

	for (i = 0; i < COUNT_OF(wrong); i++) {
		if (json_read(wrong[i], &v))
			fail_msg("accepted: %s", wrong[i]);
	}
}

TEST(escapes_are_undone)
{
	struct json_value v;

	assert_true(json_read("\"a\\n\\t\\u0041\\/\\\\ \\u00e4\"", &v));
	assert_string_equal(text_of(v), "a\n\tA/\\ \xc3\xa4");
	text_of((struct json_value){0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_and_items_are_found_behind_nested_ones),
		cmocka_unit_test(what_is_no_json_is_refused),
		cmocka_unit_test(escapes_are_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
