/* How long CPUs were busy, as the system says it: of this machine, whatever it does. */
#include "base/os.h"
#include "source/host/busy.h"
#include "tests/support/test.h"

#include <stdio.h>

struct sum {
	uint64_t ns;
	unsigned highest;
};

static void add(void *ctx, unsigned cpu, uint64_t busy_ns)
{
	struct sum *sum = ctx;

	sum->ns += busy_ns;
	sum->highest = cpu > sum->highest ? cpu : sum->highest;
}

static void burn_ns(uint64_t ns)
{
	uint64_t start = 0, now, rss;

	os_self_usage(&start, &rss);
	do
		os_self_usage(&now, &rss);
	while (now - start < ns);
}

/*
 * All that this process burnt, and no more than all CPUs had. Ticks of up to 16 ms may be missing
 * at the ends.
 */
TEST(what_is_burnt_is_busy_time)
{
	struct busy *b = busy_open();
	struct sum sum = {0};
	uint64_t start;

	assert_non_null(b);
	busy_read(b, add, &sum);
	assert_int_equal(sum.ns, 0);         /* the first says nothing */
	start = os_now_ns();
	burn_ns(300 * NS_PER_MS);
	busy_read(b, add, &sum);
	print_message("%.0f ms busy of %.0f\n", (double)sum.ns / 1e6,
		      (double)(os_now_ns() - start) / 1e6);
	assert_true(sum.ns >= 200 * NS_PER_MS);
	assert_true(sum.ns <= (os_now_ns() - start + 50 * NS_PER_MS) * (sum.highest + 1));
	busy_close(b);
	busy_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_burnt_is_busy_time)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
