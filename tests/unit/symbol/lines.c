/* The reply of the process that reads debug information: what it says, and nothing else. */
#include "symbol/lines.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static const struct incident_line two[] = {
	{.function = "run", .file = "/src/a.cc", .line = 30, .function_offset = 4096},
	{.function = "inner", .file = NULL, .line = 0, .function_offset = 4100},
};

/* Of three offsets, the first and the last are known. */
static void put_reply(struct buf *out)
{
	lines_put_state(out, LINES_FOUND, NULL);
	lines_put(out, 0, two, 2);
	lines_put(out, 2, &(struct incident_line){.file = "b.s", .line = 7}, 1);
	lines_put_end(out);
}

TEST(a_reply_reads_back_as_it_was_written)
{
	struct buf reply = {0};
	struct lines l = {0};

	put_reply(&reply);
	assert_int_equal(lines_parse(&reply, 3, &l, NULL), 0);
	assert_int_equal(l.state, LINES_FOUND);
	assert_int_equal(l.nlines, 3);
	assert_int_equal(l.of_offset[0].n, 2);
	assert_int_equal(l.of_offset[1].n, 0);
	assert_int_equal(l.of_offset[2].first, 2);
	assert_string_equal(l.lines[1].function, "inner");
	assert_null(l.lines[1].file);
	assert_int_equal(l.lines[0].function_offset, 4096);
	assert_null(l.lines[2].function);
	assert_string_equal(l.lines[2].file, "b.s");
	lines_free(&l);
}

TEST(a_reply_without_lines_says_why)
{
	struct buf reply = {0};
	struct lines l = {0};

	lines_put_state(&reply, LINES_CHANGED, "it was replaced");
	assert_int_equal(lines_parse(&reply, 3, &l, NULL), 0);
	assert_int_equal(l.state, LINES_CHANGED);
	assert_string_equal(l.why, "it was replaced");
	assert_int_equal(l.of_offset[2].n, 0);
	lines_free(&l);
}

TEST(a_reply_that_is_cut_off_anywhere_is_refused)
{
	struct buf whole = {0};
	size_t n;

	put_reply(&whole);
	for (n = 0; n < whole.len; n++) {
		struct buf reply = {0};
		struct lines l = {0};
		struct err err = {0};

		buf_put(&reply, whole.data, n);
		assert_int_equal(lines_parse(&reply, 3, &l, &err), ERR_FORMAT);
		assert_non_null(strstr(err.text, "cut off"));
	}
	buf_free(&whole);
}

static void check_refused(struct buf *reply, uint32_t noffsets)
{
	struct lines l = {0};

	lines_put_end(reply);
	assert_int_equal(lines_parse(reply, noffsets, &l, NULL), ERR_FORMAT);
}

TEST(offsets_that_were_not_asked_for_or_come_twice_are_refused)
{
	struct buf reply = {0};

	lines_put_state(&reply, LINES_FOUND, NULL);
	lines_put(&reply, 3, two, 1);
	check_refused(&reply, 3);
	lines_put_state(&reply, LINES_FOUND, NULL);
	lines_put(&reply, 1, two, 1);
	lines_put(&reply, 1, two, 1);
	check_refused(&reply, 3);
}

TEST(an_offset_with_no_or_too_many_lines_is_refused)
{
	static struct incident_line many[LINES_DEPTH_MAX + 1];
	struct buf reply = {0};

	lines_put_state(&reply, LINES_FOUND, NULL);
	lines_put(&reply, 0, many, LINES_DEPTH_MAX + 1);
	check_refused(&reply, 1);
	lines_put_state(&reply, LINES_FOUND, NULL);
	lines_put(&reply, 0, many, 0);
	check_refused(&reply, 1);
}

static int parse(void *ctx)
{
	struct buf reply = {0};
	struct lines l = {0};
	int rc;

	(void)ctx;
	put_reply(&reply);
	rc = reply.failed;
	if (rc)
		buf_free(&reply);
	else
		rc = lines_parse(&reply, 3, &l, NULL);
	lines_free(&l);
	return rc;
}

TEST(lack_of_memory_is_reported)
{
	assert_in_range(alloc_walk(parse, NULL), 3, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_reads_back_as_it_was_written),
		cmocka_unit_test(a_reply_without_lines_says_why),
		cmocka_unit_test(a_reply_that_is_cut_off_anywhere_is_refused),
		cmocka_unit_test(offsets_that_were_not_asked_for_or_come_twice_are_refused),
		cmocka_unit_test(an_offset_with_no_or_too_many_lines_is_refused),
		cmocka_unit_test(lack_of_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
