#include "base/err.h"
#include "base/os.h"
#include "base/utf8.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ENOENT on Linux, ERROR_FILE_NOT_FOUND on Windows: both are 2. */
enum { OS_NOT_FOUND = 2 };

TEST(err_set_writes_the_sentence_and_returns_the_code)
{
	struct err err = {0};

	assert_int_equal(err_set(&err, ERR_LIMIT, "%s has %d of %d", "ring", 65, 64), ERR_LIMIT);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_string_equal(err.text, "ring has 65 of 64");
}

TEST(err_memory_says_what_memory_was_for)
{
	struct err err = {0};

	assert_int_equal(err_memory(&err, "for %d names", 3), ERR_MEMORY);
	assert_int_equal(err.code, ERR_MEMORY);
	assert_string_equal(err.text, "out of memory for 3 names");
	assert_int_equal(err_memory(NULL, "while opening %s", "x"), ERR_MEMORY);
}

TEST(err_without_a_place_to_write_returns_the_code)
{
	assert_int_equal(err_set(NULL, ERR_BUSY, "nobody reads %d", 1), ERR_BUSY);
	assert_int_equal(err_os_code(NULL, OS_NOT_FOUND, "nobody"), ERR_NOT_FOUND);
	assert_true(err_prefix(NULL, "nobody") < 0);
}

TEST(err_os_code_appends_what_the_system_says)
{
	struct err err = {0};
	size_t n;

	assert_int_equal(err_os_code(&err, OS_NOT_FOUND, "cannot open %s", "x"), ERR_NOT_FOUND);
	assert_memory_equal(err.text, "cannot open x: ", 15);
	n = strlen(err.text);
	assert_true(n > 20);
	assert_null(strpbrk(err.text, "\r\n"));
	assert_true(err.text[n - 1] != '.' && err.text[n - 1] != ' ');
}

TEST(err_os_knows_the_last_error_of_a_call)
{
	struct err err = {0};
	struct os_file *file = NULL;

	assert_int_equal(os_open("no/such/file", OS_READ, &file, &err), ERR_NOT_FOUND);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_memory_equal(err.text, "cannot open no/such/file: ", 26);
	assert_null(file);
}

TEST(err_prefix_keeps_the_code_and_the_sentence)
{
	struct err err = {0};

	err_set(&err, ERR_FORMAT, "no number");
	assert_int_equal(err_prefix(&err, "line %d", 7), ERR_FORMAT);
	assert_string_equal(err.text, "line 7: no number");
}

static bool is_utf8(const char *text)
{
	const char *end = text + strlen(text);
	size_t n = 1;

	while (text < end && n) {
		n = utf8_char(text, end);
		text += n;
	}
	return text == end;
}

/* 300 characters of 2 bytes: one more than 599 bytes hold. */
TEST(err_cuts_a_long_sentence_between_characters)
{
	struct err err = {0};
	char text[601] = "";
	int i;

	for (i = 0; i < 300; i++)
		memcpy(text + 2 * i, "\xc3\xa9", 2);
	err_set(&err, ERR_IO, "%s", text);
	assert_int_equal(strlen(err.text), 598);
	assert_true(is_utf8(err.text));
	err_prefix(&err, "x");
	assert_memory_equal(err.text, "x: \xc3\xa9", 5);
	assert_true(strlen(err.text) < sizeof(err.text));
	assert_true(is_utf8(err.text));
	err_os_code(&err, OS_NOT_FOUND, "%s", text);
	assert_true(is_utf8(err.text));
}

TEST(an_unknown_system_error_has_a_text_too)
{
	char text[80] = "";

	os_error_text(54321, text, sizeof(text));
	assert_true(strlen(text) > 5);
	os_error_text(OS_NOT_FOUND, text, 5);
	assert_int_equal(strlen(text), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_set_writes_the_sentence_and_returns_the_code),
		cmocka_unit_test(err_memory_says_what_memory_was_for),
		cmocka_unit_test(err_without_a_place_to_write_returns_the_code),
		cmocka_unit_test(err_os_code_appends_what_the_system_says),
		cmocka_unit_test(err_os_knows_the_last_error_of_a_call),
		cmocka_unit_test(err_prefix_keeps_the_code_and_the_sentence),
		cmocka_unit_test(err_cuts_a_long_sentence_between_characters),
		cmocka_unit_test(an_unknown_system_error_has_a_text_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
