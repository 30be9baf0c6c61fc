#include "symbol/perfmap.h"
#include "tests/support/alloc_walk.h"

#include "model/frame.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static struct perfmap *parse(const char *from)
{
	struct perfmap *map = NULL;
	struct buf text = {0};

	buf_puts(&text, from);
	assert_int_equal(perfmap_parse(&text, &map, NULL), 0);
	assert_null(text.data);
	return map;
}

/* "" = none. */
static const char *name_at(const struct perfmap *map, uint64_t address)
{
	struct perfmap_function f;

	if (!perfmap_find(map, address, &f))
		return "";
	assert_true(address >= f.start && address - f.start < f.bytes);
	return f.name;
}

TEST(perfmap_names_addresses_from_start_to_end)
{
	struct perfmap *map =
		parse("7f0000001000 100 LazyCompile:~hot /srv/my app.js:1:2\n"
		      "0x00007F0012345678 3A void [System] Concat(string)[Tier1]\r\n");
	struct perfmap_function f;

	assert_int_equal(perfmap_count(map), 2);
	assert_string_equal(name_at(map, 0x7f0000000fff), "");
	assert_string_equal(name_at(map, 0x7f0000001000), "LazyCompile:~hot /srv/my app.js:1:2");
	assert_string_equal(name_at(map, 0x7f00000010ff), "LazyCompile:~hot /srv/my app.js:1:2");
	assert_string_equal(name_at(map, 0x7f0000001100), "");
	assert_string_equal(name_at(map, 0x7f00123456b1), "void [System] Concat(string)[Tier1]");
	assert_string_equal(name_at(map, 0x7f00123456b2), "");
	assert_true(perfmap_find(map, 0x7f0000001080, &f));
	assert_true(f.start == 0x7f0000001000 && f.bytes == 0x100);
	perfmap_free(map);
}

TEST(perfmap_believes_the_later_of_two_lines)
{
	struct perfmap *same = parse("1000 100 old\n1000 100 new\n");
	struct perfmap *across = parse("1000 100 old\n1080 100 new\n");
	struct perfmap *before = parse("1080 100 old\n1000 100 new\n");
	struct perfmap *inside = parse("1000 100 outer\n1040 10 inner\n");
	struct perfmap *over = parse("1040 10 hidden\n1000 100 outer\n");

	assert_string_equal(name_at(same, 0x1000), "new");
	assert_string_equal(name_at(across, 0x107f), "old");
	assert_string_equal(name_at(across, 0x1080), "new");
	assert_string_equal(name_at(across, 0x117f), "new");
	assert_string_equal(name_at(before, 0x10ff), "new");
	assert_string_equal(name_at(before, 0x1100), "old");
	assert_string_equal(name_at(inside, 0x103f), "outer");
	assert_string_equal(name_at(inside, 0x1040), "inner");
	assert_string_equal(name_at(inside, 0x1050), "outer");
	assert_string_equal(name_at(over, 0x1040), "outer");
	perfmap_free(same);
	perfmap_free(across);
	perfmap_free(before);
	perfmap_free(inside);
	perfmap_free(over);
}

TEST(perfmap_leaves_out_what_is_no_function)
{
	struct perfmap *map = parse("\n  \nhello\n1000\n1000 10\n1000 10 \n0x 10 name\n"
				    "1000 0 empty\n1000 40000001 too large\n1000\t10\ttabs\n"
				    "10000000000001000 10 number too long\n"
				    "ffffffffffffffff 2 wraps\n1000 10 unended");

	assert_int_equal(perfmap_count(map), 0);
	assert_string_equal(name_at(map, 0x1000), "");
	assert_string_equal(name_at(map, UINT64_MAX), "");
	perfmap_free(map);
	map = parse("");
	assert_string_equal(name_at(map, 0), "");
	perfmap_free(map);
}

TEST(perfmap_cuts_a_name_that_is_too_long)
{
	struct buf text = {0};
	struct perfmap *map;
	unsigned i;

	buf_puts(&text, "1000 10 ");
	for (i = 0; i < 3 * FUNCTION_NAME_MAX; i++)
		buf_putc(&text, 'x');
	buf_puts(&text, "\n1010 10 next\n");
	map = parse(buf_text(&text));
	assert_int_equal(strlen(name_at(map, 0x1000)), FUNCTION_NAME_MAX);
	assert_string_equal(name_at(map, 0x1010), "next");
	perfmap_free(map);
	buf_free(&text);
}

