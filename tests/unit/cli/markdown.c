/* The Markdown of help as text and as manual pages. */
#include "cli/markdown.h"
#include "tests/support/test.h"

#include <string.h>

static void expect(enum markdown_form form, size_t columns, const char *text, const char *wanted)
{
	struct buf out = {0};

	markdown_put(&out, text, form, columns);
	assert_string_equal(buf_text(&out), wanted);
	buf_free(&out);
}

TEST(words_wrap_and_code_with_blanks_is_quoted)
{
	expect(MARKDOWN_PLAIN, 20, "Say `recorder help` or\n`-f`, **now**.\n",
	       "  Say 'recorder\n  help' or -f, now.\n");
	expect(MARKDOWN_STYLED, 40, "Say `a b`.\n", "  Say \033[1ma b\033[0m.\n");
}

TEST(blocks_stand_apart_and_items_together)
{
	expect(MARKDOWN_PLAIN, 40,
	       "## One\n\nText\n\n    code  here\n\n    more\n\n- an item\n  goes on\n- the next\n",
	       "One\n  Text\n\n    code  here\n\n    more\n\n  - an item goes on\n  - the next\n");
}

TEST(a_table_becomes_a_list_of_terms)
{
	expect(MARKDOWN_PLAIN, 79,
	       "| a | b |\n|---|---|\n| `x\\|y` | means |\n| `--long VALUE` | more |\n",
	       "  x|y           means\n  --long VALUE  more\n");
	expect(MARKDOWN_PLAIN, 79, "| a | b | c |\n|---|---|---|\n| `x` | 3 | means |\n",
	       "  x (3)                     means\n");
	expect(MARKDOWN_PLAIN, 40, "| a | b |\n|---|---|\n| `--a-long-one` | means this |\n",
	       "  --a-long-one\n            means this\n");
}

TEST(a_manual_page_escapes_what_troff_reads)
{
	expect(MARKDOWN_MAN, 78, "## Usage\n\n    recorder 'x' \\ ^~\n\n.so much\n",
	       ".SH SYNOPSIS\n.RS 4\n.nf\nrecorder \\(aqx\\(aq \\e \\(ha\\(ti\n.fi\n.RE\n.PP\n"
	       "\\&.so much\n");
	expect(MARKDOWN_MAN, 78,
	       "### A group\n\n| a | b |\n|---|---|\n| `--an-option` | well-known |\n",
	       ".SS A group\n.TP\n\\fB\\-\\-an\\-option\\fR\nwell-known\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_wrap_and_code_with_blanks_is_quoted),
		cmocka_unit_test(blocks_stand_apart_and_items_together),
		cmocka_unit_test(a_table_becomes_a_list_of_terms),
		cmocka_unit_test(a_manual_page_escapes_what_troff_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
