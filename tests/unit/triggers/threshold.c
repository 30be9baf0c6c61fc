/* Specs, limits that decay, and "true for this long". */
#include "base/array.h"
#include "tests/support/test.h"
#include "triggers/spec.h"
#include "triggers/threshold.h"

#include <math.h>
#include <string.h>

#define SEC 1000000000ULL
#define HOUR (3600 * SEC)

struct written {
	const char *text, *left;
	enum compare compare;
	double limit;
};

TEST(spec_gives_its_left_part_operator_and_number)
{
	static const struct written specs[] = {
		{ "a:b:c>80", "a:b:c", COMPARE_OVER, 80 },
		{ "a:b:c<80", "a:b:c", COMPARE_UNDER, 80 },
		{ "a:b:c>=80", "a:b:c", COMPARE_OVER_EQUAL, 80 },
		{ "a:b:c<=80", "a:b:c", COMPARE_UNDER_EQUAL, 80 },
		{ " \ta:b:c  >  80 \t", "a:b:c", COMPARE_OVER, 80 },
		{ "a:b b :c c>8", "a:b b :c c", COMPARE_OVER, 8 },
		{ "a:b:<x> y>8", "a:b:<x> y", COMPARE_OVER, 8 },
		{ "a:b:>0.5", "a:b:", COMPARE_OVER, 0.5 },
		{ "a:b:>.5", "a:b:", COMPARE_OVER, 0.5 },
		{ "a:b:>5.", "a:b:", COMPARE_OVER, 5 },
		{ "a:b:>-5", "a:b:", COMPARE_OVER, -5 },
		{ "a:b:>+5", "a:b:", COMPARE_OVER, 5 },
		{ "a:b:>1e3", "a:b:", COMPARE_OVER, 1000 },
		{ "a:b:>2.5E-1", "a:b:", COMPARE_OVER, 0.25 },
		{ "a:b:>512K", "a:b:", COMPARE_OVER, 512 * 1024.0 },
		{ "a:b:>1.5m", "a:b:", COMPARE_OVER, 1.5 * 1048576 },
		{ "a:b:>4G", "a:b:", COMPARE_OVER, 4294967296.0 },
	};
	const char *left;
	size_t i, len;

	for (i = 0; i < COUNT_OF(specs); i++) {
		struct err err = {0};
		struct threshold t;
		struct spec spec;

		spec_begin(&spec, specs[i].text, &err);
		if (threshold_parse(&spec, &t, &left, &len))
			fail_msg("'%s': %s", specs[i].text, err.text);
		assert_int_equal(len, strlen(specs[i].left));
		assert_memory_equal(left, specs[i].left, len);
		assert_int_equal(t.compare, specs[i].compare);
		assert_true(t.limit == specs[i].limit);
	}
}

TEST(bad_spec_error_names_the_part_and_what_is_allowed)
{
	static const struct { const char *text, *says; } specs[] = {
		{ "a:b:c", "no operator" },
		{ "", "no operator" },
		{ "a:b:c=80", "no operator" },
		{ "a:b:c>", "no number after the operator" },
		{ "a:b:c>  ", "no number after the operator" },
		{ "a:b:c>x", "'x' is not a number" },
		{ "a:b:c>80%", "'80%' is not a number" },
		{ "a:b:c>80 0", "'80 0' is not a number" },
		{ "a:b:c>0x10", "'0x10' is not a number" },
		{ "a:b:c>inf", "'inf' is not a number" },
		{ "a:b:c>nan", "'nan' is not a number" },
		{ "a:b:c>1e", "'1e' is not a number" },
		{ "a:b:c>.", "'.' is not a number" },
		{ "a:b:c>5MB", "'5MB' is not a number" },
		{ "a:b:c>5T", "'5T' is not a number" },
		{ "a:b:c>1,5", "'1,5' is not a number" },
		{ "a:b:c>1e999", "'1e999' is too large" },
		{ "a:b:c>>80", "'>>' is not an operator" },
		{ "a:b:c=>80", "'=>' is not an operator" },
		{ "a:b:c>==80", "'>==' is not an operator" },
		{ "a:b:c!>80", "'!>' is not an operator" },
		{ "a:b:c<>80", "'<>' is not an operator" },
	};
	const char *left;
	size_t i, len;

	for (i = 0; i < COUNT_OF(specs); i++) {
		struct err err = {0};
		struct threshold t;
		struct spec spec;

		spec_begin(&spec, specs[i].text, &err);
		assert_int_equal(threshold_parse(&spec, &t, &left, &len), ERR_USAGE);
		if (!strstr(err.text, specs[i].says))
			fail_msg("'%s': %s", specs[i].text, err.text);
	}
}

