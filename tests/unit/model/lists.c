#include "model/lists.h"

#include "base/array.h"
#include "tests/support/test.h"

enum { NUMBERS = 100000, LISTS = 3 };

/* Of 0, 1, 2, ...: every tenth number is in list 2, every other one in list 0; 5 is in none. */
static uint32_t list_of(const void *ctx, uint32_t number)
{
	(void)ctx;
	return number == 5 ? LISTS_NONE : number % 10 ? 0 : 2;
}

TEST(a_list_has_its_numbers_in_ascending_order)
{
	static const uint32_t expected[] = {1, 2, 3, 4, 6, 7, 8, 9, 11};
	struct lists l = {0};
	struct list list;
	uint32_t number, i, n;

	assert_int_equal(lists_make(&l, LISTS, NUMBERS, list_of, NULL), 0);
	list = lists_get(&l, 0);
	for (i = 0; i < COUNT_OF(expected); i++) {
		assert_true(list_next(&list, &number));
		assert_int_equal(number, expected[i]);
	}
	list = lists_get(&l, 2);
	for (n = 0; list_next(&list, &number); n++)
		assert_int_equal(number, n * 10);
	assert_int_equal(n, NUMBERS / 10);
	lists_free(&l);
}

TEST(a_list_without_numbers_is_empty)
{
	struct lists l = {0};
	struct list list;
	uint32_t number;

	assert_int_equal(lists_make(&l, LISTS, NUMBERS, list_of, NULL), 0);
	list = lists_get(&l, 1);
	assert_true(list_is_empty(&list));
	assert_true(!list_next(&list, &number));
	list = lists_get(&l, 2);
	assert_true(!list_is_empty(&list));
	lists_free(&l);
	assert_int_equal(lists_make(&l, 0, 0, list_of, NULL), 0);
	lists_free(&l);
}

TEST(numbers_close_to_each_other_take_a_byte_each)
{
	struct lists l = {0};

	assert_int_equal(lists_make(&l, LISTS, NUMBERS, list_of, NULL), 0);
	assert_int_equal(l.first[LISTS], NUMBERS - 1);
	lists_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_has_its_numbers_in_ascending_order),
		cmocka_unit_test(a_list_without_numbers_is_empty),
		cmocka_unit_test(numbers_close_to_each_other_take_a_byte_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
