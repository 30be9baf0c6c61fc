/* Texts by number. */
#include "base/err.h"
#include "base/text_table.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

TEST(equal_texts_have_one_number)
{
	struct text_table t = {0};

	assert_int_equal(text_table_add(&t, "one", 3), 0);
	assert_int_equal(text_table_add(&t, "", 0), 1);
	assert_int_equal(text_table_add(&t, "on", 2), 2);
	assert_int_equal(text_table_add(&t, "one more", 3), 0);
	assert_int_equal(text_table_find(&t, "on", 2), 2);
	assert_int_equal(text_table_find(&t, "two", 3), TABLE_NONE);
	assert_int_equal(t.n, 3);
	assert_string_equal(text_table_get(&t, 0), "one");
	assert_string_equal(text_table_get(&t, 1), "");
	text_table_free(&t);
}

static int add_many(void *ctx)
{
	struct text_table t = {0};
	char text[16];
	uint32_t number = 0, i;

	(void)ctx;
	for (i = 0; number != TABLE_NONE && i < 500; i++) {
		snprintf(text, sizeof(text), "text %u", (unsigned)i);
		number = text_table_add(&t, text, strlen(text));
	}
	text_table_free(&t);
	return number == TABLE_NONE ? ERR_MEMORY : 0;
}

TEST(lack_of_memory_is_an_error)
{
	assert_in_range(alloc_walk(add_many, NULL), 10, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_have_one_number),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
