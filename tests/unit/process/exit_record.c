/* Records of the process connector, built by hand. */
#include "source/process/exit_record.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/* Thread 7 of process `pid` ends with a status of wait(2). */
static void build(unsigned char out[76], uint32_t what, uint32_t first, uint32_t pid,
		  uint32_t status)
{
	static const uint32_t length = 76, one = 1, parent = 5;
	static const uint64_t time_ns = 5000000123u;

	memset(out, 0, 76);
	memcpy(out, &length, 4);
	memcpy(out + 16, &one, 4);
	memcpy(out + 20, &one, 4);
	memcpy(out + 36, &what, 4);
	memcpy(out + 44, &time_ns, 8);
	memcpy(out + 52, &first, 4);
	memcpy(out + 56, &pid, 4);
	memcpy(out + 60, &status, 4);
	memcpy(out + 72, &parent, 4);
}

TEST(an_end_has_its_code_or_its_signal)
{
	unsigned char bytes[76];
	struct exit_record r;

	build(bytes, EXIT_WHAT_EXIT, 7, 7, 3 << 8);
	assert_true(exit_record_parse(bytes, sizeof(bytes), &r));
	assert_int_equal(r.kind, EXIT_RECORD_EXIT);
	assert_int_equal(r.time_ns, 5000000123u);
	assert_int_equal(r.pid, 7);
	assert_int_equal(r.tid, 7);
	assert_int_equal(r.parent, 5);
	assert_int_equal(r.code, 3);
	assert_int_equal(r.signal, 0);
	build(bytes, EXIT_WHAT_EXIT, 8, 7, 0x80 | 11);
	assert_true(exit_record_parse(bytes, sizeof(bytes), &r));
	assert_int_equal(r.tid, 8);
	assert_int_equal(r.code, 0);
	assert_int_equal(r.signal, 11);
	assert_true(r.core);
}

TEST(an_answer_has_its_errno_and_others_are_others)
{
	unsigned char bytes[76];
	struct exit_record r;

	build(bytes, EXIT_WHAT_ANSWER, 1, 0, 0);
	assert_true(exit_record_parse(bytes, sizeof(bytes), &r));
	assert_int_equal(r.kind, EXIT_RECORD_ANSWER);
	assert_int_equal(r.error, 1);
	build(bytes, 1, 7, 7, 0);
	assert_true(exit_record_parse(bytes, sizeof(bytes), &r));
	assert_int_equal(r.kind, EXIT_RECORD_OTHER);
}

TEST(short_and_foreign_messages_are_refused)
{
	unsigned char bytes[76], *copy;
	struct exit_record r;
	size_t n;

	build(bytes, EXIT_WHAT_EXIT, 7, 7, 0);
	for (n = 0; n < sizeof(bytes); n++) {
		copy = malloc(n ? n : 1);        /* so that a sanitizer sees its end */
		assert_non_null(copy);
		memcpy(copy, bytes, n);
		assert_false(exit_record_parse(copy, n, &r));
		free(copy);
	}
	bytes[16] = 2;
	assert_false(exit_record_parse(bytes, sizeof(bytes), &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_has_its_code_or_its_signal),
		cmocka_unit_test(an_answer_has_its_errno_and_others_are_others),
		cmocka_unit_test(short_and_foreign_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