TEST(equal_counts_only_with_the_equal_sign)
{
	struct threshold t = { .limit = 80 };

	t.compare = COMPARE_OVER;
	assert_false(threshold_hit(&t, 80));
	assert_true(threshold_hit(&t, 80.0001));
	t.compare = COMPARE_OVER_EQUAL;
	assert_true(threshold_hit(&t, 80));
	assert_false(threshold_hit(&t, 79.9999));
	t.compare = COMPARE_UNDER;
	assert_false(threshold_hit(&t, 80));
	assert_true(threshold_hit(&t, 79.9999));
	t.compare = COMPARE_UNDER_EQUAL;
	assert_true(threshold_hit(&t, 80));
	assert_false(threshold_hit(&t, 80.0001));
}

TEST(limit_decays_on_a_straight_line_to_zero_and_stays)
{
	struct threshold t = { .compare = COMPARE_OVER, .limit = 80, .decay_hours = 2 };

	threshold_clock(&t, 5 * HOUR);
	assert_true(threshold_now(&t) == 80);           /* 0 % */
	threshold_clock(&t, 6 * HOUR);
	assert_true(threshold_now(&t) == 40);           /* 50 % */
	threshold_clock(&t, 7 * HOUR);
	assert_true(threshold_now(&t) == 0);            /* 100 % */
	threshold_clock(&t, 8 * HOUR);
	assert_true(threshold_now(&t) == 0);            /* 150 % */
	assert_false(threshold_hit(&t, 0));             /* still strict */
}

TEST(clock_that_runs_back_does_not_raise_the_limit)
{
	struct threshold t = { .compare = COMPARE_OVER, .limit = 80, .decay_hours = 2 };

	threshold_clock(&t, 5 * HOUR);
	threshold_clock(&t, 6 * HOUR);
	threshold_clock(&t, 1 * HOUR);
	assert_true(threshold_now(&t) == 40);
}

TEST(decay_is_refused_where_it_makes_no_sense)
{
	struct threshold under = { .compare = COMPARE_UNDER, .limit = 80, .decay_hours = 1 };
	struct threshold below_zero = { .compare = COMPARE_OVER, .limit = -1, .decay_hours = 1 };
	struct threshold bad_hours = { .compare = COMPARE_OVER, .limit = 1, .decay_hours = -1 };
	struct threshold good = { .compare = COMPARE_OVER_EQUAL, .limit = 1, .decay_hours = 0.5 };
	struct spec spec;
	struct err err;

	spec_begin(&spec, "x<80", &err);
	assert_int_equal(threshold_check(&under, &spec), ERR_USAGE);
	assert_non_null(strstr(err.text, "add ;Ceiling=NUMBER"));
	assert_int_equal(threshold_check(&below_zero, &spec), ERR_USAGE);
	assert_int_equal(threshold_check(&bad_hours, &spec), ERR_USAGE);
	assert_int_equal(threshold_check(&good, &spec), 0);
	under.decay_hours = 0;
	assert_int_equal(threshold_check(&under, &spec), 0);
}

/* A limit with keys, as a rule on a counter reads them. */
static struct threshold limit_of(enum compare compare, double limit, const char *keys)
{
	struct threshold t;
	struct spec spec;
	struct err err = {0};
	int rc;

	threshold_init(&t, compare, limit);
	spec_begin(&spec, keys, &err);
	rc = spec_keys(&spec, threshold_key, &t, THRESHOLD_KEYS);
	if (!rc)
		rc = threshold_check(&t, &spec);
	if (rc)
		fail_msg("%s: %s", keys, err.text);
	threshold_clock(&t, 0);
	return t;
}

