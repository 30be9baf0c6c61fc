#include "base/slots.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
	uint64_t a;
	char b[24];
};

TEST(slots_give_zeroed_items_whose_addresses_stay)
{
	static void *address[3000];
	struct slots s;
	uint32_t i;

	assert_int_equal(slots_init(&s, sizeof(struct item), 3000), 0);
	for (i = 0; i < 3000; i++) {
		struct item *item;

		assert_int_equal(slots_add(&s), i);
		item = address[i] = slots_get(&s, i);
		assert_true(item->a == 0 && item->b[23] == 0);
		item->a = i + 1;
		memset(item->b, 0xff, sizeof(item->b));
	}
	for (i = 0; i < 3000; i++) {
		assert_ptr_equal(slots_get(&s, i), address[i]);
		assert_true(((struct item *)address[i])->a == i + 1);
	}
	slots_free(&s);
}

TEST(slots_use_freed_numbers_again_before_new_ones)
{
	struct slots s;
	struct item *item;

	assert_int_equal(slots_init(&s, sizeof(struct item), 10), 0);
	assert_int_equal(slots_add(&s), 0);
	assert_int_equal(slots_add(&s), 1);
	assert_int_equal(slots_add(&s), 2);
	item = slots_get(&s, 1);
	item->a = UINT64_MAX;
	slots_free_one(&s, 1);
	slots_free_one(&s, 0);
	assert_int_equal(s.used, 1);
	assert_int_equal(slots_add(&s), 0);
	assert_int_equal(slots_add(&s), 1);
	assert_true(item->a == 0);
	assert_int_equal(slots_add(&s), 3);
	assert_int_equal(s.used, 4);
	slots_free(&s);
}

/* The ceiling of 1025 is rounded up to two chunks of 1024. */
TEST(slots_stop_at_their_ceiling)
{
	struct slots s;
	uint32_t i;

	assert_int_equal(slots_init(&s, sizeof(struct item), 1025), 0);
	for (i = 0; i < 2048; i++)
		assert_int_equal(slots_add(&s), i);
	assert_int_equal(slots_add(&s), SLOTS_NONE);
	assert_int_equal(s.used, 2048);
	assert_int_equal(slots_bytes(&s), 2048 * sizeof(struct item) + 2 * sizeof(void *));
	slots_free_one(&s, 7);
	assert_int_equal(slots_add(&s), 7);
	assert_int_equal(slots_add(&s), SLOTS_NONE);
	slots_free(&s);
}

TEST(slots_smaller_than_a_link_are_made_large_enough)
{
	struct slots s;

	assert_int_equal(slots_init(&s, 1, 4), 0);
	assert_int_equal(slots_add(&s), 0);
	assert_int_equal(slots_add(&s), 1);
	slots_free_one(&s, 0);
	assert_int_equal(*(char *)slots_get(&s, 1), 0);
	assert_int_equal(slots_add(&s), 0);
	slots_free(&s);
}

TEST(slots_without_memory_refuse_and_go_on_later)
{
	struct slots s;

	alloc_walk_fail_at(1);
	assert_true(slots_init(&s, 8, 10) != 0);
	slots_free(&s);
	alloc_walk_fail_at(0);
	assert_int_equal(slots_init(&s, 8, 10), 0);
	alloc_walk_fail_at(1);
	assert_int_equal(slots_add(&s), SLOTS_NONE);
	alloc_walk_fail_at(0);
	assert_int_equal(s.used, 0);
	assert_int_equal(slots_add(&s), 0);
	slots_free(&s);
}

/* No ceiling in chunks of 1024 is this high; it must not wrap around to none. */
TEST(slots_with_the_highest_ceiling_still_have_one)
{
	struct slots s;

	if (slots_init(&s, 8, UINT32_MAX) != 0) {
		slots_free(&s);
		print_message("no memory for four million chunks\n");
		skip();
	}
	assert_true(s.max >= UINT32_MAX - SLOTS_CHUNK);
	assert_int_equal(slots_add(&s), 0);
	slots_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_give_zeroed_items_whose_addresses_stay),
		cmocka_unit_test(slots_use_freed_numbers_again_before_new_ones),
		cmocka_unit_test(slots_stop_at_their_ceiling),
		cmocka_unit_test(slots_smaller_than_a_link_are_made_large_enough),
		cmocka_unit_test(slots_without_memory_refuse_and_go_on_later),
		cmocka_unit_test(slots_with_the_highest_ceiling_still_have_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
