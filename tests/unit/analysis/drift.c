#include "analysis/drift.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <string.h>

#define S(n) ((uint64_t)(n) * NS_PER_SEC)

/* A window of 100 s with so many samples of 10 ms of two programs. */
static void add_window(struct drift *d, unsigned nginx, unsigned cc1)
{
	static const char *const names[] = {"nginx", "cc1"};
	const unsigned counts[] = {nginx, cc1};
	struct incident in = {0};
	unsigned k, i;

	assert_int_equal(incident_init(&in), 0);
	in.head.t1_ns = S(100);
	in.cpu_period_ns = 10 * NS_PER_MS;
	for (k = 0; k < 2; k++) {
		struct incident_process p = {.pid = 10 + k, .name = names[k], .cmdline = ""};
		struct incident_thread t = {.tid = 10 + k, .name = ""};

		t.process = incident_add_process(&in, &p);
		t.process = incident_add_thread(&in, &t);
		for (i = 0; i < counts[k]; i++) {
			struct incident_sample s = {.time_ns = S(1) + i, .thread = t.process,
						    .weight = 10 * NS_PER_MS,
						    .stack = STACK_NONE};

			assert_int_equal(incident_add_sample(&in, &s), 0);
		}
	}
	assert_int_equal(drift_add(d, &in, 0, S(100), NULL), 0);
	incident_free(&in);
}

/* 5,000 samples of 10 ms in 100 s keep half a CPU busy. */
static void what_exceeds_the_spread_is_a_row(void **state)
{
	struct drift d = {0};

	(void)state;
	add_window(&d, 1000, 5000);
	add_window(&d, 900, 10);
	add_window(&d, 1100, 20);
	add_window(&d, 1000, 0);
	assert_int_equal(drift_finish(&d, NULL), 0);
	assert_int_equal(d.nrows, 1);
	assert_string_equal(d.rows[0].name, "cc1");
	assert_int_equal(d.rows[0].kind, DRIFT_PROGRAM);
	assert_true(d.rows[0].now > 0.499 && d.rows[0].now < 0.501);
	assert_true(d.rows[0].mean > 0.0009 && d.rows[0].mean < 0.0011);
	drift_free(&d);
}

/* Of a program that takes anything from nothing to a CPU, half a CPU says nothing. */
static void a_wide_spread_says_nothing(void **state)
{
	struct drift d = {0};

	(void)state;
	add_window(&d, 0, 5000);
	add_window(&d, 0, 10000);
	add_window(&d, 0, 0);
	add_window(&d, 0, 9000);
	assert_int_equal(drift_finish(&d, NULL), 0);
	assert_int_equal(d.nrows, 0);
	drift_free(&d);
}

static void what_grew_comes_first(void **state)
{
	struct drift d = {0};

	(void)state;
	add_window(&d, 500, 2000);
	add_window(&d, 9000, 10);
	add_window(&d, 9000, 10);
	assert_int_equal(drift_finish(&d, NULL), 0);
	assert_int_equal(d.nrows, 2);
	assert_string_equal(d.rows[0].name, "cc1");
	assert_string_equal(d.rows[1].name, "nginx");
	drift_free(&d);
}

/* The mean of two is judged, against their spread: one noisy incident of two is not a change. */
static void of_several_the_mean_is_judged(void **state)
{
	struct drift d = {.njudged = 2}, noisy = {.njudged = 2};

	(void)state;
	add_window(&d, 500, 5000);
	add_window(&d, 500, 5200);
	add_window(&d, 500, 100);
	add_window(&d, 500, 120);
	assert_int_equal(drift_finish(&d, NULL), 0);
	assert_int_equal(d.nrows, 1);
	assert_string_equal(d.rows[0].name, "cc1");
	assert_true(d.rows[0].now > 0.509 && d.rows[0].now < 0.511);
	assert_true(d.rows[0].now_sd > 0.013 && d.rows[0].now_sd < 0.015);
	drift_free(&d);

	add_window(&noisy, 500, 9000);
	add_window(&noisy, 500, 100);
	add_window(&noisy, 500, 100);
	add_window(&noisy, 500, 120);
	assert_int_equal(drift_finish(&noisy, NULL), 0);
	assert_int_equal(noisy.nrows, 0);
	drift_free(&noisy);
}

/* Busy for the last 25 s of 100, after a sample each 5 s; or all the time alike. */
static void since_when_is_where_it_began(void **state)
{
	const struct drift_row row = {.name = "nginx", .kind = DRIFT_PROGRAM, .now = 0.26};
	struct incident in = {0};
	struct incident_process p = {.pid = 10, .name = "nginx", .cmdline = ""};
	struct incident_thread t = {.tid = 10, .name = ""};
	struct incident_sample s = {.weight = 10 * NS_PER_MS, .stack = STACK_NONE};
	uint64_t since_ns;
	double cpus;

	(void)state;
	assert_int_equal(incident_init(&in), 0);
	in.cpu_period_ns = 10 * NS_PER_MS;
	t.process = incident_add_process(&in, &p);
	s.thread = incident_add_thread(&in, &t);
	for (s.time_ns = 0; s.time_ns < S(75); s.time_ns += S(5))
		assert_int_equal(incident_add_sample(&in, &s), 0);
	for (; s.time_ns < S(100); s.time_ns += 10 * NS_PER_MS)
		assert_int_equal(incident_add_sample(&in, &s), 0);
	assert_int_equal(drift_onset(&row, &in, 0, S(100), &since_ns, &cpus, NULL), 0);
	assert_int_equal(since_ns, S(75));
	assert_true(cpus > 0.99 && cpus < 1.01);
	assert_int_equal(drift_onset(&row, &in, S(80), S(100), &since_ns, &cpus, NULL), 0);
	assert_int_equal(since_ns, S(80));
	assert_true(cpus > 0.25 && cpus < 0.27);     /* the row's own */
	assert_int_equal(drift_onset(&row, &in, 0, S(70), &since_ns, &cpus, NULL), 0);
	assert_int_equal(since_ns, 0);
	incident_free(&in);
}

static void alone_there_is_nothing_to_judge(void **state)
{
	struct drift d = {0};

	(void)state;
	add_window(&d, 500, 2000);
	assert_int_equal(drift_finish(&d, NULL), 0);
	assert_int_equal(d.nrows, 0);
	drift_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_exceeds_the_spread_is_a_row),
		cmocka_unit_test(a_wide_spread_says_nothing),
		cmocka_unit_test(what_grew_comes_first),
		cmocka_unit_test(of_several_the_mean_is_judged),
		cmocka_unit_test(since_when_is_where_it_began),
		cmocka_unit_test(alone_there_is_nothing_to_judge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
