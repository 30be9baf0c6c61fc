#include "source/host/hung_devices.h"

#include "tests/support/test.h"

static struct hung_devices *hung;

static int open_hung(void **state)
{
	(void)state;
	hung = hung_devices_new();
	return hung ? 0 : -1;
}

static int drop_hung(void **state)
{
	(void)state;
	hung_devices_drop(hung);
	return 0;
}

TEST(a_device_is_told_once_and_left_alone_until_all_its_threads_are_back)
{
	assert_false(hung_devices_has(hung, 7));
	assert_true(hung_devices_add(hung, 7));
	assert_false(hung_devices_add(hung, 7));
	assert_true(hung_devices_has(hung, 7));
	assert_false(hung_devices_has(hung, 8));
	hung_devices_came_back(hung, 7);
	assert_true(hung_devices_has(hung, 7));
	hung_devices_came_back(hung, 7);
	assert_false(hung_devices_has(hung, 7));     /* it was only slow */
	assert_true(hung_devices_add(hung, 7));
}

TEST(a_device_beyond_the_last_place_is_told_and_not_kept)
{
	uint64_t dev;

	for (dev = 1; dev <= HUNG_DEVICES_MAX; dev++)
		assert_true(hung_devices_add(hung, dev));
	assert_true(hung_devices_add(hung, dev));
	assert_false(hung_devices_has(hung, dev));
	hung_devices_came_back(hung, dev);
	hung_devices_came_back(hung, 1);
	assert_true(hung_devices_add(hung, dev));
	assert_true(hung_devices_has(hung, dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_device_is_told_once_and_left_alone_until_all_its_threads_are_back,
			open_hung, drop_hung),
		cmocka_unit_test_setup_teardown(
			a_device_beyond_the_last_place_is_told_and_not_kept, open_hung, drop_hung),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
