#include "base/err.h"
#include "base/table.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The contents behind value i are keys[i]. */
static bool same_key(const void *ctx, uint32_t value, const void *key)
{
	const uint64_t *keys = ctx;

	return keys[value] == *(const uint64_t *)key;
}

TEST(table_of_zeros_is_empty)
{
	struct table t = {0};
	uint64_t key = 1;

	assert_int_equal(table_find(&t, 1, same_key, NULL, &key), TABLE_NONE);
	assert_false(table_remove(&t, 1, 0));
	assert_int_equal(table_bytes(&t), 0);
	table_clear(&t);
	table_free(&t);
}

TEST(table_tells_things_of_one_hash_apart_by_their_contents)
{
	const uint64_t keys[] = {100, 200, 300};
	const uint64_t absent = 400;
	struct table t = {0};
	uint32_t i;

	for (i = 0; i < 3; i++)
		assert_int_equal(table_add(&t, 7, i), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(table_find(&t, 7, same_key, keys, &keys[i]), i);
	assert_int_equal(table_find(&t, 7, same_key, keys, &absent), TABLE_NONE);
	assert_true(table_remove(&t, 7, 1));
	assert_false(table_remove(&t, 7, 1));
	assert_int_equal(table_find(&t, 7, same_key, keys, &keys[0]), 0);
	assert_int_equal(table_find(&t, 7, same_key, keys, &keys[1]), TABLE_NONE);
	assert_int_equal(table_find(&t, 7, same_key, keys, &keys[2]), 2);
	table_free(&t);
}

/* Few different hashes near the end of the slots, so that runs collide and wrap around. */
static uint64_t model_hash(uint64_t key, bool crowded)
{
	return crowded ? key % 5 + 60 : hash_u64(key);
}

#define MODEL_KEYS 300

static void walk_model(uint32_t seed, bool crowded)
{
	uint64_t keys[MODEL_KEYS];
	bool there[MODEL_KEYS] = {false};
	struct table t = {0};
	uint32_t i, step, used = 0;

	for (i = 0; i < MODEL_KEYS; i++)
		keys[i] = hash_u64(i) | 1;
	for (step = 0; step < 20000; step++) {
		uint64_t hash;

		seed = seed * 1664525u + 1013904223u;
		i = (seed >> 8) % MODEL_KEYS;
		hash = model_hash(keys[i], crowded);
		assert_int_equal(table_find(&t, hash, same_key, keys, &keys[i]),
				 there[i] ? i : TABLE_NONE);
		if (there[i])
			assert_true(table_remove(&t, hash, i));
		else
			assert_int_equal(table_add(&t, hash, i), 0);
		there[i] = !there[i];
		used += there[i] ? 1 : UINT32_MAX;
		assert_int_equal(t.used, used);
	}
	for (i = 0; i < MODEL_KEYS; i++)
		assert_int_equal(table_find(&t, model_hash(keys[i], crowded), same_key, keys,
					    &keys[i]),
				 there[i] ? i : TABLE_NONE);
	table_free(&t);
}

TEST(table_agrees_with_a_plain_list_after_random_adds_and_removes)
{
	walk_model(1, false);
	walk_model(2, true);
}

/* 64 slots hold 44 (70 %); the 45th needs 128. */
TEST(table_grows_at_seventy_percent_and_clear_keeps_the_memory)
{
	struct table t = {0};
	uint32_t i;

	for (i = 0; i < 44; i++)
		assert_int_equal(table_add(&t, hash_u64(i), i), 0);
	assert_int_equal(t.nslots, 64);
	assert_int_equal(table_add(&t, hash_u64(i), i), 0);
	assert_int_equal(t.nslots, 128);
	table_clear(&t);
	assert_int_equal(t.used, 0);
	assert_int_equal(table_bytes(&t), 128 * 8);
	table_free(&t);
}

TEST(table_without_memory_to_grow_keeps_what_it_has)
{
	struct table t = {0};
	uint64_t keys[45];
	uint32_t i;

	alloc_walk_fail_at(1);
	assert_int_equal(table_add(&t, 1, 0), ERR_MEMORY);
	alloc_walk_fail_at(0);
	for (i = 0; i < 45; i++)
		keys[i] = i;
	for (i = 0; i < 44; i++)
		assert_int_equal(table_add(&t, hash_u64(i), i), 0);
	alloc_walk_fail_at(1);
	assert_int_equal(table_add(&t, hash_u64(44), 44), ERR_MEMORY);
	alloc_walk_fail_at(0);
	assert_int_equal(t.used, 44);
	for (i = 0; i < 44; i++)
		assert_int_equal(table_find(&t, hash_u64(i), same_key, keys, &keys[i]), i);
	table_free(&t);
}

TEST(hashes_see_every_byte_and_the_length)
{
	uint8_t bytes[24] = {0};
	uint64_t seen[24 + 24];
	size_t i, j, n = 0;

	for (i = 0; i < 24; i++)
		seen[n++] = hash_bytes(bytes, i);
	for (i = 0; i < 24; i++) {
		bytes[i] = 1;
		seen[n++] = hash_bytes(bytes, 24);
		bytes[i] = 0;
	}
	for (i = 0; i < n; i++) {
		for (j = 0; j < i; j++)
			assert_true(seen[i] != seen[j]);
	}
	assert_true(hash_pair(1, 2) != hash_pair(2, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_of_zeros_is_empty),
		cmocka_unit_test(table_tells_things_of_one_hash_apart_by_their_contents),
		cmocka_unit_test(table_agrees_with_a_plain_list_after_random_adds_and_removes),
		cmocka_unit_test(table_grows_at_seventy_percent_and_clear_keeps_the_memory),
		cmocka_unit_test(table_without_memory_to_grow_keeps_what_it_has),
		cmocka_unit_test(hashes_see_every_byte_and_the_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
