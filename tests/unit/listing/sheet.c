/* Lines, tables and findings, for people and as JSON; and what colour adds. */
#include "listing/sheet.h"

#include "base/array.h"
#include "base/fit.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

#define BOLD(x) "\033[1m" x "\033[0m"
#define RED(x) "\033[31m" x "\033[0m"
#define GREEN(x) "\033[32m" x "\033[0m"
#define YELLOW(x) "\033[33m" x "\033[0m"

static struct sheet s;

static void begin(bool color, bool json)
{
	struct options o = {.color = color ? "always" : "never", .json = json};

	sheet_init(&s, &o);
	s.columns = FIT_ALL;
}

static void expect(const char *want)
{
	assert_string_equal(buf_text(sheet_text(&s)), want);
	sheet_free(&s);
}

static void put_lines(void)
{
	sheet_line(&s, "Lost", SHEET_LOSS, "%d samples", 7);
	sheet_line(&s, "", SHEET_LOSS, "2 more");
	sheet_line(&s, "Damaged", SHEET_BAD, "second 3");
	sheet_line(&s, "Stacks", SHEET_PLAIN, "none");
	sheet_text_line(&s, "Note", "a\033b");
	sheet_text_line(&s, "Note", "");
}

TEST(labels_are_bold_and_losses_yellow)
{
	begin(false, false);
	put_lines();
	expect("Lost      7 samples\n          2 more\nDamaged   second 3\nStacks    none\n"
	       "Note      a b\n");
	begin(true, false);
	put_lines();
	expect(BOLD("Lost") "      " YELLOW("7 samples") "\n          " YELLOW("2 more") "\n"
	       BOLD("Damaged") "   " RED("second 3") "\n" BOLD("Stacks") "    none\n"
	       BOLD("Note") "      a b\n");
}

TEST(what_was_written_can_get_a_style_afterwards)
{
	size_t from;

	begin(true, false);
	buf_puts(&s.out, "1.250  ");
	from = s.out.len;
	buf_puts(&s.out, "  P/Start");
	sheet_style(&s, from, SHEET_HEAD);
	sheet_style(&s, s.out.len, SHEET_HEAD);
	buf_puts(&s.out, " x=1\n");
	expect("1.250    " BOLD("P/Start") " x=1\n");
}

static void put_table(void)
{
	static const double self[] = {600, -1};
	unsigned i;

	for (i = 0; i < 2; i++) {
		const struct sheet_cell cells[] = {
			{"row", .text = "function"},
			{"name", "FUNCTION", .kind = SHEET_NAME, .text = i ? "b" : "[x] a",
			 .mark = i ? 0 : 3, .indent = i},
			{"self", "SELF", 6, SHEET_NUMBER, .v = i ? (double)NAN : self[i],
			 .digits = 1},
			{"share", "SHARE", 9, SHEET_SHARE, .v = i ? 9.9 : 10},
			{NULL, "LOST", 6, SHEET_COUNT, .n = i ? 0 : 1234, .is_loss = true},
			{"big", .kind = SHEET_BOOL, .n = !i},
			{"when", "WHEN", -6, .text = "12"},
		};

		if (!i)
			sheet_heading(&s, cells, COUNT_OF(cells));
		sheet_row(&s, cells, COUNT_OF(cells));
	}
}

TEST(rows_and_their_heading_come_from_the_same_cells)
{
	begin(false, false);
	put_table();
	expect("  SELF    SHARE  LOST  WHEN    FUNCTION\n"
	       " 600.0   10.0 % 1,234  12      [x] a\n"
	       "     -    9.9 %     0  12       b\n");
	begin(true, false);
	put_table();
	expect("  " BOLD("SELF    SHARE  LOST  WHEN    FUNCTION") "\n"
	       " 600.0   " BOLD("10.0 %") " " YELLOW("1,234") "  12      " YELLOW("[x]") " a\n"
	       "     -    9.9 %     0  12       b\n");
	begin(true, true);
	put_table();
	expect("{\"row\":\"function\",\"name\":\"[x] a\",\"self\":600,\"share\":10,\"big\":true,"
	       "\"when\":\"12\"}\n"
	       "{\"row\":\"function\",\"name\":\"b\",\"self\":null,\"share\":9.9,\"big\":false,"
	       "\"when\":\"12\"}\n");
}

static void put_change(double base, double test)
{
	const struct sheet_cell cells[] = {
		{NULL, "%", 8, SHEET_PERCENT,
		 .v = base > 0 ? 100 * (test - base) / base : (double)NAN},
		{NULL, "CHANGE", 8, SHEET_CHANGE, .v = test - base, .of = fmax(base, test)},
	};

	sheet_row(&s, cells, COUNT_OF(cells));
}

TEST(changes_are_red_where_they_grew_and_green_where_they_shrank)
{
	begin(true, false);
	put_change(10, 20);
	put_change(20, 10);
	put_change(20, 21);
	put_change(0, 1);
	expect("  +100 %   " RED("+10.0") "\n   -50 %   " GREEN("-10.0") "\n"
	       "    +5 %    +1.0\n     n/a    " RED("+1.0") "\n");
}

