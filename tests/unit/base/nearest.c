/* Did you mean: what is near, and what is not. */
#include "base/nearest.h"
#include "tests/support/test.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

TEST(distance_counts_letters_and_swaps)
{
	assert_int_equal(nearest_distance("Memory", "memory"), 0);
	assert_int_equal(nearest_distance("Memroy", "Memory"), 1);   /* one swap */
	assert_int_equal(nearest_distance("kitten", "sitting"), 3);
	assert_int_equal(nearest_distance("", "ab"), 2);
	assert_int_equal(nearest_distance("pre-sec", "presec"), 0);
}

TEST(a_name_that_contains_the_other_is_near)
{
	assert_int_equal(nearest_distance("Processor Time", "% Processor Time"), 2);
	assert_int_equal(nearest_distance("buffer", "buffer-mb"), 1);
}

TEST(names_that_are_too_long_are_never_near)
{
	char name[200];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(nearest_distance(name, name), UINT_MAX);
}

TEST(the_three_best_are_printed_best_first)
{
	struct nearest near = {.wanted = "stpo"};
	struct buf out = {0};

	nearest_offer(&near, "status");
	nearest_offer(&near, "step");        /* two letters */
	nearest_offer(&near, "stop");        /* one swap */
	nearest_offer(&near, "stop");
	nearest_offer(&near, "snapshot");
	nearest_put(&near, "'", "'", &out);
	assert_string_equal(buf_text(&out), "'stop' or 'step'");
	buf_free(&out);
}

TEST(nothing_near_prints_nothing)
{
	struct nearest near = {.wanted = "xyzzy"};
	struct buf out = {0};

	nearest_offer(&near, "status");
	nearest_put(&near, "", "", &out);
	assert_string_equal(buf_text(&out), "");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distance_counts_letters_and_swaps),
		cmocka_unit_test(a_name_that_contains_the_other_is_near),
		cmocka_unit_test(names_that_are_too_long_are_never_near),
		cmocka_unit_test(the_three_best_are_printed_best_first),
		cmocka_unit_test(nothing_near_prints_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
