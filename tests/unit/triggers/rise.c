/* A limit on the change of a value. Times are seconds. */
#include "base/os.h"
#include "tests/support/test.h"
#include "triggers/rise.h"

#include <stdio.h>
#include <string.h>

/* What is left of the head, or the error's sentence. */
static const char *left_of(const char *text, struct rise *r)
{
	static char out[600];
	struct err err = {0};
	struct spec s;

	spec_begin(&s, text, &err);
	if (rise_parse(r, &s))
		strcpy(out, err.text);
	else
		snprintf(out, sizeof(out), "%.*s", (int)s.head_len, text);
	return out;
}

static double change(struct rise *r, double sec, double value)
{
	return rise_change(r, value, (uint64_t)(sec * (double)NS_PER_SEC));
}

TEST(a_change_has_a_sign_and_a_time)
{
	struct rise r;

	assert_string_equal(left_of("a:b:c>+20% in 5m", &r), "a:b:c>+20");
	assert_true(r.percent && !r.falls && r.within_ns == 300 * NS_PER_SEC);
	assert_string_equal(left_of("a:b:c <= -512M in 30 s ;Floor=1", &r), "a:b:c <= -512M");
	assert_true(!r.percent && r.falls && r.within_ns == 30 * NS_PER_SEC);
	assert_string_equal(left_of("a:b in x:c>20", &r), "a:b in x:c>20");
	assert_true(r.within_ns == 0);
}

TEST(a_wrong_one_is_refused)
{
	struct rise r;

	assert_non_null(strstr(left_of("a:b:c>20 in 5m", &r), "'>+NUMBER' for a rise"));
	assert_non_null(strstr(left_of("a:b:c<+20 in 5m", &r), "'<-NUMBER' for a fall"));
	assert_non_null(strstr(left_of("a:b:c>+20 in 5 fortnights", &r), "stands a time"));
	assert_non_null(strstr(left_of("a:b:c>+20 in ", &r), "stands a time"));
	assert_non_null(strstr(left_of("a:b:c>+20 in 0", &r), "stands a time"));
	assert_non_null(strstr(left_of("a:b:c> in 5m", &r), "'>+NUMBER'"));
}

TEST(a_rise_is_counted_from_the_smallest_value_of_the_time)
{
	struct rise r;

	left_of("a:b:c>+5 in 60s", &r);
	assert_true(change(&r, 1000, 10) == 0);
	assert_true(change(&r, 1010, 4) == 0);
	assert_true(change(&r, 1020, 9) == 5);
	assert_true(change(&r, 1069, 12) == 8);
	/* The 4 is older than a minute now, the 9 is not. */
	assert_true(change(&r, 1071, 12) == 3);
	assert_true(change(&r, 2000, 50) == 0);
}

TEST(a_fall_is_counted_from_the_largest_in_percent)
{
	struct rise r;

	left_of("a:b:c<-20% in 1m", &r);
	assert_true(change(&r, 1000, 200) == 0);
	assert_true(change(&r, 1001, 150) == -25);
	assert_true(change(&r, 1002, 220) == 0);
	assert_true(change(&r, 1003, 110) == -50);
}

TEST(a_percentage_of_nothing_is_nothing)
{
	struct rise r;

	left_of("a:b:c>+20% in 1m", &r);
	assert_true(change(&r, 1000, 0) == 0);
	assert_true(change(&r, 1001, 7) == 0);
}

TEST(another_process_begins_anew)
{
	struct rise r;

	left_of("a:b:c>+5 in 60s", &r);
	assert_true(change(&r, 1000, 1) == 0);
	rise_forget(&r);
	assert_true(change(&r, 1001, 100) == 0);
}

TEST(time_that_steps_back_forgets_what_is_ahead)
{
	struct rise r;

	left_of("a:b:c>+5 in 60s", &r);
	assert_true(change(&r, 5000, 1) == 0);
	assert_true(change(&r, 1000, 100) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_has_a_sign_and_a_time),
		cmocka_unit_test(a_wrong_one_is_refused),
		cmocka_unit_test(a_rise_is_counted_from_the_smallest_value_of_the_time),
		cmocka_unit_test(a_fall_is_counted_from_the_largest_in_percent),
		cmocka_unit_test(a_percentage_of_nothing_is_nothing),
		cmocka_unit_test(another_process_begins_anew),
		cmocka_unit_test(time_that_steps_back_forgets_what_is_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