TEST(perfmap_keeps_a_bounded_number_of_lines)
{
	struct perfmap *map = NULL;
	struct buf text = {0};
	uint32_t i;

	for (i = 0; i < PERFMAP_LINES_MAX + 2; i++)
		buf_printf(&text, "%x 10 f\n", i * 16);
	assert_int_equal(perfmap_parse(&text, &map, NULL), 0);
	assert_int_equal(perfmap_count(map), PERFMAP_LINES_MAX);
	assert_true(perfmap_full(map));
	assert_string_equal(name_at(map, PERFMAP_LINES_MAX * 16 - 1), "f");
	assert_string_equal(name_at(map, PERFMAP_LINES_MAX * 16), "");
	perfmap_free(map);
}

/* Small maps of random ranges, each address asked, against the rule said in the simplest way. */
TEST(perfmap_agrees_with_a_table_that_is_painted_line_by_line)
{
	enum { PLACES = 64, LINES = 12, ROUNDS = 2000 };
	uint32_t seed = 1, round, i, k;

	for (round = 0; round < ROUNDS; round++) {
		char painted[PLACES + 64] = "", text[LINES * 16] = "", want[2] = "";
		struct perfmap *map;

		for (i = 0; i < LINES; i++) {
			uint32_t start, bytes;

			seed = seed * 1664525 + 1013904223;
			start = seed >> 16 & (PLACES - 1);
			bytes = (seed >> 24 & 15) + 1;
			snprintf(text + strlen(text), 16, "%x %x %c\n", (unsigned)start,
				 (unsigned)bytes, (char)('a' + i));
			for (k = start; k < start + bytes; k++)
				painted[k] = (char)('a' + i);
		}
		map = parse(text);
		for (i = 0; i < PLACES + 64; i++) {
			want[0] = painted[i];
			assert_string_equal(name_at(map, i), want);
		}
		perfmap_free(map);
	}
}

TEST(perfmap_forgets_functions_that_were_overwritten)
{
	struct perfmap *once = parse("1000 100 a\n1000 80 b\n1080 80 c\n");
	struct buf text = {0};
	struct perfmap *map;
	unsigned i;

	assert_int_equal(perfmap_count(once), 2);
	assert_string_equal(name_at(once, 0x1000), "b");
	assert_string_equal(name_at(once, 0x10ff), "c");
	for (i = 0; i < 100000; i++)
		buf_printf(&text, "%x 10 function number %u\n", i % 100 * 16, i);
	map = parse(buf_text(&text));
	assert_int_equal(perfmap_count(map), 100);
	assert_string_equal(name_at(map, 0), "function number 99900");
	assert_string_equal(name_at(map, 99 * 16), "function number 99999");
	assert_true(perfmap_bytes(map) < 10000);
	perfmap_free(map);
	perfmap_free(once);
	buf_free(&text);
}

static int parse_step(void *ctx)
{
	struct perfmap *map = NULL;
	struct buf text = {0};
	int rc;

	buf_puts(&text, ctx);
	rc = text.failed;
	if (!rc)
		rc = perfmap_parse(&text, &map, NULL);
	buf_free(&text);
	perfmap_free(map);
	return rc;
}

/* The last three allocations make something smaller, which may fail. */
TEST(perfmap_reports_lack_of_memory)
{
	static const char text[] = "1000 10 a\n1008 10 b\n";
	unsigned long n, at;

	alloc_walk_fail_at(0);
	assert_int_equal(parse_step((void *)text), 0);
	n = alloc_walk_count();
	assert_in_range(n, 6, 20);
	for (at = 1; at <= n; at++) {
		alloc_walk_fail_at(at);
		assert_int_equal(parse_step((void *)text), at + 3 <= n ? ERR_MEMORY : 0);
	}
	alloc_walk_fail_at(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfmap_names_addresses_from_start_to_end),
		cmocka_unit_test(perfmap_believes_the_later_of_two_lines),
		cmocka_unit_test(perfmap_leaves_out_what_is_no_function),
		cmocka_unit_test(perfmap_cuts_a_name_that_is_too_long),
		cmocka_unit_test(perfmap_keeps_a_bounded_number_of_lines),
		cmocka_unit_test(perfmap_agrees_with_a_table_that_is_painted_line_by_line),
		cmocka_unit_test(perfmap_forgets_functions_that_were_overwritten),
		cmocka_unit_test(perfmap_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
