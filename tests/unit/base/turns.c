#include "base/turns.h"

#include "base/os.h"
#include "tests/support/test.h"

enum { OWN = 1000, EVE = 1001, BOB = 1002, DAN = 1003 };
#define S NS_PER_SEC
#define MS NS_PER_MS

/* 10 % of a CPU: 50 ms a second for a user, 75 ms for all others; ten times that at first. */
TEST(who_has_used_up_his_time_waits_until_it_has_accrued)
{
	struct turns t;

	turns_init(&t, 10, OWN);
	assert_true(turns_may(&t, EVE, S));
	turns_spend(&t, EVE, 500 * MS);
	assert_true(turns_may(&t, EVE, S));
	turns_spend(&t, EVE, 10 * MS);
	assert_false(turns_may(&t, EVE, S));
	assert_false(turns_may(&t, EVE, S + 199 * MS));
	assert_true(turns_may(&t, EVE, S + 200 * MS));
	assert_int_equal(turns_skipped(&t), 2);
	assert_true(turns_may(&t, BOB, S));
}

TEST(others_together_have_three_quarters_and_root_and_our_own_no_limit)
{
	struct turns t;

	turns_init(&t, 10, OWN);
	assert_true(turns_may(&t, EVE, S) && turns_may(&t, BOB, S) && turns_may(&t, DAN, S));
	turns_spend(&t, EVE, 400 * MS);
	turns_spend(&t, BOB, 351 * MS);
	assert_false(turns_may(&t, DAN, S));
	turns_spend(&t, 0, 100 * S);
	turns_spend(&t, OWN, 100 * S);
	assert_true(turns_may(&t, 0, S));
	assert_true(turns_may(&t, OWN, S));
	assert_true(turns_may(&t, DAN, S + 20 * MS));
}

TEST(what_accrues_is_ten_seconds_worth_at_most)
{
	struct turns t;

	turns_init(&t, 10, OWN);
	assert_true(turns_may(&t, EVE, S));
	assert_true(turns_may(&t, EVE, 1000 * S));
	turns_spend(&t, EVE, 501 * MS);
	assert_false(turns_may(&t, EVE, 1000 * S));
}

TEST(without_a_limit_it_is_everybodys_turn)
{
	struct turns t;

	turns_init(&t, 0, OWN);
	assert_int_equal(turns_begin(&t, EVE), 0);
	turns_spend(&t, EVE, 1000 * S);
	assert_true(turns_may(&t, EVE, S));
	assert_int_equal(turns_skipped(&t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_used_up_his_time_waits_until_it_has_accrued),
		cmocka_unit_test(others_together_have_three_quarters_and_root_and_our_own_no_limit),
		cmocka_unit_test(what_accrues_is_ten_seconds_worth_at_most),
		cmocka_unit_test(without_a_limit_it_is_everybodys_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
