/*
 * What comes to a terminal: nothing but characters that are seen, in their places.
 */
#include "base/buf.h"
#include "base/utf8.h"
#include "screen/page.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <string.h>

static void put(struct page *p, unsigned column, unsigned width, const char *text)
{
	page_put(p, (struct page_field){0, column, width}, PAGE_PLAIN, text);
}

static void is_row(const struct page *p, unsigned row, const char *text)
{
	struct buf line = {0};

	page_row_text(p, row, &line);
	assert_string_equal(buf_text(&line), text);
	buf_free(&line);
}

TEST(text_stays_in_its_field_and_says_that_it_was_cut)
{
	struct page p = {0};

	assert_int_equal(page_begin(&p, 20, 2), 0);
	put(&p, 0, 5, "abcde");
	put(&p, 6, 5, "abcdef");
	put(&p, 18, 10, "abc");
	put(&p, 25, 10, "outside");
	page_put(&p, (struct page_field){2, 0, 20}, PAGE_PLAIN, "below");
	is_row(&p, 0, "abcde abcd~       a~");
	is_row(&p, 1, "");
	page_free(&p);
}

TEST(a_wide_character_takes_two_cells_and_is_never_halved)
{
	struct page p = {0};

	assert_int_equal(page_begin(&p, 20, 1), 0);
	put(&p, 0, 5, "\xe6\xbc\xa2\xe5\xad\x97.");
	put(&p, 6, 3, "\xe6\xbc\xa2\xe5\xad\x97");
	put(&p, 10, 5, "e\xcc\x81.");
	is_row(&p, 0, "\xe6\xbc\xa2\xe5\xad\x97. \xe6\xbc\xa2~ e.");
	assert_int_equal(p.cells[1].c, 0);
	page_free(&p);
}

/* A name of a process or function is anybody's bytes. */
TEST(no_name_sends_a_control_or_turns_the_line_around)
{
	struct page p = {0};
	unsigned i, k;

	assert_int_equal(page_begin(&p, 80, 1), 0);
	for (i = 0; sample_hostile_names[i]; i++) {
		put(&p, 0, 80, sample_hostile_names[i]);
		put(&p, 40, 40, "\033[2Jx\x9b" "31m\xe2\x80\xae\xc2\x9b\r\n\a");
		for (k = 0; k < 80; k++) {
			char bytes[4];
			uint32_t c = p.cells[k].c;
			size_t n = utf8_encode(c, bytes);

			assert_true(!c || (c >= 0x20 && (c < 0x7f || c > 0x9f)));
			assert_true(!c || !utf8_unseen(bytes, n));
		}
	}
	page_free(&p);
}

TEST(a_page_has_a_largest_size)
{
	struct page p = {0};

	assert_int_equal(page_begin(&p, 100000, 100000), 0);
	assert_int_equal(p.columns, PAGE_COLUMNS_MAX);
	assert_int_equal(p.rows, PAGE_ROWS_MAX);
	page_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_stays_in_its_field_and_says_that_it_was_cut),
		cmocka_unit_test(a_wide_character_takes_two_cells_and_is_never_halved),
		cmocka_unit_test(no_name_sends_a_control_or_turns_the_line_around),
		cmocka_unit_test(a_page_has_a_largest_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
