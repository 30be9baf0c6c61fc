/*
 * What --max-rss-mb is shared out to, and the steps that keep below it: a reading a second, no
 * clock.
 */
#include "model/memory_budget.h"
#include "tests/support/test.h"

#include <string.h>

#define SEC 1000000000ULL
#define MB (1ULL << 20)

static const struct memory_share wanted = {
	.ring_bytes = 64 * MB,
	.pinned_bytes = 64 * MB,
	.table_bytes = 256 * MB,
	.symbol_bytes = 64 * MB,
};

static struct memory_budget budget;
static uint64_t now_ns;

static void begin(uint64_t max_mb)
{
	struct memory_share share;

	assert_int_equal(memory_share(max_mb * MB, &wanted, &share, NULL), 0);
	memory_budget_init(&budget, max_mb * MB, &share);
	now_ns = SEC;
}

/* So many readings; the last move that was made. The caches hold what they may. */
static enum memory_move pass(unsigned seconds, uint64_t rss_mb, uint64_t ring_mb)
{
	enum memory_move move, last = MEMORY_STAYS;
	struct memory_share held;

	while (seconds--) {
		now_ns += SEC;
		held = budget.now;
		held.ring_bytes = ring_mb * MB;
		move = memory_budget_feed(&budget, now_ns, rss_mb * MB, &held);
		last = move == MEMORY_STAYS ? last : move;
	}
	return last;
}

TEST(without_a_limit_everything_is_as_it_was_asked_for)
{
	struct memory_share share;

	assert_int_equal(memory_share(0, &wanted, &share, NULL), 0);
	assert_memory_equal(&share, &wanted, sizeof(share));
	begin(0);
	assert_int_equal(pass(100, 10000, 64), MEMORY_STAYS);
}

/* 84 MB less 40 for the recorder, 4 for unwind tables and 8 for symbols: 32 to share. */
TEST(a_limit_makes_the_buffer_fit_below_it)
{
	struct memory_share share;

	assert_int_equal(memory_share(84 * MB, &wanted, &share, NULL), 0);
	assert_int_equal(share.ring_bytes, 20 * MB);
	assert_int_equal(share.pinned_bytes, 4 * MB);
	assert_int_equal(share.table_bytes, 36 * MB);
	assert_int_equal(share.symbol_bytes, 40 * MB);
}

TEST(a_large_limit_leaves_the_buffer_as_it_is)
{
	struct memory_share share;

	assert_int_equal(memory_share(1024 * MB, &wanted, &share, NULL), 0);
	assert_memory_equal(&share, &wanted, sizeof(share));
}

TEST(a_limit_that_cannot_be_kept_is_refused_with_what_could)
{
	struct memory_share share;
	struct err err = {0};

	assert_int_equal(memory_share(55 * MB, &wanted, &share, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "give it 56 or more"));
	assert_int_equal(memory_share(56 * MB, &wanted, &share, &err), 0);
}

/* The limit of 84 MB acts from 73.5 on; a step each two seconds, the heap first. */
TEST(caches_go_before_history_and_history_by_what_is_over)
{
	begin(84);
	assert_int_equal(pass(10, 73, 16), MEMORY_STAYS);
	assert_int_equal(pass(1, 80, 16), MEMORY_TRIM);
	assert_int_equal(pass(1, 80, 16), MEMORY_STAYS);
	assert_int_equal(pass(1, 80, 16), MEMORY_CACHES);
	assert_int_equal(budget.now.table_bytes, 18 * MB);
	assert_int_equal(budget.now.symbol_bytes, 20 * MB);
	assert_int_equal(pass(6, 80, 16), MEMORY_CACHES);
	assert_int_equal(budget.now.table_bytes, 4 * MB);
	assert_int_equal(budget.now.symbol_bytes, 8 * MB);
	assert_int_equal(pass(1, 80, 16), MEMORY_STAYS);
	assert_int_equal(pass(1, 80, 16), MEMORY_TRIM);      /* ten seconds after the first */
	assert_int_equal(pass(2, 80, 16), MEMORY_RING);
	assert_int_equal(budget.now.ring_bytes, 16 * MB - 5 * MB / 4);
}

