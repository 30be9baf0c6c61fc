#include "base/json.h"
#include "base/json_read.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(json_writes_nested_values_with_the_commas)
{
	struct buf b = {0};
	struct json j = {.out = &b};

	json_open(&j, '{');
	json_key_uint(&j, "id", 3);
	json_key_int(&j, "at", -5);
	json_key(&j, "list");
	json_open(&j, '[');
	json_bool(&j, true);
	json_null(&j);
	json_open(&j, '{');
	json_close(&j, '}');
	json_close(&j, ']');
	json_key_str(&j, "name", NULL);
	json_key_bool(&j, "done", false);
	json_close(&j, '}');
	assert_string_equal(buf_text(&b), "{\"id\":3,\"at\":-5,\"list\":[true,null,{}],"
					  "\"name\":null,\"done\":false}");
	buf_free(&b);
}

static void assert_quoted(const char *text, const char *expected)
{
	struct buf b = {0};
	struct json j = {.out = &b};

	json_str(&j, text);
	assert_string_equal(buf_text(&b), expected);
	buf_free(&b);
}

TEST(json_escapes_what_may_not_stand_in_a_string)
{
	assert_quoted("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
	assert_quoted("\n\t\r\x01\x7f", "\"\\n\\t\\u000d\\u0001\\u007f\"");
	assert_quoted("caf\xc3\xa9 \xf0\x9f\x98\x80", "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"");
}

TEST(json_escapes_what_nobody_sees)
{
	struct buf b = {0};
	struct json j = {.out = &b, .for_people = true};

	assert_quoted("a\xe2\x80\xae\xc2\x9b" "b", "\"a\\u202e\\u009bb\"");
	assert_quoted("\xf3\xa0\x81\x81", "\"\\udb40\\udc41\"");
	json_str(&j, "a\xe2\x80\xae" "b");
	assert_string_equal(buf_text(&b), "\"a\\\\u{202e}b\"");
	buf_free(&b);
}

TEST(json_puts_a_replacement_for_each_invalid_byte)
{
	assert_quoted("a\xff" "b", "\"a\xef\xbf\xbd" "b\"");
	assert_quoted("\xc3", "\"\xef\xbf\xbd\"");
	assert_quoted("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void assert_num(double v, const char *expected)
{
	struct buf b = {0};
	struct json j = {.out = &b};

	json_num(&j, v);
	assert_string_equal(buf_text(&b), expected);
	buf_free(&b);
}

TEST(json_numbers_are_the_shortest_that_read_back)
{
	assert_num(0, "0");
	assert_num(80, "80");
	assert_num(0.1, "0.1");
	assert_num(-2.5, "-2.5");
	assert_num(1.0 / 3, "0.3333333333333333");
	assert_num(1e300, "1e+300");
	assert_num(1e15, "1e+15");
	assert_num((double)NAN, "null");
	assert_num((double)-INFINITY, "null");
}

TEST(num_text_of_nothing_is_a_dash)
{
	char text[40];

	num_text(NAN, text, sizeof(text));
	assert_string_equal(text, "-");
}

TEST(num_text_has_a_point_whatever_the_locale)
{
	char text[40];

	if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") &&
	    !setlocale(LC_NUMERIC, "German_Germany.1252")) {
		print_message("no locale with a decimal comma is installed\n");
		skip();
	}
	num_text(1.5, text, sizeof(text));
	setlocale(LC_NUMERIC, "C");
	assert_string_equal(text, "1.5");
}

static int find(const char *line, const char *key, char out[16])
{
	strcpy(out, "untouched");
	return json_get_str(line, key, out, 16);
}

TEST(json_get_str_finds_the_value_of_a_key)
{
	char out[16];

	assert_int_equal(find("{\"cmd\":\"stop\"}", "cmd", out), 0);
	assert_string_equal(out, "stop");
	assert_int_equal(find(" { \"n\" : -1.5e3 , \"b\":true,\"cmd\" : \"x\" } ", "cmd", out), 0);
	assert_string_equal(out, "x");
	assert_int_equal(find("{\"a\":\"cmd\",\"cmd\":\"\"}", "cmd", out), 0);
	assert_string_equal(out, "");
	assert_int_equal(find("{}", "cmd", out), ERR_NOT_FOUND);
	assert_int_equal(find("{\"a\":{\"cmd\":\"x\"},\"cmd\":\"y\"}", "cmd", out), 0);
	assert_string_equal(out, "y");
	assert_int_equal(find("{\"a\":{\"cmd\":\"x\"}}", "cmd", out), ERR_NOT_FOUND);
	assert_int_equal(find("{\"cmd\":1}", "cmd", out), ERR_NOT_FOUND);
	assert_int_equal(find("{\"cmds\":\"x\"}", "cmd", out), ERR_NOT_FOUND);
	assert_string_equal(out, "untouched");
}

TEST(json_get_str_reads_back_what_the_writer_escaped)
{
	static const char text[] = "a\"b\\\n\t\x01 caf\xc3\xa9";
	struct buf b = {0};
	struct json j = {.out = &b};
	char out[40];

	json_open(&j, '{');
	json_key_str(&j, "reason", text);
	json_close(&j, '}');
	assert_int_equal(json_get_str(buf_text(&b), "reason", out, sizeof(out)), 0);
	assert_string_equal(out, text);
	buf_free(&b);
}

TEST(json_get_str_decodes_escapes_of_other_writers)
{
	char out[16];

	assert_int_equal(find("{\"k\":\"\\u00e9\\u20AC\"}", "k", out), 0);
	assert_string_equal(out, "\xc3\xa9\xe2\x82\xac");
	assert_int_equal(find("{\"k\":\"\\ud83d\\ude00\"}", "k", out), 0);
	assert_string_equal(out, "\xf0\x9f\x98\x80");
	assert_int_equal(find("{\"k\":\"\\ud83d!\"}", "k", out), 0);
	assert_string_equal(out, "\xef\xbf\xbd!");
	assert_int_equal(find("{\"k\":\"a\\u0000b\"}", "k", out), 0);
	assert_string_equal(out, "a\xef\xbf\xbd" "b");
	assert_int_equal(find("{\"k\":\"\\/\\b\\f\\r\"}", "k", out), 0);
	assert_string_equal(out, "/\b\f\r");
}

/* 16 bytes hold 15; the 8th character of two bytes would need a 16th. */
TEST(json_get_str_cuts_between_characters)
{
	char out[16];

	assert_int_equal(find("{\"k\":\"0123456789abcdefgh\"}", "k", out), 0);
	assert_string_equal(out, "0123456789abcde");
	assert_int_equal(find("{\"k\":\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
			      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\"}", "k", out), 0);
	assert_string_equal(out, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
}

TEST(json_get_str_refuses_hostile_lines_and_writes_nothing)
{
	static const char *const hostile[] = {
		"", "x", "{", "[]", "\"k\"", "{k:1}", "{\"k\"}", "{\"k\":}", "{\"k\":\"v",
		"{\"k\":\"v\"", "{\"k\":\"v\\", "{\"k\":\"v\\u12", "{\"k\":\"v\\u12g4\"}",
		"{\"k\":\"\\x\"}", "{\"k\" \"v\"}", "{\"k\":\"v\",}", "{\"k\":\"v\"}x",
		"{\"k\":\"v\"}{\"k\":\"w\"}", "{,\"k\":\"v\"}", "{\"a\":1 2,\"k\":\"v\"}",
		"{\"a\":\"b\"\"k\":\"v\"}", "{\"a\":1\"k\":\"v\"}", "{\"k\":\"\x01\"}",
	};
	char out[16];
	size_t i;

	for (i = 0; i < COUNT_OF(hostile); i++) {
		if (find(hostile[i], "k", out) != ERR_FORMAT)
			fail_msg("accepted: %s", hostile[i]);
		assert_string_equal(out, "untouched");
	}
}

TEST(json_get_str_takes_no_longer_key_for_the_one_it_wants)
{
	char line[200], key[64], out[16];

	memset(key, 'k', 63);
	key[63] = '\0';
	snprintf(line, sizeof(line), "{\"%skk\":\"v\"}", key);
	assert_int_equal(find(line, key, out), ERR_NOT_FOUND);
	assert_int_equal(find("{\"cmd\\u0000x\":\"v\"}", "cmd", out), ERR_NOT_FOUND);
	snprintf(line, sizeof(line), "{\"%s\":\"v\"}", key);
	assert_int_equal(find(line, key, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_writes_nested_values_with_the_commas),
		cmocka_unit_test(json_escapes_what_may_not_stand_in_a_string),
		cmocka_unit_test(json_escapes_what_nobody_sees),
		cmocka_unit_test(json_puts_a_replacement_for_each_invalid_byte),
		cmocka_unit_test(json_numbers_are_the_shortest_that_read_back),
		cmocka_unit_test(num_text_of_nothing_is_a_dash),
		cmocka_unit_test(num_text_has_a_point_whatever_the_locale),
		cmocka_unit_test(json_get_str_finds_the_value_of_a_key),
		cmocka_unit_test(json_get_str_reads_back_what_the_writer_escaped),
		cmocka_unit_test(json_get_str_decodes_escapes_of_other_writers),
		cmocka_unit_test(json_get_str_cuts_between_characters),
		cmocka_unit_test(json_get_str_refuses_hostile_lines_and_writes_nothing),
		cmocka_unit_test(json_get_str_takes_no_longer_key_for_the_one_it_wants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