static double at_hour(struct threshold t, double hour)
{
	threshold_clock(&t, (uint64_t)(hour * (double)HOUR));
	return threshold_now(&t);
}

TEST(limit_moves_to_its_end_and_not_further)
{
	struct threshold floor = limit_of(COMPARE_OVER, 80, ";DecayToZeroHours=2;Floor=20");
	struct threshold curve =
		limit_of(COMPARE_OVER, 80, ";DecayToZeroHours=2;Curve=exponential");
	struct threshold rising = limit_of(COMPARE_UNDER, 100, ";DecayToZeroHours=2;Ceiling=300");

	assert_true(at_hour(floor, 1) == 40);
	assert_true(at_hour(floor, 1.5) == 20);
	assert_true(at_hour(floor, 3) == 20);
	assert_true(at_hour(curve, 0) == 80);
	assert_true(fabs(at_hour(curve, 1) - 8) < 1e-9);        /* a tenth at half the time */
	assert_true(fabs(at_hour(curve, 2) - 0.8) < 1e-9);      /* a hundredth at its end */
	assert_true(at_hour(curve, 2000) >= 0);
	assert_true(at_hour(rising, 0) == 100);
	assert_true(at_hour(rising, 1) == 200);
	assert_true(at_hour(rising, 2) == 300);
	assert_true(at_hour(rising, 3) == 300);
}

TEST(steered_limit_goes_up_by_firing_and_down_by_time)
{
	struct threshold t = limit_of(COMPARE_OVER, 100, ";PerDay=4;Floor=10;Ceiling=1000");
	struct threshold small = limit_of(COMPARE_UNDER, 100, ";PerDay=4");
	int i;

	/* The factor is 2^(1/2); four of it a day are 4. */
	assert_true(fabs(at_hour(t, 24) - 25) < 1e-9);
	assert_true(at_hour(t, 24 * 1000) == 10);               /* its floor */
	assert_true(fabs(at_hour(small, 24) - 400) < 1e-9);
	threshold_fired(&t, 0, 0);
	threshold_fired(&t, 0, 0);
	assert_true(fabs(threshold_now(&t) - 200) < 1e-9);
	for (i = 0; i < 1000; i++)
		threshold_fired(&t, 0, 0);
	assert_true(threshold_now(&t) == 1000);                 /* its ceiling */
	/* It did not run on behind it: a day later it is on its way down. */
	assert_true(fabs(at_hour(t, 24) - 1000 * sqrt(2) / 4) < 1e-6);
	threshold_fired(&small, 0, 0);
	assert_true(fabs(threshold_now(&small) - 100 / sqrt(2)) < 1e-9);
}

TEST(state_survives_a_restart)
{
	struct threshold t = limit_of(COMPARE_OVER, 80, ";DecayToZeroHours=4");
	struct threshold again = limit_of(COMPARE_OVER, 80, ";DecayToZeroHours=4");
	struct threshold steered = limit_of(COMPARE_OVER, 80, ";PerDay=1");
	struct threshold steered2 = limit_of(COMPARE_OVER, 80, ";PerDay=1");
	struct buf kept = {0};

	threshold_clock(&t, HOUR);
	threshold_save(&t, &kept);
	assert_true(kept.len <= 80);
	assert_int_equal(threshold_load(&again, kept.data, kept.len, HOUR, NULL), 0);
	assert_true(threshold_now(&again) == 40);               /* an hour of work, an hour away */
	assert_true(at_hour(again, 1) == 20);
	assert_int_equal(threshold_load(&again, "nonsense", 8, 0, NULL), ERR_FORMAT);
	assert_int_equal(threshold_load(&again, kept.data, kept.len - 1, 0, NULL), ERR_FORMAT);
	buf_reset(&kept);
	threshold_fired(&steered, 0, 0);
	threshold_save(&steered, &kept);
	assert_int_equal(threshold_load(&steered2, kept.data, kept.len, 0, NULL), 0);
	assert_true(threshold_now(&steered2) == 160);
	buf_free(&kept);
}

