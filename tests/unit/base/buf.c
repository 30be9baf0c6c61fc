#include "base/buf.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(buf_of_zeros_is_empty_and_has_a_text)
{
	struct buf b = {0};

	assert_string_equal(buf_text(&b), "");
	assert_int_equal(buf_check(&b, "it", NULL), 0);
	buf_reset(&b);
	buf_free(&b);
}

TEST(buf_grows_and_ends_in_a_nul)
{
	struct buf b = {0};
	int i;

	for (i = 0; i < 1000; i++)
		buf_putc(&b, (char)('a' + i % 26));
	buf_puts(&b, "xyz");
	buf_put(&b, "\0!", 2);
	buf_printf(&b, "%d-%s", 42, "end");
	assert_int_equal(b.len, 1000 + 3 + 2 + 6);
	assert_int_equal(b.data[25], 'z');
	assert_memory_equal(b.data + 1000, "xyz\0!42-end", 12);
	assert_int_equal(b.data[b.len], '\0');
	buf_free(&b);
}

TEST(buf_puts_numbers_of_any_size)
{
	static const uint64_t numbers[] = {0, 9, 10, 99, 100, 907, 1000, 60512, UINT64_MAX};
	struct buf b = {0};
	unsigned i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		buf_put_uint(&b, numbers[i]);
		buf_putc(&b, ' ');
	}
	assert_string_equal(buf_text(&b),
			    "0 9 10 99 100 907 1000 60512 18446744073709551615 ");
	buf_free(&b);
}

/* What does not fit at once is formatted twice: nothing of the first attempt may remain. */
TEST(buf_formats_what_exceeds_its_room)
{
	struct buf b = {.max_bytes = 100};

	buf_printf(&b, "%050d", 1);
	buf_printf(&b, "%060d", 2);
	assert_int_equal(b.failed, ERR_LIMIT);
	assert_int_equal(b.len, 50);
	assert_int_equal(strlen(b.data), 50);
	buf_free(&b);
}

TEST(buf_keeps_to_its_ceiling_and_says_so_at_the_end)
{
	struct buf b = {.max_bytes = 10};
	struct err err = {0};

	buf_puts(&b, "0123456789");
	assert_int_equal(b.failed, 0);
	buf_putc(&b, 'x');
	buf_put(&b, "", 0);
	assert_string_equal(buf_text(&b), "0123456789");
	assert_null(buf_reserve(&b, 1));
	assert_int_equal(buf_check(&b, "the name", &err), ERR_LIMIT);
	assert_string_equal(err.text, "the name is larger than its limit of 10 bytes");
	buf_free(&b);
}

TEST(buf_refuses_sizes_that_would_wrap_around)
{
	struct buf b = {0};

	buf_puts(&b, "abc");
	assert_null(buf_reserve(&b, SIZE_MAX - 1));
	assert_int_equal(b.failed, ERR_LIMIT);
	assert_string_equal(buf_text(&b), "abc");
	buf_free(&b);
}

TEST(buf_reset_empties_it_and_forgets_the_failure)
{
	struct buf b = {.max_bytes = 4};

	buf_puts(&b, "too long");
	assert_int_equal(b.failed, ERR_LIMIT);
	buf_reset(&b);
	assert_int_equal(b.failed, 0);
	buf_puts(&b, "ok");
	assert_string_equal(buf_text(&b), "ok");
	buf_free(&b);
}

TEST(buf_reserved_room_is_written_in_place)
{
	struct buf b = {0};
	char *to;

	buf_puts(&b, "ab");
	to = buf_reserve(&b, 100);
	memcpy(to, "cd", 2);
	buf_advance(&b, 2);
	assert_string_equal(buf_text(&b), "abcd");
	buf_free(&b);
}

static int write_much(void *ctx)
{
	struct buf b = {0};
	int i, rc;

	(void)ctx;
	for (i = 0; i < 100; i++)
		buf_printf(&b, "line %d\n", i);
	buf_puts(&b, "end");
	rc = buf_check(&b, "much", NULL);
	assert_true(rc == 0 || rc == ERR_MEMORY);
	buf_free(&b);
	return rc;
}

TEST(buf_reports_lack_of_memory_once_at_the_end)
{
	assert_in_range(alloc_walk(write_much, NULL), 3, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_of_zeros_is_empty_and_has_a_text),
		cmocka_unit_test(buf_grows_and_ends_in_a_nul),
		cmocka_unit_test(buf_puts_numbers_of_any_size),
		cmocka_unit_test(buf_formats_what_exceeds_its_room),
		cmocka_unit_test(buf_keeps_to_its_ceiling_and_says_so_at_the_end),
		cmocka_unit_test(buf_refuses_sizes_that_would_wrap_around),
		cmocka_unit_test(buf_reset_empties_it_and_forgets_the_failure),
		cmocka_unit_test(buf_reserved_room_is_written_in_place),
		cmocka_unit_test(buf_reports_lack_of_memory_once_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
