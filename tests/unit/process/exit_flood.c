#include "source/process/exit_flood.h"
#include "base/os.h"
#include "tests/support/test.h"

TEST(one_parent_leaves_half_of_each_second_to_others)
{
	struct exit_flood f = {0};
	uint32_t i, taken = 0, of_other = 0;

	for (i = 0; i < 10000; i++)
		taken += exit_flood_takes(&f, 2, 77, 5 * NS_PER_SEC + i);
	assert_int_equal(taken, EXIT_FLOOD_PER_CPU);
	for (i = 0; i < 100; i++)
		of_other += exit_flood_takes(&f, 2, 78, 5 * NS_PER_SEC + i);
	assert_int_equal(of_other, 100);
	assert_true(exit_flood_takes(&f, 2, 77, 6 * NS_PER_SEC));
	assert_true(exit_flood_takes(&f, 2, 77, 6 * NS_PER_SEC - 1));
}

TEST(many_parents_share_what_one_second_has_room_for)
{
	struct exit_flood f = {0};
	uint32_t i, taken = 0;

	for (i = 0; i < 10000; i++)
		taken += exit_flood_takes(&f, 2, i, 5 * NS_PER_SEC + i);
	assert_int_equal(taken, 2 * EXIT_FLOOD_PER_CPU);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_parent_leaves_half_of_each_second_to_others),
		cmocka_unit_test(many_parents_share_what_one_second_has_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
