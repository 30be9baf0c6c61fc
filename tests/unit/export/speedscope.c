/* speedscope's JSON. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(the_small_incident_is_as_in_the_files)
{
	struct export_options evented = export_defaults;

	evented.evented = true;
	assert_export_is("speedscope", NULL, "small.speedscope.json");
	assert_export_is("speedscope", &evented, "small-evented.speedscope.json");
}

/* A thread with a sample at each of these ms, 10 ms each. */
static void check(const unsigned *ms, unsigned n, const char *expected)
{
	struct incident_sample s = {.weight = 10000000, .quality = QUALITY_FP};
	struct buf text = {0};
	struct incident in;
	unsigned i;

	assert_int_equal(sample_incident(&in), 0);
	s.thread = sample_thread(&in, "p", 1, "t", 2);
	assert_int_equal(sample_stack(&in, "m!f", &s.stack), 0);
	for (i = 0; i < n; i++) {
		s.time_ns = in.head.t0_ns + ms[i] * 1000000ULL;
		assert_int_equal(incident_add_sample(&in, &s), 0);
	}
	assert_int_equal(export_text(&in, "speedscope", NULL, &text), 0);
	if (!strstr(text.data, expected))
		fail_msg("no %s in %s", expected, text.data);
	assert_int_equal(speedscope_total(text.data), n * 10000000ULL);
	buf_free(&text);
	incident_free(&in);
}

TEST(time_without_samples_is_an_empty_stack)
{
	static const unsigned close[] = {10, 20, 35}, apart[] = {10, 20, 60};

	check(close, 3, "\"startValue\":0,\"samples\":[[0]],\"weights\":[30000000],"
			"\"endValue\":30000000");
	check(apart, 3, "\"startValue\":0,\"samples\":[[0],[],[0]],"
			"\"weights\":[20000000,30000000,10000000],\"endValue\":60000000");
}

TEST(more_threads_than_a_menu_holds_become_one_profile)
{
	struct buf text = {0};
	struct incident in;
	uint32_t stack, i, profiles = 0;
	const char *at;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_stack(&in, "m!f", &stack), 0);
	for (i = 0; i < 300; i++)
		assert_int_equal(sample_add(&in, sample_thread(&in, "p", 1, "t", i + 1), stack,
					    QUALITY_FP, 1), 0);
	assert_int_equal(export_text(&in, "speedscope", NULL, &text), 0);
	for (at = text.data; (at = strstr(at, "\"type\":\"sampled\"")) != NULL; at++)
		profiles++;
	assert_int_equal(profiles, 257);
	assert_non_null(strstr(text.data, "\"name\":\"other threads\""));
	assert_int_equal(speedscope_total(text.data), 300 * 10000000ULL);
	buf_free(&text);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_is_as_in_the_files),
		cmocka_unit_test(time_without_samples_is_an_empty_stack),
		cmocka_unit_test(more_threads_than_a_menu_holds_become_one_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
