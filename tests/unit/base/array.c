#include "base/array.h"
#include "base/err.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct list {
	uint64_t *items;
	uint32_t n, capacity;
};

static int put(struct list *l, uint64_t v)
{
	int rc = ARRAY_ROOM(l->items, l->capacity, l->n + 1);

	if (!rc)
		l->items[l->n++] = v;
	return rc;
}

TEST(an_array_keeps_its_items_as_it_grows)
{
	struct list l = {0};
	uint64_t i;

	for (i = 0; i < 1000; i++)
		assert_int_equal(put(&l, i * i), 0);
	assert_true(l.capacity >= 1000 && l.capacity < 2100);
	for (i = 0; i < 1000; i++)
		assert_true(l.items[i] == i * i);
	free(l.items);
}

TEST(an_array_has_room_for_many_items_at_once)
{
	struct list l = {0};

	assert_int_equal(ARRAY_ROOM(l.items, l.capacity, 12345), 0);
	assert_int_equal(l.capacity, 12345);
	l.items[12344] = 1;
	free(l.items);
}

TEST(an_array_that_cannot_be_that_long_is_left_as_it_was)
{
	volatile size_t too_many = (size_t)UINT32_MAX + 1;
	struct list l = {0};

	assert_int_equal(put(&l, 7), 0);
	assert_int_equal(ARRAY_ROOM(l.items, l.capacity, too_many), ERR_MEMORY);
	assert_int_equal(array_grow(&l.items, &l.capacity, 100, SIZE_MAX / 8), ERR_MEMORY);
	assert_true(l.n == 1 && l.items[0] == 7);
	free(l.items);
}

TEST(an_array_without_a_capacity_grows_by_its_count)
{
	uint16_t *items = NULL;
	uint32_t n;

	for (n = 0; n < 1000; n++) {
		assert_int_equal(ARRAY_NEXT(items, n), 0);
		items[n] = (uint16_t)n;
	}
	for (n = 0; n < 1000; n++)
		assert_int_equal(items[n], n);
	free(items);
}

static int fill(void *ctx)
{
	struct list l = {0};
	int rc = 0;

	(void)ctx;
	while (!rc && l.n < 100)
		rc = put(&l, l.n);
	free(l.items);
	return rc;
}

TEST(an_array_reports_lack_of_memory)
{
	assert_int_equal(alloc_walk(fill, NULL), 5);             /* room for 16, 32, 64, 128 */
}

TEST(items_of_a_fixed_array_are_counted)
{
	static const char *const names[] = {"a", "b", "c"};

	assert_int_equal(COUNT_OF(names), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_keeps_its_items_as_it_grows),
		cmocka_unit_test(an_array_has_room_for_many_items_at_once),
		cmocka_unit_test(an_array_that_cannot_be_that_long_is_left_as_it_was),
		cmocka_unit_test(an_array_without_a_capacity_grows_by_its_count),
		cmocka_unit_test(an_array_reports_lack_of_memory),
		cmocka_unit_test(items_of_a_fixed_array_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
