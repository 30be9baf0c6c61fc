/* Of 80 in all: a user may hold 40, a program 10, users but root and our own (1000) together 60. */
#include "base/shares.h"
#include "tests/support/test.h"

#define OWN 1000u

TEST(a_program_has_an_eighth)
{
	struct shares s;
	struct share a = {.uid = 7}, b = {.uid = 7};

	shares_init(&s, 80, OWN);
	assert_true(shares_take(&s, &a, 10));
	assert_false(shares_take(&s, &a, 1));
	assert_false(shares_take(&s, &b, 11));
	assert_true(shares_take(&s, &b, 10));
	assert_false(shares_take(&s, &b, UINT64_MAX));
	assert_int_equal(s.used, 20);
	assert_int_equal(s.refused, 3);
	assert_int_equal(s.programs_refused, 2);
	assert_int_equal(b.refused, 2);
}

TEST(a_user_has_a_half_however_many_programs_he_starts)
{
	struct share programs[6] = {{.uid = 7}, {.uid = 7}, {.uid = 7},
				    {.uid = 7}, {.uid = 7}, {.uid = 8}};
	struct shares s;
	unsigned i;

	shares_init(&s, 80, OWN);
	for (i = 0; i < 4; i++)
		assert_true(shares_take(&s, &programs[i], 10));
	assert_false(shares_take(&s, &programs[4], 1));
	assert_true(shares_take(&s, &programs[5], 10));
	/* What he gives back he may have again. */
	shares_give_back(&s, &programs[0], 3);
	assert_false(shares_take(&s, &programs[4], 4));
	assert_true(shares_take(&s, &programs[4], 3));
}

TEST(root_and_our_own_user_have_a_quarter_that_no_other_gets)
{
	struct share mine[2] = {{.uid = OWN}, {.uid = 0}};
	struct share others[8] = {{.uid = 7}, {.uid = 7}, {.uid = 7}, {.uid = 7},
				  {.uid = 8}, {.uid = 8}, {.uid = 8}, {.uid = 8}};
	struct shares s;
	unsigned i;

	shares_init(&s, 80, OWN);
	for (i = 0; i < 8; i++)
		assert_int_equal(shares_take(&s, &others[i], 10), i < 6);
	assert_true(shares_take(&s, &mine[0], 10));
	assert_true(shares_take(&s, &mine[1], 10));
	assert_int_equal(s.used, 80);
	/* Full: now they are refused too. */
	assert_true(shares_hold(&s, &mine[0], 9));
	assert_false(shares_take(&s, &others[6], 1));
	assert_true(shares_hold(&s, &mine[0], 10));
	assert_false(shares_hold(&s, &mine[0], 11));
	assert_int_equal(mine[0].used, 10);
}

TEST(users_that_hold_nothing_are_forgotten)
{
	struct shares s;
	struct share share, last[SHARES_USERS_MAX];
	unsigned i;

	shares_init(&s, 8000, OWN);
	for (i = 0; i < 10 * SHARES_USERS_MAX; i++) {
		share = (struct share){.uid = 2000 + i};
		assert_true(shares_take(&s, &share, 5));
		assert_true(shares_hold(&s, &share, 2));
		assert_true(shares_hold(&s, &share, 0));
		assert_true(shares_hold(&s, &share, 0));
	}
	assert_int_equal(s.nusers, 0);
	assert_int_equal(s.used, 0);
	assert_int_equal(s.used_by_others, 0);
	/* As many as the list has room for, and then root and we. */
	for (i = 0; i < SHARES_USERS_MAX; i++) {
		last[i] = (struct share){.uid = 2000 + i};
		assert_int_equal(shares_take(&s, &last[i], 1), i < SHARES_USERS_MAX - 2);
	}
	share = (struct share){.uid = 0};
	assert_true(shares_take(&s, &share, 1));
	share = (struct share){.uid = OWN};
	assert_true(shares_take(&s, &share, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_has_an_eighth),
		cmocka_unit_test(a_user_has_a_half_however_many_programs_he_starts),
		cmocka_unit_test(root_and_our_own_user_have_a_quarter_that_no_other_gets),
		cmocka_unit_test(users_that_hold_nothing_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
