/* The numbers of the overweight report, as in PerfView's guide. */
#include "analysis/overweight.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

/* mingw's isnan() warns. */
static bool is_nan(double v)
{
	return v != v;
}

static const struct overweight_row *row_of(const struct overweight_row *rows, uint32_t n,
					   const char *name)
{
	uint32_t i;

	for (i = 0; i < n && strcmp(rows[i].name, name) != 0; i++)
		;
	assert_true(i < n);
	return &rows[i];
}

/*
 * The total grew by 10 %, so main's 100 should be 110: it is, 100 %. f's 50 should be 55 and is 60:
 * twice the growth. g stood still. x's 25 should be 27.5 and is 35: four times the growth.
 */
TEST(the_example_of_the_design_page)
{
	struct overweight_row rows[] = {
		{.name = "main", .base = 100, .test = 110}, {.name = "f", .base = 50, .test = 60},
		{.name = "g", .base = 50, .test = 50}, {.name = "x", .base = 25, .test = 35},
	};

	overweight(rows, 4, 100, 110);
	assert_true(fabs(row_of(rows, 4, "main")->overweight_pct - 100) < 1e-9);
	assert_true(fabs(row_of(rows, 4, "f")->overweight_pct - 200) < 1e-9);
	assert_true(fabs(row_of(rows, 4, "g")->overweight_pct) < 1e-9);
	assert_true(fabs(row_of(rows, 4, "x")->overweight_pct - 400) < 1e-9);
	assert_true(fabs(row_of(rows, 4, "f")->responsibility_pct - 100) < 1e-9);
	assert_true(row_of(rows, 4, "g")->minor);
	assert_false(row_of(rows, 4, "main")->minor);
}

/*
 * x and f: over 110 %, parts over 5 and 20 %, 32 and 55 % of the test: 5 points, x's overweight
 * first. main: a part over 5 and 20 %, but all of the test: 2. g is below them.
 */
TEST(the_most_telling_come_first)
{
	struct overweight_row rows[] = {
		{.name = "g", .base = 50, .test = 50}, {.name = "main", .base = 100, .test = 110},
		{.name = "f", .base = 50, .test = 60}, {.name = "x", .base = 25, .test = 35},
	};

	overweight(rows, 4, 100, 110);
	assert_string_equal(rows[0].name, "x");
	assert_string_equal(rows[1].name, "f");
	assert_int_equal(rows[0].interest, 5);
	assert_int_equal(rows[1].interest, 5);
	assert_int_equal(row_of(rows, 4, "main")->interest, 2);
	/* only for not being everybody's caller */
	assert_int_equal(row_of(rows, 4, "g")->interest, 2);
}

TEST(what_is_on_one_side_only_has_no_overweight_and_comes_last)
{
	struct overweight_row rows[] = {
		{.name = "gone", .base = 30, .test = 0}, {.name = "new", .base = 0, .test = 10},
		{.name = "newer", .base = 0, .test = 20}, {.name = "both", .base = 70, .test = 120},
	};

	overweight(rows, 4, 100, 150);
	assert_string_equal(rows[0].name, "both");
	assert_string_equal(rows[1].name, "newer");
	assert_string_equal(rows[2].name, "new");
	assert_string_equal(rows[3].name, "gone");
	assert_true(is_nan(rows[1].overweight_pct));
	assert_true(fabs(rows[1].responsibility_pct - 40) < 1e-9);
	assert_true(fabs(rows[3].responsibility_pct + 60) < 1e-9);
	assert_int_equal(rows[3].interest, 0);
}

TEST(without_a_change_in_all_nothing_is_responsible)
{
	struct overweight_row rows[] = {
		{.name = "a", .base = 60, .test = 50}, {.name = "b", .base = 40, .test = 50},
		{.name = "all", .base = 100, .test = 100},
	};

	overweight(rows, 3, 100, 100.001);
	assert_true(is_nan(rows[0].overweight_pct));
	assert_true(is_nan(rows[0].responsibility_pct));
	assert_string_equal(rows[0].name, "a");
	assert_string_equal(rows[1].name, "b");
	assert_true(rows[2].minor);
	assert_false(rows[0].minor);
}

TEST(an_empty_list_is_no_problem)
{
	overweight(NULL, 0, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_of_the_design_page),
		cmocka_unit_test(the_most_telling_come_first),
		cmocka_unit_test(what_is_on_one_side_only_has_no_overweight_and_comes_last),
		cmocka_unit_test(without_a_change_in_all_nothing_is_responsible),
		cmocka_unit_test(an_empty_list_is_no_problem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