/* 78.75 MB are 15/16. */
TEST(history_stays_where_caches_are_enough)
{
	begin(84);
	assert_int_equal(pass(60, 78, 16), MEMORY_CACHES);
	assert_int_equal(budget.now.table_bytes, 4 * MB);
	assert_int_equal(budget.now.ring_bytes, budget.asked.ring_bytes);
}

TEST(over_the_limit_no_step_waits_for_the_one_before)
{
	begin(84);
	assert_int_equal(pass(1, 85, 16), MEMORY_TRIM);
	assert_int_equal(pass(1, 85, 16), MEMORY_CACHES);
	assert_int_equal(budget.now.table_bytes, 18 * MB);
	assert_int_equal(pass(1, 85, 16), MEMORY_CACHES);
	assert_int_equal(budget.now.table_bytes, 9 * MB);
}

/* Of 36 and 40 MB that they may have: half of these would change nothing. */
TEST(caches_go_to_half_of_what_they_hold)
{
	const struct memory_share held = {
		.ring_bytes = 16 * MB, .table_bytes = 12 * MB, .symbol_bytes = 18 * MB
	};

	begin(84);
	memory_budget_feed(&budget, now_ns, 80 * MB, &held);
	assert_int_equal(memory_budget_feed(&budget, now_ns + 2 * SEC, 80 * MB, &held),
			 MEMORY_CACHES);
	assert_int_equal(budget.now.table_bytes, 6 * MB);
	assert_int_equal(budget.now.symbol_bytes, 9 * MB);
}

TEST(a_quarter_of_the_buffer_always_stays)
{
	begin(84);
	assert_int_equal(pass(60, 500, 16), MEMORY_TRIM);    /* nothing else is left by then */
	assert_int_equal(budget.now.ring_bytes, 5 * MB);
	assert_int_equal(budget.now.table_bytes, 4 * MB);
}

TEST(what_was_given_up_comes_back_by_eighths_after_calm_minutes)
{
	unsigned i;

	begin(84);
	pass(60, 500, 16);
	assert_int_equal(pass(59, 40, 5), MEMORY_STAYS);
	assert_int_equal(pass(2, 40, 5), MEMORY_UP);
	assert_int_equal(budget.now.ring_bytes, 5 * MB + 20 * MB / 8);
	assert_int_equal(pass(600, 66, 5), MEMORY_STAYS);    /* above 3/4 of it: not calm */
	for (i = 0; i < 20; i++)
		pass(61, 40, 5);
	assert_memory_equal(&budget.now, &budget.asked, sizeof(budget.now));
	assert_int_equal(pass(600, 40, 5), MEMORY_STAYS);
}

/*
 * Ten machines with more to hold than fits: what the ring gives up is no longer resident, so it
 * settles.
 */
TEST(it_settles_below_the_limit_where_the_ring_is_what_is_too_large)
{
	uint64_t base_mb;

	for (base_mb = 20; base_mb < 66; base_mb += 3) {
		uint64_t ring, rss = 0;
		unsigned i;

		begin(84);
		for (i = 0; i < 300; i++) {
			ring = budget.now.ring_bytes / MB;
			rss = base_mb + ring + budget.now.table_bytes / MB / 4;
			pass(1, rss, ring);
		}
		assert_true(rss <= 84);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_limit_everything_is_as_it_was_asked_for),
		cmocka_unit_test(a_limit_makes_the_buffer_fit_below_it),
		cmocka_unit_test(a_large_limit_leaves_the_buffer_as_it_is),
		cmocka_unit_test(a_limit_that_cannot_be_kept_is_refused_with_what_could),
		cmocka_unit_test(caches_go_before_history_and_history_by_what_is_over),
		cmocka_unit_test(history_stays_where_caches_are_enough),
		cmocka_unit_test(over_the_limit_no_step_waits_for_the_one_before),
		cmocka_unit_test(caches_go_to_half_of_what_they_hold),
		cmocka_unit_test(a_quarter_of_the_buffer_always_stays),
		cmocka_unit_test(what_was_given_up_comes_back_by_eighths_after_calm_minutes),
		cmocka_unit_test(it_settles_below_the_limit_where_the_ring_is_what_is_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
