/* Did you mean: what is near, and what is not. */
#include "base/nearest.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void distance_counts_letters_and_swaps(void **state)
{
	(void)state;
	assert_int_equal(nearest_distance("Memory", "memory"), 0);
	assert_int_equal(nearest_distance("Memroy", "Memory"), 1);   /* one swap */
	assert_int_equal(nearest_distance("kitten", "sitting"), 3);
	assert_int_equal(nearest_distance("", "ab"), 2);
	assert_int_equal(nearest_distance("pre-sec", "presec"), 0);
}

static void a_name_that_contains_the_other_is_near(void **state)
{
	(void)state;
	assert_int_equal(nearest_distance("Processor Time", "% Processor Time"), 2);
	assert_int_equal(nearest_distance("buffer", "buffer-mb"), 1);
}

static void names_that_are_too_long_are_never_near(void **state)
{
	char name[200];

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(nearest_distance(name, name), UINT_MAX);
}

static void the_three_best_are_printed_best_first(void **state)
{
	struct nearest near = {.wanted = "stpo"};
	struct buf out = {0};

	(void)state;
	nearest_offer(&near, "status");
	nearest_offer(&near, "step");        /* two letters */
	nearest_offer(&near, "stop");        /* one swap */
	nearest_offer(&near, "stop");
	nearest_offer(&near, "snapshot");
	nearest_put(&near, "'", "'", &out);
	assert_string_equal(buf_text(&out), "'stop' or 'step'");
	buf_free(&out);
}

static void nothing_near_prints_nothing(void **state)
{
	struct nearest near = {.wanted = "xyzzy"};
	struct buf out = {0};

	(void)state;
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
