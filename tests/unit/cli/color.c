/* Colour: which words of a finished line get it, and that nothing else changes. */
#include "cli/color.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define BOLD(x) "\033[1m" x "\033[0m"
#define RED(x) "\033[31m" x "\033[0m"
#define GREEN(x) "\033[32m" x "\033[0m"
#define YELLOW(x) "\033[33m" x "\033[0m"

static void expect(enum command about, const char *text, const char *want)
{
	struct buf out = {0};

	color_lines(&out, about, text, strlen(text));
	assert_string_equal(buf_text(&out), want);
	buf_free(&out);
}

TEST(labels_are_bold_and_losses_yellow)
{
	expect(CMD_SHOW, "Incident 4, partial: its recorder ended\nFired     MAIN FAILED\n",
	       BOLD("Incident 4") ", " YELLOW("partial: its recorder ended") "\n" BOLD("Fired")
	       "     MAIN FAILED\n");
	expect(CMD_SHOW, "Incident 4, pinned\n", BOLD("Incident 4") ", pinned\n");
	expect(CMD_SHOW, "Lost      7 samples\n          2 more\nStacks    1\n          on\n",
	       BOLD("Lost") "      " YELLOW("7 samples") "\n          " YELLOW("2 more") "\n"
	       BOLD("Stacks") "    1\n          on\n");
	expect(CMD_SHOW, "Lost      nothing\nDamaged   second 3\n",
	       BOLD("Lost") "      nothing\n" BOLD("Damaged") "   " RED("second 3") "\n");
	expect(CMD_STATUS, "Samples   9, lost 0\n", BOLD("Samples") "   9, lost 0\n");
	expect(CMD_STATUS, "Samples   9, lost 3\n", BOLD("Samples") "   9, " YELLOW("lost 3") "\n");
}

TEST(shares_of_ten_percent_are_bold)
{
	expect(CMD_SHOW, "\n  SELF    SHARE  FUNCTION\n   600   10.0 %  MAIN\n"
	       "    99    9.9 %  50 %\n",
	       "\n  " BOLD("SELF    SHARE  FUNCTION") "\n   600   " BOLD("10.0 %") "  MAIN\n"
	       "    99    9.9 %  50 "
	       "%\n");
}

TEST(a_frame_in_capitals_is_no_heading)
{
	expect(CMD_SHOW, "     1   2.0 %  a (1)\n                        MAIN\n",
	       "     1   2.0 %  a (1)\n                        MAIN\n");
}

TEST(list_marks_losses_and_what_is_not_whole)
{
	expect(CMD_LIST,
	       "ID  LOST  SIZE  WHAT FIRED\n 4     7   1 B  [partial] LOST\n"
	       " 3     0   1 B  [pinned] x\n",
	       BOLD("ID  LOST  SIZE  WHAT FIRED") "\n 4     " YELLOW("7") "   1 B  "
	       YELLOW("[partial]")
	       " LOST\n 3     0   1 B  [pinned] x\n");
}

TEST(diff_is_red_where_it_grew_and_green_where_it_shrank)
{
	expect(CMD_DIFF,
	       "\n OVERWEIGHT  BASE  TEST  CHANGE  BASE %  FUNCTION\n"
	       "     +200 %    10    20   +10.0   1.0 %  a\n"
	       "        n/a    20    10   -10.0  11.0 %  b\n"
	       "     +100 %    20    21    +1.0   1.0 %  c\n",
	       "\n " BOLD("OVERWEIGHT  BASE  TEST  CHANGE  BASE %  FUNCTION")
	       "\n     +200 %    10    20   " RED("+10.0") "   1.0 %  a\n"
	       "        n/a    20    10   " GREEN("-10.0")
	       "  " BOLD("11.0 %") "  b\n     +100 %    20    21    +1.0   1.0 %  c\n");
}

TEST(check_colors_the_verdict_only)
{
	expect(CMD_CHECK, "rule     ok       wrong\n                  note\nrule     note     a\n"
	       "rule     wrong    b\n",
	       "rule     " GREEN("ok") "       wrong\n                  note\nrule     "
	       YELLOW("note")
	       "     a\nrule     " RED("wrong") "    b\n");
}

TEST(events_have_bold_names)
{
	expect(CMD_EVENTS, "       1.250  a(7) 8 cpu 0  P/Start x=1\n         12  P/Start\n",
	       "       1.250  a(7) 8 cpu 0  " BOLD("P/Start") " x=1\n         12  P/Start\n");
	expect(CMD_EVENTS, "       1.250  -  My Kernel/a b x=1 y=\"c = d\"\n"
	       "       1.250  -  My Kernel/a\n",
	       "       1.250  -  " BOLD("My Kernel/a b") " x=1 y=\"c = d\"\n       1.250  -  "
	       BOLD("My Kernel/a") "\n");
}

/* Whatever stands there, and wherever it ends: without the sequences it is what it was. */
TEST(no_other_byte_is_changed)
{
	static const char text[] =
		"Incident 1, damaged\nLost      3\n\n  BASE  TEST  CHANGE   LOST  WHAT FIRED\n"
		"   10    20   +10.0   "
		"   7  [x\nall\n-\n+\n 1 %\nA\n\nZ  \xe2\x80\xa6\nrule     \n1.5  a  b";
	size_t n, i;
	int about;

	for (about = CMD_NONE; about < COMMANDS; about++) {
		for (n = 0; n < sizeof(text); n++) {
			char *part = malloc(n + 1), *to = part;
			struct buf out = {0};

			assert_non_null(part);
			memcpy(part, text, n);
			color_lines(&out, (enum command)about, part, n);
			for (i = 0; i < out.len; i++) {
				if (out.data[i] == '\033')
					i += strcspn(out.data + i, "m");
				else
					assert_int_equal(*to++, out.data[i]);
			}
			assert_int_equal(to - part, n);
			free(part);
			buf_free(&out);
		}
	}
}

TEST(only_three_words_are_taken)
{
	struct options o = {.color = "sometimes"};
	struct err err = {0};

	assert_int_equal(color_check(&o, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "is not auto, always or never"));
	o.color = "always";
	assert_int_equal(color_check(&o, &err), 0);
	assert_true(color_wanted(&o));
	o.json = true;
	assert_false(color_wanted(&o));
	o = (struct options){.color = "never"};
	assert_int_equal(color_check(&o, &err), 0);
	assert_false(color_wanted(&o));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_are_bold_and_losses_yellow),
		cmocka_unit_test(shares_of_ten_percent_are_bold),
		cmocka_unit_test(a_frame_in_capitals_is_no_heading),
		cmocka_unit_test(list_marks_losses_and_what_is_not_whole),
		cmocka_unit_test(diff_is_red_where_it_grew_and_green_where_it_shrank),
		cmocka_unit_test(check_colors_the_verdict_only),
		cmocka_unit_test(events_have_bold_names),
		cmocka_unit_test(no_other_byte_is_changed),
		cmocka_unit_test(only_three_words_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
