/*
 * The unwind tables of this machine's own programs: every row of every function, and what readelf
 * says about each. What is not installed is skipped aloud.
 */
#include "tests/support/unwind_file.h"

#include "base/array.h"
#include "tests/support/test.h"
#include "unwind/rule.h"

#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

static const char *const files[] = {
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/bin/python3.11",
	"/usr/bin/sqlite3",
	"/usr/bin/dash",
	"/usr/bin/node",
	"/usr/lib/gcc/x86_64-linux-gnu/12/cc1",
};
enum { NFILES = COUNT_OF(files) };
#ifdef __SANITIZE_ADDRESS__
enum { NREAD = NFILES - 2 };             /* node and cc1 have 800,000 rows, which takes long then */
#else
enum { NREAD = NFILES };
#endif

static bool open_file(const char *path, enum unwind_file_how how, struct unwind_file *file)
{
	if (unwind_file_open(path, how, file) && file->tables)
		return true;
	unwind_file_close(file);
	printf("skipped: %s is not here or has no tables\n", path);
	return false;
}

struct tally {
	uint32_t fdes, rows, kinds[RULE_BAD + 1], longest;
};

/* All rows of [start, end): they follow each other without a gap. */
static void walk_rows(const struct eh_frame *tables, uint64_t start, uint64_t end, struct tally *t)
{
	uint64_t at = start;

	t->fdes++;
	while (at < end) {
		uint32_t budget = EH_BUDGET;
		struct eh_row row;

		assert_int_equal(eh_frame_row(tables, at, &budget, &row), EH_OK);
		assert_true(row.start <= at && at < row.end && row.end <= end);
		t->kinds[rule_compile(tables, &row, at).kind]++;
		t->rows++;
		if (t->longest < EH_BUDGET - budget)
			t->longest = EH_BUDGET - budget;
		at = row.end;
	}
}

TEST(every_row_of_every_function_is_understood)
{
	unsigned i;

	for (i = 0; i < NFILES; i++) {
		struct unwind_file file;
		struct tally t = {0};
		uint64_t start, end;
		uint32_t n;

		if (!open_file(files[i], UNWIND_FILE_SECTIONS, &file))
			continue;
		for (n = 0; n < eh_frame_count(file.tables); n++) {
			assert_true(eh_frame_range(file.tables, n, &start, &end));
			walk_rows(file.tables, start, end, &t);
		}
		assert_int_equal(t.kinds[RULE_BAD], 0);
		printf("%s: %u functions, %u rows: %u plain, %u deref, %u general, %u root; "
		       "longest program %u\n", files[i], t.fdes, t.rows, t.kinds[RULE_PLAIN],
		       t.kinds[RULE_DEREF], t.kinds[RULE_GENERAL], t.kinds[RULE_ROOT], t.longest);
		unwind_file_close(&file);
	}
}

