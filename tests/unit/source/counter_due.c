/* Counters at their periods, by numbers that can be checked by hand. */
#include "source/counter_due.h"
#include "tests/support/test.h"

#include <string.h>

TEST(a_counter_is_due_on_its_grid_and_missed_times_are_not_made_up_for)
{
	uint64_t next = 100;

	assert_false(counter_due(&next, 10, 99));
	assert_true(counter_due(&next, 10, 100));
	assert_int_equal(next, 110);
	assert_true(counter_due(&next, 10, 119));
	assert_int_equal(next, 120);
	assert_true(counter_due(&next, 10, 155));
	assert_int_equal(next, 160);
	assert_false(counter_due(&next, 10, 159));
}

TEST(a_need_without_a_period_has_a_second)
{
	struct need_counter need = {.name = "a:b:c"}, out = counter_need(&need);

	assert_true(out.period_ns == COUNTER_PERIOD_DEFAULT_NS);
	need.period_ns = 7;
	out = counter_need(&need);
	assert_int_equal(out.period_ns, 7);
	assert_string_equal(out.name, "a:b:c");
}

TEST(the_event_of_a_monitor_says_so)
{
	struct need_counter need = {.name = "a:b:c"};
	struct event e = counter_event(&need, 5);

	assert_true(e.kind == EVENT_COUNTER && e.time_ns == 5 && e.flags == 0);
	assert_string_equal(e.name, "a:b:c");
	need.monitor = true;
	assert_int_equal(counter_event(&need, 5).flags, EVENT_FLAG_MONITOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_counter_is_due_on_its_grid_and_missed_times_are_not_made_up_for),
		cmocka_unit_test(a_need_without_a_period_has_a_second),
		cmocka_unit_test(the_event_of_a_monitor_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
