/* What the wall clock did between two looks, a second of the recorder clock apart. */
#include "engine/clock.h"
#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/* The wall clock moves and the machine sleeps this long meanwhile; "" = nothing is said. */
static const char *said(double wall_s, double slept_s)
{
	static char text[300];
	struct clock_reading before = {1000 * NS_PER_SEC, 5000 * NS_PER_SEC, 70 * NS_PER_SEC};
	struct clock_reading now = before;

	now.now_ns += NS_PER_SEC;
	now.wall_ns = (uint64_t)((double)now.wall_ns + wall_s * 1e9);
	now.asleep_ns += (uint64_t)(slept_s * 1e9);
	text[0] = '\0';
	assert_true(clock_changed(&before, &now, text, sizeof(text)) == (*text != 0));
	return text;
}

TEST(clocks_that_agree_say_nothing)
{
	assert_string_equal(said(1, 0), "");
	assert_string_equal(said(1.4, 0), "");
	assert_string_equal(said(0.6, 0), "");
}

TEST(a_step_is_told_with_its_direction)
{
	assert_non_null(strstr(said(4.25, 0), "set forward by 3.2 s"));
	assert_non_null(strstr(said(-3599, 0), "set back by 3600.0 s"));
	assert_non_null(strstr(said(0.4, 0), "set back by 0.6 s"));
}

TEST(sleep_is_no_step)
{
	assert_non_null(strstr(said(7201, 7200), "slept for 7200.0 s"));
	assert_string_equal(said(1.1, 0.1), "");
}

TEST(the_first_look_has_nothing_to_compare_with)
{
	struct clock_reading none = {0, 0, 0}, now = {1, 5000 * NS_PER_SEC, 70 * NS_PER_SEC};
	char text[300];

	assert_false(clock_changed(&none, &now, text, sizeof(text)));
}

TEST(the_clocks_of_this_machine_agree)
{
	struct clock_reading before = {os_now_ns(), os_wall_ns(), os_asleep_ns()}, now;
	char text[300];

	os_sleep_ns(20 * NS_PER_MS);
	now = (struct clock_reading){os_now_ns(), os_wall_ns(), os_asleep_ns()};
	assert_false(clock_changed(&before, &now, text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_that_agree_say_nothing),
		cmocka_unit_test(a_step_is_told_with_its_direction),
		cmocka_unit_test(sleep_is_no_step),
		cmocka_unit_test(the_first_look_has_nothing_to_compare_with),
		cmocka_unit_test(the_clocks_of_this_machine_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
