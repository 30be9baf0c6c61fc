/*
 * Stacks that are told apart from their events: by keys, too late, live, in extended items; see
 * etw/stacks.c.
 */
#include "tests/support/etw_stack_lab.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ------------------------------------------------------------------------------------ */

TEST(key_means_the_stack_that_is_told_after_it)
{
	uint32_t e = sample(1000, 7, 0);

	key(37, 1000, 100, 7, 5);
	key(38, 1000, 100, 7, 6);
	DEFINE(35, 5000, 6, U(1), U(2));
	DEFINE(36, 9000, 5, K(1));
	run_file();
	STACK_IS(e, K(1), U(1), U(2));
}

TEST(key_that_is_free_again_means_another_stack)
{
	uint32_t first = sample(1000, 7, 0), second, third;

	key(37, 1000, 4, 7, 5);
	DEFINE(35, 1500, 5, K(1));
	second = sample(2000, 7, 0);
	key(37, 2000, 4, 7, 5);
	third = sample(3000, 7, 0);
	key(37, 3000, 4, 7, 5);
	DEFINE(36, 9000, 5, K(2));
	run_file();
	STACK_IS(first, K(1));
	STACK_IS(second, K(2));
	STACK_IS(third, K(2));
}

TEST(kernel_and_user_keys_are_two_tables)
{
	uint32_t e = sample(1000, 7, 0), mixed = sample(1200, 7, 0);

	key(37, 1000, 100, 7, 5);
	key(38, 1000, 100, 7, 5);
	key(38, 1200, 100, 7, 6);
	DEFINE(36, 9000, 5, U(1));
	DEFINE(36, 9001, 5, K(1));
	DEFINE(36, 9002, 6, K(3), U(3));             /* by its last address: the user's */
	run_file();
	STACK_IS(e, K(1), U(1));
	STACK_IS(mixed, K(3), U(3));
}

TEST(key_that_is_never_told_leaves_a_mark)
{
	uint32_t e = sample(1000, 7, 0);

	key(37, 1000, 100, 7, 5);
	key(38, 1000, 100, 7, 6);
	DEFINE(36, 900, 5, U(9));
	DEFINE(36, 9000, 5, K(1));
	run_file();
	assert_int_equal(result.of[e].state, ETW_STACK_NO_KEY);
	assert_int_equal(result.of[e].n, 1);
	assert_int_equal(result.of[e].addresses[0], K(1));
	assert_int_equal(result.count.unresolved, 1);
}

/* ---- late ------------------------------------------------------------------------------------ */

TEST(part_that_comes_after_its_event_has_left_is_known_from_the_survey)
{
	uint32_t first = sample(1000, 7, 0), second = sample(1100, 7, 0),
		 keyed = sample(1200, 8, 0);

	STACK(1000, 100, 7, K(1));
	STACK(1100, 100, 7, K(2));
	key(37, 1200, 100, 8, 5);
	script.filler_after = script.n - 1;
	script.nfiller = 3 * ETW_STACKS_HELD_RECORDS;
	STACK(1100, 100, 7, U(1), U(2));
	key(38, 1200, 100, 8, 6);
	DEFINE(35, 9000, 6, U(3));
	DEFINE(35, 9001, 5, K(3));
	DEFINE(35, 9002, 6, U(4));
	run_file();
	STACK_IS(first, K(1), U(1), U(2));
	STACK_IS(second, K(2), U(1), U(2));
	STACK_IS(keyed, K(3), U(3));
	assert_int_equal(result.count.no_user, 0);
	assert_int_equal(result.count.orphans, 0);
}

TEST(part_whose_event_is_longer_ago_than_a_survey_knows_is_an_orphan)
{
	uint32_t e = sample(1000, 7, 0);

	script.filler_after = 0;
	script.nfiller = 70000;
	STACK(1000, 100, 7, U(1));
	run_file();
	STACK_IS(e, 0);
	assert_int_equal(result.count.orphans, 1);
}

/* ---- live ------------------------------------------------------------------------------------ */

