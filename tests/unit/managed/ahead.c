/* Reading ahead: what it serves, and that it never says anything else than the target. */
#include "managed/ahead.h"

#include "tests/support/test.h"

/* A target whose byte at address A is A, up to its end; how often it was called. */
struct target {
	uint64_t end;
	unsigned nreads, ngoes;
};

static size_t read_target(void *ctx, uint64_t address, void *to, size_t n)
{
	struct target *t = ctx;
	size_t i;

	t->nreads++;
	for (i = 0; i < n && address + i < t->end; i++)
		((uint8_t *)to)[i] = (uint8_t)(address + i);
	return i;
}

static void read_pieces(void *ctx, struct managed_piece *pieces, size_t n)
{
	struct target *t = ctx;
	size_t i;

	for (i = 0; i < n; i++)
		pieces[i].got = read_target(ctx, pieces[i].address, pieces[i].to, pieces[i].n);
	t->nreads = 0;
	t->ngoes++;
}

static uint64_t read_byte(struct managed_ahead *a, uint64_t address)
{
	uint8_t byte = 0;

	assert_int_equal(a->memory.read(a->memory.ctx, address, &byte, 1), 1);
	return byte;
}

/* The bytes at 10 to 19 are read ahead. */
static void ask(struct managed_ahead *a, const struct managed_memory *m)
{
	uint64_t at;

	for (at = 10; at < 20; at++)
		managed_ahead_add(a, at, 1);
	managed_ahead_fetch(a, m);
}

static void places_in_order_cost_one_go(void **state)
{
	struct target t = {.end = 100};
	const struct managed_memory m = {
		.read = read_target, .read_pieces = read_pieces, .ctx = &t};
	struct managed_ahead a = {0};
	uint64_t at;

	(void)state;
	ask(&a, &m);
	for (at = 10; at < 20; at++)
		assert_int_equal(read_byte(&a, at), at);
	assert_int_equal(t.ngoes, 1);
	assert_int_equal(t.nreads, 0);
	managed_ahead_free(&a);
}

static void other_places_are_read_from_the_target(void **state)
{
	struct target t = {.end = 100};
	const struct managed_memory m = {
		.read = read_target, .read_pieces = read_pieces, .ctx = &t};
	struct managed_ahead a = {0};

	(void)state;
	ask(&a, &m);
	assert_int_equal(read_byte(&a, 50), 50);
	assert_int_equal(t.nreads, 1);
	assert_int_equal(read_byte(&a, 12), 12);     /* two are left out */
	assert_int_equal(t.nreads, 1);
	assert_int_equal(read_byte(&a, 12), 12);     /* a place is served once */
	assert_int_equal(t.nreads, 2);
	assert_int_equal(read_byte(&a, 11), 11);     /* back */
	assert_int_equal(t.nreads, 3);
	managed_ahead_free(&a);
}

static void a_short_read_stays_short(void **state)
{
	struct target t = {.end = 100};
	const struct managed_memory m = {
		.read = read_target, .read_pieces = read_pieces, .ctx = &t};
	struct managed_ahead a = {0};
	uint8_t bytes[8];

	(void)state;
	managed_ahead_add(&a, 96, 8);
	managed_ahead_add(&a, 200, 8);
	managed_ahead_fetch(&a, &m);
	assert_int_equal(a.memory.read(a.memory.ctx, 96, bytes, 8), 4);
	assert_int_equal(bytes[3], 99);
	assert_int_equal(a.memory.read(a.memory.ctx, 200, bytes, 8), 0);
	managed_ahead_free(&a);
}

static void without_such_a_way_each_read_is_one(void **state)
{
	struct target t = {.end = 100};
	const struct managed_memory m = {.read = read_target, .ctx = &t};
	struct managed_ahead a = {0};

	(void)state;
	ask(&a, &m);
	assert_int_equal(read_byte(&a, 10), 10);
	assert_int_equal(t.nreads, 1);
	managed_ahead_free(&a);
}

static void a_picture_serves_any_part_as_often_as_it_is_read(void **state)
{
	struct target t = {.end = 100};
	const struct managed_memory m = {
		.read = read_target, .read_pieces = read_pieces, .ctx = &t};
	struct managed_ahead a = {.keeps = true};
	uint8_t bytes[8];

	(void)state;
	managed_ahead_add(&a, 10, 8);
	managed_ahead_add(&a, 96, 8);                /* 4 of them are there */
	managed_ahead_fetch(&a, &m);
	assert_int_equal(read_byte(&a, 99), 99);
	assert_int_equal(read_byte(&a, 17), 17);
	assert_int_equal(read_byte(&a, 17), 17);
	assert_int_equal(read_byte(&a, 10), 10);
	assert_int_equal(t.nreads, 0);
	assert_int_equal(a.memory.read(a.memory.ctx, 96, bytes, 8), 4);
	assert_int_equal(a.memory.read(a.memory.ctx, 14, bytes, 8), 8);      /* not all of it is */
	assert_int_equal(bytes[7], 21);
	assert_int_equal(t.nreads, 2);
	assert_int_equal(read_byte(&a, 15), 15);
	assert_int_equal(read_byte(&a, 20), 20);     /* read with 14 */
	assert_int_equal(t.nreads, 2);
	managed_ahead_free(&a);
}

static void a_picture_of_a_picture_takes_its_places_from_the_target_in_one_go(void **state)
{
	struct target t = {.end = 100};
	const struct managed_memory m = {
		.read = read_target, .read_pieces = read_pieces, .ctx = &t};
	struct managed_ahead first = {.keeps = true}, second = {.keeps = true};
	uint8_t byte;

	(void)state;
	managed_ahead_add(&first, 10, 8);
	managed_ahead_fetch(&first, &m);
	managed_ahead_add(&second, 40, 8);
	managed_ahead_add(&second, 40, 8);           /* counts once */
	managed_ahead_fetch(&second, &first.memory);
	assert_int_equal(second.npieces, 1);
	assert_int_equal(t.ngoes, 2);
	assert_int_equal(read_byte(&second, 12), 12);
	assert_int_equal(read_byte(&second, 47), 47);
	assert_int_equal(t.nreads, 0);
	assert_int_equal(read_byte(&second, 60), 60);
	assert_int_equal(t.nreads, 1);
	assert_int_equal(first.memory.read(first.memory.ctx, 60, &byte, 1), 1);
	assert_int_equal(t.nreads, 1);
	managed_ahead_free(&second);
	managed_ahead_free(&first);
}

static void without_such_a_way_a_picture_of_a_picture_reads_one_by_one(void **state)
{
	struct target t = {.end = 100};
	const struct managed_memory m = {.read = read_target, .ctx = &t};
	struct managed_ahead first = {.keeps = true}, second = {.keeps = true};

	(void)state;
	managed_ahead_add(&first, 10, 8);
	managed_ahead_fetch(&first, &m);
	managed_ahead_fetch(&second, &first.memory);         /* nothing to read ahead */
	assert_int_equal(read_byte(&second, 12), 12);
	assert_int_equal(t.nreads, 1);
	managed_ahead_free(&second);
	managed_ahead_free(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_in_order_cost_one_go),
		cmocka_unit_test(other_places_are_read_from_the_target),
		cmocka_unit_test(a_short_read_stays_short),
		cmocka_unit_test(without_such_a_way_each_read_is_one),
		cmocka_unit_test(a_picture_serves_any_part_as_often_as_it_is_read),
		cmocka_unit_test(
			a_picture_of_a_picture_takes_its_places_from_the_target_in_one_go),
		cmocka_unit_test(
			without_such_a_way_a_picture_of_a_picture_reads_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
