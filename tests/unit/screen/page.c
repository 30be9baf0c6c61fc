/*
 * What comes to a terminal: nothing but characters that are seen, in their places.
 */
#include "base/buf.h"
#include "base/utf8.h"
#include "screen/page.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdio.h>
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

/* ---- sequences ------------------------------------------------------------------------------- */

/* A terminal that knows CUP, ED and SGR, and fails for all else. */
struct grid {
	struct page page;                    /* without styles */
	unsigned row, column, clears;
};

static const char *obey(struct grid *g, const char *at)
{
	unsigned row, column;
	int n = 0;

	if (sscanf(at, "\033[%u;%uH%n", &row, &column, &n) == 2 && n) {
		assert_in_range(row, 1, g->page.rows);
		assert_in_range(column, 1, g->page.columns);
		g->row = row - 1;
		g->column = column - 1;
	} else if (strncmp(at, "\033[2J", 4) == 0) {
		g->clears++;
		page_begin(&g->page, g->page.columns, g->page.rows);
		n = 4;
	} else {
		n = (int)strspn(at, "\033[0123456789;");
		assert_int_equal(at[n++], 'm');
	}
	return at + n;
}

static void send(struct grid *g, const struct buf *bytes)
{
	const char *at = buf_text(bytes), *end = at + bytes->len;

	while (at < end) {
		size_t n = utf8_char(at, end);
		char c[5] = "";

		if (*at == '\033') {
			at = obey(g, at);
			continue;
		}
		assert_in_range(n, 1, 4);
		memcpy(c, at, n);
		assert_true(g->column < g->page.columns);
		g->column += page_put(&g->page, (struct page_field){g->row, g->column, 2},
				      PAGE_PLAIN, c);
		at += n;
	}
}

static void same_text(const struct grid *g, const struct page *p)
{
	size_t i;

	for (i = 0; i < (size_t)p->columns * p->rows; i++)
		assert_int_equal(g->page.cells[i].c, p->cells[i].c);
}

static void every_character_is_where_the_page_has_it(unsigned columns, unsigned rows)
{
	struct grid g = {.page = {0}};
	struct page p = {0}, shown = {0};
	struct buf out = {0};
	unsigned row;

	assert_int_equal(page_begin(&g.page, columns, rows), 0);
	assert_int_equal(page_begin(&p, columns, rows), 0);
	for (row = 0; row < rows; row++)
		page_put(&p, (struct page_field){row, row % 7, columns}, row % PAGE_STYLES,
			 row % 2 ? "x\xe6\xbc\xa2 y" : "a name as long as the row, and longer "
			 "than all terminals that the test knows, which is cut at its right edge; "
			 "1234567890 1234567890 1234567890 1234567890 1234567890 1234567890 1234");
	assert_int_equal(page_put_sequences(&p, &shown, true, &out), 0);
	send(&g, &out);
	same_text(&g, &p);
	assert_int_equal(g.clears, 1);
	buf_reset(&out);
	assert_int_equal(page_put_sequences(&p, &shown, true, &out), 0);
	assert_int_equal(out.len, 0);        /* nothing has changed */
	page_put(&p, (struct page_field){rows - 1, columns - 2, 2}, PAGE_BAD, "##");
	assert_int_equal(page_put_sequences(&p, &shown, true, &out), 0);
	send(&g, &out);
	same_text(&g, &p);
	assert_int_equal(g.clears, 1);
	assert_in_range(out.len, columns, columns + 60);     /* one row */
	buf_free(&out);
	page_free(&p);
	page_free(&shown);
	page_free(&g.page);
}

TEST(sequences_put_every_character_where_the_page_has_it)
{
	every_character_is_where_the_page_has_it(80, 24);
	every_character_is_where_the_page_has_it(200, 60);
	every_character_is_where_the_page_has_it(20, 5);
}

TEST(another_size_is_drawn_anew)
{
	struct page p = {0}, shown = {0};
	struct buf out = {0};

	assert_int_equal(page_begin(&p, 80, 24), 0);
	assert_int_equal(page_put_sequences(&p, &shown, true, &out), 0);
	buf_reset(&out);
	assert_int_equal(page_begin(&p, 200, 60), 0);
	assert_int_equal(page_put_sequences(&p, &shown, true, &out), 0);
	assert_non_null(strstr(buf_text(&out), "\033[2J\033[1;1H"));
	assert_non_null(strstr(buf_text(&out), "\033[60;1H"));
	assert_in_range(out.len, 200 * 60, 200 * 60 + 60 * 20);
	buf_free(&out);
	page_free(&p);
	page_free(&shown);
}

TEST(without_colours_none_are_sent)
{
	struct page p = {0}, shown = {0};
	struct buf out = {0};

	assert_int_equal(page_begin(&p, 20, 1), 0);
	page_put(&p, (struct page_field){0, 0, 20}, PAGE_BAD, "lost");
	assert_int_equal(page_put_sequences(&p, &shown, false, &out), 0);
	assert_non_null(strstr(buf_text(&out), "\033[1;1H\033[0;1mlost\033[0m "));
	page_free(&shown);
	buf_reset(&out);
	assert_int_equal(page_put_sequences(&p, &shown, true, &out), 0);
	assert_non_null(strstr(buf_text(&out), "\033[0;31mlost\033[0m "));
	buf_free(&out);
	page_free(&p);
	page_free(&shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_stays_in_its_field_and_says_that_it_was_cut),
		cmocka_unit_test(a_wide_character_takes_two_cells_and_is_never_halved),
		cmocka_unit_test(no_name_sends_a_control_or_turns_the_line_around),
		cmocka_unit_test(a_page_has_a_largest_size),
		cmocka_unit_test(sequences_put_every_character_where_the_page_has_it),
		cmocka_unit_test(another_size_is_drawn_anew),
		cmocka_unit_test(without_colours_none_are_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