/* A general number and a share once printed "nan". */
TEST(a_number_that_is_not_known_is_a_dash)
{
	const struct sheet_cell cells[] = {
		{"a", "A", 4, SHEET_NUMBER, .v = NAN}, {"b", "B", 4, SHEET_GENERAL, .v = NAN},
		{"c", "C", 4, SHEET_SHARE, .v = NAN},  {"d", "D", 4, SHEET_SECONDS, .v = NAN},
		{"e", "E", 4, SHEET_READING, .v = NAN},
		{"f", "F", 4, SHEET_CHANGE, .v = NAN}, {"g", "G", 5, SHEET_PERCENT, .v = NAN},
	};

	begin(false, false);
	sheet_row(&s, cells, COUNT_OF(cells));
	expect("   -   -   -   -   -   -  n/a\n");
	begin(false, true);
	sheet_row(&s, cells, 2);
	expect("{\"a\":null,\"b\":null}\n");
}

TEST(columns_are_as_wide_as_their_widest_cell)
{
	int widths[3] = {0};
	struct sheet_cell cells[] = {
		{.head = "ID", .kind = SHEET_NUMBER, .v = 7},
		{.head = "SIZE", .kind = SHEET_COUNT, .n = 123456},
		{.head = "WHAT", .kind = SHEET_NAME, .text = "a"},
	};

	sheet_measure(cells, COUNT_OF(cells), widths);
	assert_int_equal(widths[0], 2);
	assert_int_equal(widths[1], 2 + 7);
	assert_int_equal(widths[2], 0);
}

static void put_findings(void)
{
	sheet_finding(&s, "rule", "ok", "a", "now 3 %", "");
	if (s.json)
		json_key_num(&s.j, "value", 3);
	sheet_close(&s);
	sheet_finding(&s, "rule", "note", "b\n", NULL, "maybe");
	sheet_close(&s);
	sheet_finding(&s, "rule", "wrong", "c", NULL, "");
	sheet_close(&s);
}

TEST(check_colors_the_verdict_only)
{
	begin(false, false);
	put_findings();
	expect("rule     ok       a\n                  now 3 %\n"
	       "rule     note     b \n                  maybe\nrule     wrong    c\n");
	begin(true, false);
	put_findings();
	expect("rule     " GREEN("ok") "       a\n                  now 3 %\n"
	       "rule     " YELLOW("note") "     b \n                  maybe\n"
	       "rule     " RED("wrong") "    c\n");
	begin(false, true);
	put_findings();
	expect("{\"check\":\"rule\",\"name\":\"a\",\"verdict\":\"ok\",\"text\":\"\",\"value\":3}\n"
	       "{\"check\":\"rule\",\"name\":\"b\\n\",\"verdict\":\"note\",\"text\":\"maybe\"}\n"
	       "{\"check\":\"rule\",\"name\":\"c\",\"verdict\":\"wrong\",\"text\":\"\"}\n");
}

/* Lines are broken at the same places, whether or not they have escape sequences. */
TEST(colour_takes_no_columns)
{
	static const char words[] = "one two three four five six seven eight nine ten eleven";
	size_t i, columns;

	for (columns = 1; columns < 80; columns++) {
		char plain[400] = "", *to = plain;
		const struct buf *text;

		begin(true, false);
		s.columns = columns;
		sheet_line(&s, "Lost", SHEET_LOSS, "%s", words);
		text = sheet_text(&s);
		for (i = 0; i < text->len; i++) {
			if (text->data[i] == '\033')
				i += strcspn(text->data + i, "m");
			else
				*to++ = text->data[i];
		}
		sheet_free(&s);
		begin(false, false);
		s.columns = columns;
		sheet_line(&s, "Lost", SHEET_LOSS, "%s", words);
		expect(plain);
	}
}

TEST(only_three_words_are_taken)
{
	struct options o = {.color = "sometimes"};
	struct err err = {0};

	assert_int_equal(sheet_check_color(&o, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "is not auto, always or never"));
	o.color = "always";
	assert_int_equal(sheet_check_color(&o, &err), 0);
	assert_true(sheet_wants_color(&o));
	o.json = true;
	assert_false(sheet_wants_color(&o));
	o = (struct options){.color = "never"};
	assert_int_equal(sheet_check_color(&o, &err), 0);
	assert_false(sheet_wants_color(&o));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_are_bold_and_losses_yellow),
		cmocka_unit_test(what_was_written_can_get_a_style_afterwards),
		cmocka_unit_test(rows_and_their_heading_come_from_the_same_cells),
		cmocka_unit_test(changes_are_red_where_they_grew_and_green_where_they_shrank),
		cmocka_unit_test(a_number_that_is_not_known_is_a_dash),
		cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
		cmocka_unit_test(check_colors_the_verdict_only),
		cmocka_unit_test(colour_takes_no_columns),
		cmocka_unit_test(only_three_words_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