TEST(live_event_waits_half_a_second_for_its_user_part)
{
	uint32_t patient = sample(1000, 7, 0), bound = sample(1100, 8, 0);
	struct etw_stacks *s;

	STACK(1000, 100, 7, K(1));
	STACK(1100, 100, 8, K(2));
	STACK(1100, 100, 8, U(2));
	s = run_live();
	assert_int_equal(result.n, 0);
	etw_stacks_time(s, 1000 + 5000000 - 1);      /* 10 MHz: 500 ms are 5,000,000 ticks */
	take(s);
	assert_int_equal(result.n, 0);
	etw_stacks_time(s, 1101 + 5000000);
	take(s);
	assert_int_equal(result.n, 5);
	assert_int_equal(result.of[patient].state, ETW_STACK_NO_USER);
	assert_int_equal(result.of[patient].addresses[0], K(1));
	STACK_IS(bound, K(2), U(2));
	result.count = *etw_stacks_counts(s);
	assert_int_equal(result.count.no_user, 1);
	etw_stacks_free(s);
}

TEST(live_part_that_comes_too_late_is_counted)
{
	struct etw_stacks *s;

	sample(1000, 7, 0);
	STACK(1000, 100, 7, K(1));
	event(9000000, 1, 1);
	STACK(1000, 100, 7, U(1));
	s = run_live();
	result.count = *etw_stacks_counts(s);
	assert_int_equal(result.count.orphans, 1);
	assert_int_equal(result.count.no_user, 1);
	etw_stacks_free(s);
}

TEST(live_line_that_is_full_lets_the_oldest_go)
{
	struct etw_stacks *s;

	sample(1000, 7, 0);
	script.filler_after = 0;
	script.nfiller = ETW_STACKS_HELD_RECORDS;
	s = run_live();
	assert_int_equal(result.n, 1);
	etw_stacks_free(s);
}

/* ---- extended items -------------------------------------------------------------------------- */

TEST(stack_in_an_item_is_whole)
{
	uint32_t e = event(1000, 100, 7), narrow;

	ITEM(6, 0, K(1), U(1));
	narrow = event(1100, 100, 7);
	ITEM(5, 0, 0x10001000, 0x90001000);          /* a 32-bit program may use over 2 GB */
	run_file();
	STACK_IS(e, K(1), U(1));
	STACK_IS(narrow, 0x10001000, 0x90001000);
}

TEST(kernel_part_in_an_item_gets_its_user_part_from_an_event)
{
	uint32_t matched = event(1000, 100, 7), by_address = event(1001, 100, 7), part;

	script.n = matched + 1;
	ITEM(6, 77, K(1));
	by_address = event(1001, 100, 7);
	ITEM(6, 0, K(2));
	part = event_of(USER_PART_GUID, 1500, 100, 7);
	script.record[part].id = 18;
	ITEM(6, 77, U(1));
	run_file();
	STACK_IS(matched, K(1), U(1));
	STACK_IS(by_address, K(2), U(1));
	STACK_IS(part, 0);
}

TEST(key_in_an_item_is_resolved)
{
	uint32_t e = event(1000, 100, 7), matched;

	ITEM(18, 0, 6);
	matched = event(1100, 4, 8);
	ITEM(18, 77, 6);
	DEFINE(36, 9000, 6, U(1));
	DEFINE(36, 9001, 6, K(1));
	run_file();
	STACK_IS(e, U(1));
	STACK_IS(matched, K(1));
}

#define IN_LAB(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(key_means_the_stack_that_is_told_after_it),
		IN_LAB(key_that_is_free_again_means_another_stack),
		IN_LAB(kernel_and_user_keys_are_two_tables),
		IN_LAB(key_that_is_never_told_leaves_a_mark),
		IN_LAB(part_that_comes_after_its_event_has_left_is_known_from_the_survey),
		IN_LAB(part_whose_event_is_longer_ago_than_a_survey_knows_is_an_orphan),
		IN_LAB(live_event_waits_half_a_second_for_its_user_part),
		IN_LAB(live_part_that_comes_too_late_is_counted),
		IN_LAB(live_line_that_is_full_lets_the_oldest_go),
		IN_LAB(stack_in_an_item_is_whole),
		IN_LAB(kernel_part_in_an_item_gets_its_user_part_from_an_event),
		IN_LAB(key_in_an_item_is_resolved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
