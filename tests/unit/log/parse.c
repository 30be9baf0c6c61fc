/* Lines of the kernel's log, of journalctl, of files. */
#include "source/log/parse.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(kernel_records_give_level_number_and_text)
{
	static const char record[] =
		"4,1234,5140900,-;Out of memory: Killed process 7\n SUBSYSTEM=mem\n";
	struct log_line line;
	uint64_t seq = 0;

	assert_true(log_parse_kmsg(record, sizeof(record) - 1, &line, &seq));
	assert_int_equal(seq, 1234);
	assert_int_equal(line.level, 4);
	assert_int_equal(line.len, strlen("Out of memory: Killed process 7"));
	assert_memory_equal(line.text, "Out of memory", 13);
	assert_false(log_parse_kmsg("", 0, &line, &seq));
	assert_false(log_parse_kmsg("4", 1, &line, &seq));
	assert_false(log_parse_kmsg("4,5,6,-", 7, &line, &seq));
	assert_false(log_parse_kmsg("x,5,6,-;a", 9, &line, &seq));
	assert_true(log_parse_kmsg("14,5,6,-;", 9, &line, &seq));
	assert_int_equal(line.level, 6);     /* 14 = facility 1, level 6 */
	assert_int_equal(line.len, 0);
}

TEST(journal_lines_give_writer_and_text)
{
	static const struct { const char *line, *text, *name; uint32_t pid; } all[] = {
		{"[  123.456789] sshd[77]: no such user", "sshd[77]: no such user", "sshd", 77},
		{"[1.5] kernel: oops", "kernel: oops", "kernel", 0},
		{"   continued", "continued", NULL, 0},
		{"[1.5] no writer here", "no writer here", NULL, 0},
		{"[1.5] a[b]: c", "a[b]: c", NULL, 0},
	};
	struct log_line line;
	size_t i;

	for (i = 0; i < COUNT_OF(all); i++) {
		assert_true(log_parse_journal(all[i].line, strlen(all[i].line), &line));
		assert_int_equal(line.len, strlen(all[i].text));
		assert_memory_equal(line.text, all[i].text, line.len);
		assert_int_equal(line.pid, all[i].pid);
		assert_int_equal(line.name != NULL, all[i].name != NULL);
		if (line.name)
			assert_memory_equal(line.name, all[i].name, line.name_len);
	}
	assert_false(log_parse_journal("-- Boot 12 --", 13, &line));
	assert_false(log_parse_journal("", 0, &line));
	assert_false(log_parse_journal("[1.5", 4, &line));
}

struct got {
	char text[9000];
};

static void add(void *ctx, const char *line, size_t len)
{
	struct got *g = ctx;
	size_t used = strlen(g->text);

	snprintf(g->text + used, sizeof(g->text) - used, "<%.*s>", (int)len, line);
}

TEST(bytes_are_cut_into_lines)
{
	static struct log_cutter c;
	static struct got g;
	char *big = malloc(LOG_LINE_MAX + 50);

	log_cut(&c, "a\nb", 3, add, &g);
	assert_string_equal(g.text, "<a>");
	log_cut(&c, "c\r\n\n\nd\n", 7, add, &g);
	assert_string_equal(g.text, "<a><bc><d>");
	/* One that is too long: its beginning, once, and the rest is dropped and counted. */
	memset(big, 'x', LOG_LINE_MAX + 50);
	g.text[0] = '\0';
	log_cut(&c, big, LOG_LINE_MAX + 50, add, &g);
	log_cut(&c, big, 50, add, &g);
	log_cut(&c, "\nend\n", 5, add, &g);
	assert_int_equal(strlen(g.text), LOG_LINE_MAX + 2 + 5);
	assert_string_equal(g.text + LOG_LINE_MAX + 2, "<end>");
	assert_int_equal(c.cut, 1);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_records_give_level_number_and_text),
		cmocka_unit_test(journal_lines_give_writer_and_text),
		cmocka_unit_test(bytes_are_cut_into_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
