/* How dense a full segment will be, from two that are not. */
#include "plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void segments_get_denser_by_a_power_of_their_size(void **state)
{
	(void)state;
	/* 20 bytes a sample at 100 and 10 at 1,600: half at 16 times, so 10 / sqrt(sqrt(2)) at 3,200. */
	assert_true(fabs(plan_segment_bytes(100, 2000, 1600, 16000, 1600) - 16000) < 0.01);
	assert_true(fabs(plan_segment_bytes(100, 2000, 1600, 16000, 3200) - 3200 * 8.4090) < 1);
	/* As measured: 19.4 at 200, 14.3 at 2,000; 12.3 at 8,192 are met within 5 %. */
	assert_in_range(plan_segment_bytes(200, 200 * 19.4, 2000, 2000 * 14.3, 8192) / 8192 * 100, 1168,
			1292);
}

static void what_cannot_be_is_not_extrapolated(void **state)
{
	(void)state;
	/* The larger one is less dense, the first is missing, or was the larger. */
	assert_true(fabs(plan_segment_bytes(100, 1000, 1000, 20000, 8000) - 160000) < 0.01);
	assert_true(fabs(plan_segment_bytes(0, 0, 1000, 10000, 8000) - 80000) < 0.01);
	assert_true(fabs(plan_segment_bytes(2000, 30000, 1000, 10000, 8000) - 80000) < 0.01);
	assert_true(fabs(plan_segment_bytes(0, 0, 0, 0, 8000) - 0) < 0.01);
	/* No more than by the power of 0.3: a burst at the start is no law. */
	assert_true(fabs(plan_segment_bytes(10, 10000, 1000, 10000, 2000) - 20000 * 0.81225) < 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_get_denser_by_a_power_of_their_size),
		cmocka_unit_test(what_cannot_be_is_not_extrapolated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