/* It is in no file: its image is copied out of our own memory, as the recorder does. */
TEST(vdso_is_understood_too)
{
	const ElfW(Ehdr) *image = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
	struct unwind_file file;
	struct tally t = {0};
	char path[600];
	uint64_t start, end;
	FILE *out;

	if (!image) {
		printf("no vDSO here\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/vdso.so",
		 getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp");
	out = fopen(path, "wb");
	assert_non_null(out);
	fwrite(image, image->e_shoff + (size_t)image->e_shnum * image->e_shentsize, 1, out);
	fclose(out);
	assert_true(open_file(path, UNWIND_FILE_HEADER_ONLY, &file));
	assert_true(eh_frame_range(file.tables, 0, &start, &end));
	walk_rows(file.tables, start, end, &t);
	assert_int_equal(t.kinds[RULE_PLAIN], t.rows);
	unwind_file_close(&file);
	remove(path);
}

/* ---- the same rows however the tables were found --------------------------------------------- */

static void assert_same_rows(const struct unwind_file *a, const struct unwind_file *b)
{
	uint32_t n;

	assert_int_equal(eh_frame_count(a->tables), eh_frame_count(b->tables));
	for (n = 0; n < eh_frame_count(a->tables); n++) {
		uint32_t budget = EH_BUDGET;
		uint64_t start, end, start2, end2;
		struct eh_row row, row2;

		assert_true(eh_frame_range(a->tables, n, &start, &end));
		assert_true(eh_frame_range(b->tables, n, &start2, &end2));
		assert_true(start == start2 && end == end2);
		assert_int_equal(eh_frame_row(a->tables, (start + end) / 2, &budget, &row), EH_OK);
		assert_int_equal(eh_frame_row(b->tables, (start + end) / 2, &budget, &row2), EH_OK);
		assert_memory_equal(&row.cfa, &row2.cfa, sizeof(row.cfa));
		assert_true(row.start == row2.start && row.end == row2.end);
	}
}

TEST(index_that_is_built_equals_the_linkers)
{
	unsigned i;

	for (i = 0; i < NFILES; i++) {
		struct unwind_file linker, own, bare;

		if (!open_file(files[i], UNWIND_FILE_SECTIONS, &linker))
			continue;
		assert_true(open_file(files[i], UNWIND_FILE_NO_INDEX, &own));
		assert_true(open_file(files[i], UNWIND_FILE_HEADER_ONLY, &bare));
		assert_same_rows(&linker, &own);
		assert_same_rows(&linker, &bare);
		unwind_file_close(&linker);
		unwind_file_close(&own);
		unwind_file_close(&bare);
	}
}

/* ---- against readelf ------------------------------------------------------------------------- */

static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
				    "r9", "r10", "r11", "r12", "r13", "r14", "r15", "ra"};

static int register_number(const char *name)
{
	int i;

	for (i = 0; i < EH_REGISTERS; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	return -1;
}

/* A rule as readelf prints it; "s" and not mentioned both are "u". */
static void print_rule(const struct eh_rule *rule, bool cfa, char *out, size_t n)
{
	switch (rule->how) {
	case EH_AT:
		snprintf(out, n, "c%+d", rule->value);
		break;
	case EH_VALUE:
		snprintf(out, n, "%s%+d", cfa ? names[rule->reg] : "v", rule->value);
		break;
	case EH_IN_REGISTER:
		snprintf(out, n, "(%s)", names[rule->reg]);
		break;
	case EH_AT_EXPRESSION:
		snprintf(out, n, "exp");
		break;
	case EH_EXPRESSION:
		snprintf(out, n, cfa ? "exp" : "vexp");
		break;
	default:
		snprintf(out, n, "u");
	}
}

struct columns {
	int reg[EH_REGISTERS];
	unsigned n;
};

/* "   LOC           CFA      rbx   rbp   ra" */
static void read_columns(char *line, struct columns *columns)
{
	char *word = strtok(line, " \n");

	columns->n = 0;
	word = strtok(NULL, " \n");             /* past CFA, which is not listed */
	for (word = strtok(NULL, " \n"); word && columns->n < EH_REGISTERS;
	     word = strtok(NULL, " \n"))
		columns->reg[columns->n++] = register_number(word);
}

static void compare_rule(const struct eh_rule *rule, bool cfa, const char *expected, uint64_t at)
{
	char text[32];

	if (!strcmp(expected, "s"))
		expected = "u";
	print_rule(rule, cfa, text, sizeof(text));
	if (strcmp(text, expected) != 0)
		fail_msg("%#" PRIx64 ": %s is not %s", at, text, expected);
}

/* "0000000000026000 rsp+16   c-16  c-8"; other lines are no rows. */
static bool compare_line(const struct eh_frame *tables, char *line, const struct columns *columns)
{
	uint32_t budget = EH_BUDGET;
	char *word = strtok(line, " \n"), *end;
	struct eh_row row;
	uint64_t at;
	unsigned i;

	at = word ? strtoull(word, &end, 16) : 0;
	word = strtok(NULL, " \n");
	if (!at || *end || !word)
		return false;
	if (eh_frame_row(tables, at, &budget, &row) != EH_OK)
		fail_msg("%#" PRIx64 ": no row", at);
	compare_rule(&row.cfa, true, word, at);
	for (i = 0; i < columns->n; i++) {
		word = strtok(NULL, " \n");
		if (word && word[0] == 'r')      /* "r9 (r9)", "r1 (rdx)" */
			word = strtok(NULL, " \n");
		if (word && columns->reg[i] >= 0)
			compare_rule(&row.regs[columns->reg[i]], false, word, at);
	}
	return true;
}

/* A location printed twice has an earlier state in its first line; only the last one holds. */
static unsigned compare_output(FILE *in, const struct eh_frame *tables)
{
	char line[600], before[600] = "";
	struct columns columns = {.n = 0};
	bool in_fde = false;
	unsigned n = 0;

	while (fgets(line, sizeof(line), in)) {
		bool row = strspn(line, "0123456789abcdef") == 16 && line[16] == ' ';

		if (before[0] && in_fde && (!row || strncmp(before, line, 16) != 0))
			n += compare_line(tables, before, &columns);
		before[0] = '\0';
		if (strstr(line, "CIE"))
			in_fde = false;
		else if (strstr(line, "FDE"))
			in_fde = true;
		else if (strstr(line, "LOC"))
			read_columns(line, &columns);
		else if (row)
			snprintf(before, sizeof(before), "%s", line);
	}
	return n;
}

TEST(rows_are_those_that_readelf_prints)
{
	unsigned i;

	if (system("readelf --version >/dev/null 2>&1") != 0) {
		printf("no readelf on this machine\n");
		skip();
	}
	if ((int)NREAD < (int)NFILES)
		printf("in part: %d of %d files, as the largest take long under a sanitizer\n",
		       NREAD, NFILES);
	for (i = 0; i < NREAD; i++) {
		struct unwind_file file;
		char command[300];
		unsigned n;
		FILE *in;

		if (!open_file(files[i], UNWIND_FILE_SECTIONS, &file))
			continue;
		snprintf(command, sizeof(command),
			 "readelf --debug-dump=frames-interp %s 2>/dev/null", files[i]);
		in = popen(command, "r");
		assert_non_null(in);
		n = compare_output(in, file.tables);
		pclose(in);
		printf("%s: %u rows as readelf has them\n", files[i], n);
		assert_true(n > 100);
		unwind_file_close(&file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_every_function_is_understood),
		cmocka_unit_test(vdso_is_understood_too),
		cmocka_unit_test(index_that_is_built_equals_the_linkers),
		cmocka_unit_test(rows_are_those_that_readelf_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
