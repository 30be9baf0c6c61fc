/* The recorder's own budget, on readings a second apart: percent of one CPU, and MB. */
#include "model/budget.h"
#include "tests/support/test.h"


#define SEC_NS 1000000000ULL
#define MB ((uint64_t)1 << 20)

static struct budget budget;
static uint64_t now_ns, cpu_ns;

static void begin(double max_cpu_pct, uint64_t max_mb, unsigned freq_hz, unsigned stack_kb,
		  bool allow_fp)
{
	struct budget_limits limits = {max_cpu_pct, max_mb * MB};

	budget_init(&budget, &limits, (struct budget_level){freq_hz, stack_kb}, allow_fp);
	now_ns = 100 * SEC_NS;
	cpu_ns = 0;
	assert_int_equal(budget_feed(&budget, now_ns, cpu_ns, 0), BUDGET_STAYS);
}

/* So many seconds of it; the last move that was made. */
static enum budget_move pass(unsigned seconds, double cpu_pct, uint64_t mb)
{
	enum budget_move last = BUDGET_STAYS, move;

	while (seconds--) {
		now_ns += SEC_NS;
		cpu_ns += (uint64_t)(cpu_pct * 1e7);
		move = budget_feed(&budget, now_ns, cpu_ns, mb * MB);
		last = move != BUDGET_STAYS ? move : last;
	}
	return last;
}

TEST(it_steps_down_after_five_seconds_over_the_limit)
{
	static const struct budget_level want[] = {{99, 32}, {49, 32}, {19, 32}, {19, 8}, {19, 0}};
	unsigned i;

	begin(1, 0, 99, 32, true);
	assert_int_equal(budget.nlevels, 5);
	for (i = 0; i < 4; i++) {
		assert_int_equal(budget.levels[budget.level].freq_hz, want[i].freq_hz);
		assert_int_equal(budget.levels[budget.level].stack_kb, want[i].stack_kb);
		assert_int_equal(pass(4, 1.5, 0), BUDGET_STAYS);
		assert_int_equal(pass(1, 1.5, 0), BUDGET_DOWN);
	}
	assert_int_equal(budget.levels[budget.level].stack_kb, 0);
	assert_false(budget_exhausted(&budget));
	assert_int_equal(pass(5, 1.5, 0), BUDGET_STAYS);
	assert_true(budget_exhausted(&budget));
}

TEST(frame_pointers_are_a_step_only_when_allowed)
{
	begin(1, 0, 99, 16, false);
	assert_int_equal(budget.nlevels, 4);
	assert_int_equal(budget.levels[3].stack_kb, 8);
	begin(1, 0, 49, 8, false);           /* nothing but 19 Hz is below it */
	assert_int_equal(budget.nlevels, 2);
	begin(1, 0, 10, 0, true);
	assert_int_equal(budget.nlevels, 1);
}

TEST(a_burst_costs_nothing_but_being_over_mostly_does)
{
	unsigned i;

	begin(1, 0, 99, 16, false);
	assert_int_equal(pass(4, 90, 0), BUDGET_STAYS);      /* the names of a large program */
	assert_int_equal(pass(10, 0.4, 0), BUDGET_STAYS);
	for (i = 0; i < 2; i++)              /* three seconds of four: two more each time */
		pass(3, 2, 0), pass(1, 0.4, 0);
	assert_int_equal(budget.level, 1);
}

TEST(it_climbs_back_after_a_minute_below_half)
{
	begin(1, 0, 99, 16, false);
	pass(10, 2, 0);
	assert_int_equal(budget.level, 2);
	assert_int_equal(pass(120, 0.8, 0), BUDGET_STAYS);   /* below it, but not below half */
	assert_int_equal(pass(60, 0.4, 0), BUDGET_STAYS);  /* the first of them begins the minute */
	assert_int_equal(pass(1, 0.4, 0), BUDGET_UP);
	assert_int_equal(pass(61, 0.4, 0), BUDGET_UP);
	assert_int_equal(budget.level, 0);
	assert_int_equal(pass(600, 0.4, 0), BUDGET_STAYS);
}

/* Nine seconds of ten below half, one above: 9 - 2 of every ten, so a minute of it takes 86 s. */
TEST(bursts_do_not_keep_it_down_for_good)
{
	unsigned tens;

	begin(1, 0, 99, 16, false);
	pass(5, 2, 0);
	for (tens = 0; tens < 8; tens++) {
		assert_int_equal(pass(9, 0.4, 0), BUDGET_STAYS);
		assert_int_equal(pass(1, 0.9, 0), BUDGET_STAYS);
	}
	assert_int_equal(pass(5, 0.4, 0), BUDGET_UP);
	/* Every second one: never. */
	pass(5, 2, 0);
	for (tens = 0; tens < 500; tens++) {
		assert_int_equal(pass(1, 0.4, 0), BUDGET_STAYS);
		assert_int_equal(pass(1, 0.9, 0), BUDGET_STAYS);
	}
}

TEST(a_climb_that_was_too_early_waits_longer_the_next_time)
{
	begin(1, 0, 99, 16, false);
	pass(5, 2, 0);
	assert_int_equal(pass(61, 0.4, 0), BUDGET_UP);
	assert_int_equal(pass(5, 2, 0), BUDGET_DOWN);
	assert_int_equal(pass(120, 0.4, 0), BUDGET_STAYS);
	assert_int_equal(pass(1, 0.4, 0), BUDGET_UP);
	pass(300, 0.9, 0);                   /* and this one was not */
	assert_int_equal(pass(5, 2, 0), BUDGET_DOWN);
	assert_int_equal(pass(61, 0.4, 0), BUDGET_UP);
}

TEST(memory_over_its_limit_is_a_step_too)
{
	begin(0, 100, 99, 16, false);
	assert_int_equal(pass(100, 50, 100), BUDGET_STAYS);  /* no limit of CPU time */
	assert_int_equal(pass(5, 50, 101), BUDGET_DOWN);
	assert_true(budget.over_rss);
	assert_false(budget.over_cpu);
	assert_int_equal(pass(61, 50, 99), BUDGET_UP);
}

TEST(without_limits_nothing_happens)
{
	begin(0, 0, 99, 16, true);
	assert_int_equal(pass(1000, 100, 10000), BUDGET_STAYS);
	assert_int_equal(budget.level, 0);
}

TEST(the_default_grows_with_the_machine_and_with_the_rate_asked_for)
{
	assert_float_equal(budget_default_cpu_pct(2, 99), 1, 1e-9);
	assert_float_equal(budget_default_cpu_pct(64, 99), 19.2, 1e-9);
	assert_float_equal(budget_default_cpu_pct(2, 19), 1, 1e-9);
	assert_float_equal(budget_default_cpu_pct(2, 990), 10, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_steps_down_after_five_seconds_over_the_limit),
		cmocka_unit_test(frame_pointers_are_a_step_only_when_allowed),
		cmocka_unit_test(a_burst_costs_nothing_but_being_over_mostly_does),
		cmocka_unit_test(it_climbs_back_after_a_minute_below_half),
		cmocka_unit_test(bursts_do_not_keep_it_down_for_good),
		cmocka_unit_test(a_climb_that_was_too_early_waits_longer_the_next_time),
		cmocka_unit_test(memory_over_its_limit_is_a_step_too),
		cmocka_unit_test(without_limits_nothing_happens),
		cmocka_unit_test(the_default_grows_with_the_machine_and_with_the_rate_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