TEST(high_water_wants_a_worse_value_until_its_hours_have_passed)
{
	struct threshold t = limit_of(COMPARE_OVER, 80, ";HighWaterHours=4");
	struct threshold after = limit_of(COMPARE_OVER, 80, ";HighWaterHours=4");
	struct threshold small = limit_of(COMPARE_UNDER, 80, ";HighWaterHours=4");
	struct buf out = {0};

	threshold_clock(&t, 0);
	assert_true(threshold_now(&t) == 80);
	threshold_fired(&t, 90, HOUR);
	threshold_follow(&t, 100);
	threshold_follow(&t, 95);
	assert_true(threshold_now(&t) == 100 && !threshold_hit(&t, 100));
	threshold_text(&t, &out);
	assert_string_equal(buf_text(&out), "100 (its worst value in the last alarm; 80 at the "
			    "start)");
	threshold_clock(&t, 4 * HOUR);
	assert_true(threshold_now(&t) == 100);

	buf_reset(&out);
	threshold_save(&t, &out);                       /* 3 h after the mark */
	assert_int_equal(threshold_load(&after, out.data, out.len, HOUR / 2, NULL), 0);
	assert_true(threshold_now(&after) == 100);
	assert_int_equal(threshold_load(&after, out.data, out.len, HOUR, NULL), 0);
	assert_true(threshold_now(&after) == 80);
	threshold_clock(&t, 5 * HOUR);
	assert_true(threshold_now(&t) == 80);
	/* What an earlier program saved. */
	assert_int_equal(threshold_load(&after, "limit1 5 0", 10, 0, NULL), 0);
	assert_true(threshold_now(&after) == 80);
	assert_true(threshold_load(&after, "limit2 5 0", 10, 0, NULL) != 0);

	threshold_fired(&small, 60, HOUR);
	assert_true(threshold_now(&small) == 60);
	threshold_clock(&small, 5 * HOUR);
	assert_true(threshold_now(&small) == 80);
	buf_free(&out);
}

TEST(keys_that_make_no_sense_are_refused)
{
	static const struct { enum compare compare; const char *keys, *says; } bad[] = {
		{ COMPARE_OVER, ";Floor=90", "Floor is above the limit" },
		{ COMPARE_OVER, ";Ceiling=70", "Ceiling is below the limit" },
		{ COMPARE_OVER, ";PerDay=3;DecayToZeroHours=5", "give one of them" },
		{ COMPARE_OVER, ";PerDay=3;HighWaterHours=5", "give one of them" },
		{ COMPARE_OVER, ";HighWaterHours=-1", "HighWaterHours is a number" },
		{ COMPARE_OVER, ";PerDay=-3", "PerDay is a number" },
		{ COMPARE_OVER, ";Curve=round", "Curve is linear or exponential" },
		{ COMPARE_OVER, ";Floor=x", "'x' is not a number" },
		{ COMPARE_UNDER, ";DecayToZeroHours=5", "add ;Ceiling=NUMBER" },
	};
	size_t i;

	for (i = 0; i < COUNT_OF(bad); i++) {
		struct threshold t;
		struct spec spec;
		struct err err = {0};
		int rc;

		threshold_init(&t, bad[i].compare, 80);
		spec_begin(&spec, bad[i].keys, &err);
		rc = spec_keys(&spec, threshold_key, &t, THRESHOLD_KEYS);
		if (!rc)
			rc = threshold_check(&t, &spec);
		assert_int_equal(rc, ERR_USAGE);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: %s", bad[i].keys, err.text);
	}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/*
 * A value every 10 s for seven days, mostly small and seldom large (1 / a uniform number), against
 * limits that are a hundred times too low, about right, and a hundred times too high. The ticks of
 * the engine come between. From the third day on it is about K a day whatever the start was.
 */
TEST(seven_days_of_steering_give_k_a_day)
{
	static const double starts[] = {20, 2000, 200000};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct threshold t = limit_of(COMPARE_OVER, starts[i], ";PerDay=6");
		uint64_t ns, tick_ns = 100000000;
		uint32_t seed = 1, fired = 0;

		for (ns = 0; ns < 7 * 24 * HOUR; ns += tick_ns) {
			threshold_clock(&t, ns);
			if (ns % (100 * tick_ns) ||
			    !threshold_hit(&t, 16777216.0 / (1 + next_random(&seed))))
				continue;
			threshold_fired(&t, 0, ns);
			fired += ns >= 2 * 24 * HOUR;
		}
		print_message("  from %.0f: %u in five days, limit now %.0f\n", starts[i], fired,
			      threshold_now(&t));
		assert_in_range(fired, 20, 40);
	}
}

