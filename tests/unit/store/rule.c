/* What rules remember over a restart. */
#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include <string.h>

TEST(a_rules_state_survives_the_recorder)
{
	struct buf out = {0};
	uint64_t saved_ns = 0;
	struct lab lab;
	struct store *s;

	s = lab_record(&lab, "rule.db");
	assert_int_equal(store_put_rule(s, "A:B:C>5", "old", 3, 7, NULL), 0);
	assert_int_equal(store_put_rule(s, "A:B:C>5", "a\0b", 3, 42, NULL), 0);
	store_close(s);
	s = lab_store(&lab, STORE_RECORD);
	assert_int_equal(store_get_rule(s, "A:B:C>5", &out, &saved_ns, NULL), 0);
	assert_int_equal(out.len, 3);
	assert_memory_equal(out.data, "a\0b", 3);
	assert_int_equal(saved_ns, 42);
	assert_int_equal(store_get_rule(s, "another", &out, &saved_ns, NULL), ERR_NOT_FOUND);
	store_close(s);
	buf_free(&out);
	lab_close(&lab);
}

TEST(a_state_that_is_empty_is_forgotten_and_one_too_long_is_refused)
{
	static const char bytes[STORE_RULE_STATE_BYTES + 1];
	struct buf out = {0};
	uint64_t saved_ns;
	struct lab lab;
	struct store *s;

	s = lab_record(&lab, "rule_size.db");
	assert_int_equal(store_put_rule(s, "r", bytes, STORE_RULE_STATE_BYTES, 1, NULL), 0);
	assert_int_equal(store_put_rule(s, "r", bytes, sizeof(bytes), 1, NULL), ERR_LIMIT);
	assert_int_equal(store_get_rule(s, "r", &out, &saved_ns, NULL), 0);
	assert_int_equal(out.len, STORE_RULE_STATE_BYTES);
	assert_int_equal(store_put_rule(s, "r", bytes, 0, 1, NULL), 0);
	assert_int_equal(store_get_rule(s, "r", &out, &saved_ns, NULL), ERR_NOT_FOUND);
	store_close(s);
	buf_free(&out);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rules_state_survives_the_recorder),
		cmocka_unit_test(a_state_that_is_empty_is_forgotten_and_one_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
