/* Namespaces whose file system does not answer: which are left out, and for how long. */
#include "source/host/ns_hung_linux.h"
#include "tests/support/test.h"

static const struct ns_group one = {.mounts = 1, .pids = 1, .some_pid = 10};
static const struct ns_group other = {.mounts = 2, .pids = 1, .some_pid = 20};

TEST(one_that_hangs_is_left_out_until_a_minute_after_it_answers)
{
	struct ns_hung h = {0};

	ns_hung_add(&h, &one);
	assert_true(ns_hung_has(&h, 1, 1, 1000 * NS_PER_SEC));
	assert_false(ns_hung_has(&h, 2, 1, 1000 * NS_PER_SEC));

	ns_hung_came_back(&h, &one, 1000 * NS_PER_SEC);
	assert_true(ns_hung_has(&h, 1, 1, 1060 * NS_PER_SEC - 1));
	assert_false(ns_hung_has(&h, 1, 1, 1060 * NS_PER_SEC));
}

TEST(one_that_answers_again_makes_room_when_all_places_are_taken)
{
	struct ns_hung h = {0};
	struct ns_group group = {0};
	uint32_t i;

	for (i = 0; i < NS_HUNG_MAX; i++) {
		group.mounts = 100 + i;
		ns_hung_add(&h, &group);
	}
	ns_hung_add(&h, &other);        /* no place: it will be looked at again, and told again */
	assert_false(ns_hung_has(&h, 2, 1, NS_PER_SEC));
	ns_hung_came_back(&h, &group, NS_PER_SEC);
	ns_hung_add(&h, &other);
	assert_true(ns_hung_has(&h, 2, 1, NS_PER_SEC));
	assert_false(ns_hung_has(&h, group.mounts, 0, NS_PER_SEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_hangs_is_left_out_until_a_minute_after_it_answers),
		cmocka_unit_test(one_that_answers_again_makes_room_when_all_places_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