TEST(number_of_samples_follows_from_time_and_period)
{
	static const struct { double min_sec, period_sec; uint32_t need; } table[] = {
		{ 3, 1, 4 },       /* as the reference */
		{ 0, 1, 1 },       /* the first hit */
		{ 2.5, 1, 4 },     /* 3 intervals span 2.5 s, 2 do not */
		{ 0.3, 0.1, 4 },   /* 0.3 / 0.1 is not exactly 3 */
		{ 3, 0.5, 7 },
		{ 1, 5, 2 },
	};
	size_t i;

	for (i = 0; i < COUNT_OF(table); i++) {
		struct hold h;

		hold_init(&h, table[i].min_sec, table[i].period_sec);
		assert_int_equal(h.need, table[i].need);
	}
}

TEST(more_frequent_samples_do_not_shorten_the_time)
{
	struct hold h;
	uint64_t i;

	/* Another rule polls the same counter ten times a second. */
	hold_init(&h, 3, 1);
	for (i = 0; i < 25; i++)
		assert_false(hold_add(&h, 100 * SEC + i * (SEC / 10)));
	assert_true(hold_add(&h, 100 * SEC + 25 * SEC / 10));
}

TEST(clock_jump_does_not_fulfil_a_hold)
{
	struct hold h;

	hold_init(&h, 3, 1);
	assert_false(hold_add(&h, 1 * SEC));
	assert_false(hold_add(&h, 3600 * SEC));
	assert_false(hold_add(&h, 3601 * SEC));
	assert_true(hold_add(&h, 3602 * SEC));
	/* Back: the row begins again. */
	assert_false(hold_add(&h, 0));
	assert_int_equal(hold_progress(&h), 1);
}

TEST(numbers_print_as_a_person_writes_them)
{
	static const struct { double v; const char *text;
	} table[] = {
		{80, "80"},	      {0, "0"},
		{-0.0, "0"},	      {93.4123, "93.41"},
		{0.00012, "0.00012"}, {4294967296.0, "4294967296"},
		{1234.56, "1235"},    {-7, "-7"},
		{1e18, "1e+18"},
	};
	char text[NUMBER_TEXT_BYTES];
	size_t i;

	for (i = 0; i < COUNT_OF(table); i++) {
		number_text(table[i].v, text);
		assert_string_equal(text, table[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spec_gives_its_left_part_operator_and_number),
		cmocka_unit_test(bad_spec_error_names_the_part_and_what_is_allowed),
		cmocka_unit_test(equal_counts_only_with_the_equal_sign),
		cmocka_unit_test(limit_decays_on_a_straight_line_to_zero_and_stays),
		cmocka_unit_test(clock_that_runs_back_does_not_raise_the_limit),
		cmocka_unit_test(decay_is_refused_where_it_makes_no_sense),
		cmocka_unit_test(limit_moves_to_its_end_and_not_further),
		cmocka_unit_test(steered_limit_goes_up_by_firing_and_down_by_time),
		cmocka_unit_test(state_survives_a_restart),
		cmocka_unit_test(keys_that_make_no_sense_are_refused),
		cmocka_unit_test(high_water_wants_a_worse_value_until_its_hours_have_passed),
		cmocka_unit_test(seven_days_of_steering_give_k_a_day),
		cmocka_unit_test(number_of_samples_follows_from_time_and_period),
		cmocka_unit_test(more_frequent_samples_do_not_shorten_the_time),
		cmocka_unit_test(clock_jump_does_not_fulfil_a_hold),
		cmocka_unit_test(numbers_print_as_a_person_writes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
