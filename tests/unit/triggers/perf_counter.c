/*
 * The rule on a performance counter, fed with samples by hand: one character a sample.
 *
 * Limit 80, one sample a second, MinSec 3 = 4 samples, unless said otherwise:
 *	'#' 90 (true)   '.' 10 (false)   '=' 80 (equal)   '-' absent
 * The expected text has 'F' where it fires.
 */
#include "base/array.h"
#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"
#include "triggers/perf_counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "Processor:% Processor Time:_Total"

struct fixture {
	struct trigger *trigger;
	struct buf why;
	uint64_t time_ns;
};

static struct trigger_env usual(void)
{
	struct trigger_env env = { .min_sec = 3, .already_true_fires = true };

	return env;
}

static void start(struct fixture *f, const char *spec, const struct trigger_env *env)
{
	struct err err = {0};

	memset(f, 0, sizeof(*f));
	f->time_ns = 1000 * NS_PER_SEC;
	if (trigger_open(&perf_counter_trigger, spec, env, &f->trigger, &err))
		fail_msg("%s", err.text);
}

static void end(struct fixture *f)
{
	trigger_close(f->trigger);
	buf_free(&f->why);
}

static bool feed_event(struct fixture *f, const char *name, double value, uint32_t flags)
{
	struct event e = {
		.time_ns = f->time_ns,
		.kind = EVENT_COUNTER,
		.flags = flags,
		.name = name,
		.value = value,
	};

	buf_reset(&f->why);
	return perf_counter_trigger.feed(f->trigger, &e, &f->why);
}

/* One sample, and a second passes. */
static bool feed(struct fixture *f, char c)
{
	double value = c == '#' ? 90 : c == '=' ? 80 : 10;
	bool fires = feed_event(f, NAME, value, c == '-' ? EVENT_FLAG_ABSENT : 0);

	f->time_ns += NS_PER_SEC;
	return fires;
}

/* Feed the samples; after a firing the incident ends at once. */
static void expect(struct fixture *f, const char *samples, const char *expected)
{
	char got[100];
	size_t i;

	assert_int_equal(strlen(samples), strlen(expected));
	for (i = 0; samples[i]; i++) {
		bool fires = feed(f, samples[i]);

		got[i] = fires ? 'F' : ' ';
		if (fires)
			trigger_fired(f->trigger);
	}
	got[i] = '\0';
	if (strcmp(got, expected) != 0)
		fail_msg("samples '%s': expected '%s', got '%s'", samples, expected, got);
}

struct story {
	const char *what, *spec;
	double min_sec;
	bool already_true_fires;
	const char *samples, *expected;
};

TEST(rule_fires_where_the_story_says)
{
	static const struct story stories[] = {
		{ "fires after MinSec + 1 true samples", NAME ">80", 3, true,
		  "..####", "     F" },
		{ "does not fire when one sample is false", NAME ">80", 3, true,
		  "..###.###.", "          " },
		{ "equal is not over", NAME ">80", 3, true, "======", "      " },
		{ "equal is at or over", NAME ">=80", 3, true, "..====", "     F" },
		{ "equal is not under", NAME "<80", 3, true, "##====", "      " },
		{ "equal is at or under", NAME "<=80", 3, true, "##====", "     F" },
		{ "under fires on small values", NAME "<80", 3, true, "##....", "     F" },
		{ "absent is not zero", NAME "<80", 3, true, "------", "      " },
		{ "absent ends the row", NAME ">80", 3, true, "..###-###-", "          " },
		{ "appears and has to hold from then", NAME ">80", 3, true,
		  "---####", "      F" },
		{ "vanishes before it has held", NAME ">80", 3, true, "###---#", "       " },
		{ "already true at start fires once it has held", NAME ">80", 3, true,
		  "####", "   F" },
		{ "already true at start must first be false", NAME ">80", 3, false,
		  "########....####", "               F" },
		{ "arming needs false samples in a row", NAME ">80", 3, false,
		  "##..#...####", "            " },
		{ "absent does not count for arming", NAME ">80", 3, false,
		  "..--..####", "          " },
		{ "fires again only after MinSec + 1 false samples", NAME ">80", 3, true,
		  "######...####....####", "   F                F" },
		{ "stays true: fires once", NAME ">80", 3, true,
		  "####################", "   F                " },
		{ "MinSec 0 is the first hit", NAME ">80", 0, true, ".#.#", " F F" },
		{ "fractions are rounded up", NAME ">80", 0.5, true, ".##.", "  F " },
	};
	size_t i;

	for (i = 0; i < COUNT_OF(stories); i++) {
		struct trigger_env env = usual();
		struct fixture f;

		print_message("  %s\n", stories[i].what);
		env.min_sec = stories[i].min_sec;
		env.already_true_fires = stories[i].already_true_fires;
		start(&f, stories[i].spec, &env);
		expect(&f, stories[i].samples, stories[i].expected);
		end(&f);
	}
}

TEST(why_says_value_limit_and_time)
{
	struct trigger_env env = usual();
	struct fixture f;

	start(&f, "Processor:% Processor Time:_Total > 80", &env);
	expect(&f, "###", "   ");
	assert_true(feed_event(&f, NAME, 93.4, 0));
	assert_string_equal(buf_text(&f.why),
			    NAME " was 93.4, over its limit of 80, for 3 s (4 samples)");
	end(&f);

	env.min_sec = 0;
	start(&f, "Memory:Available Bytes: < 1G", &env);
	assert_true(feed_event(&f, "Memory:Available Bytes:", 1073741823, 0));
	assert_string_equal(
		buf_text(&f.why),
		"Memory:Available Bytes: was 1073741823, under its limit of 1073741824");
	end(&f);
}

TEST(value_that_prints_like_the_limit_gets_all_its_digits)
{
	struct trigger_env env = usual();
	struct fixture f;

	env.min_sec = 0;
	start(&f, NAME ">80", &env);
	assert_true(feed_event(&f, NAME, 80.000001, 0));
	assert_null(strstr(buf_text(&f.why), "was 80,"));
	assert_non_null(strstr(buf_text(&f.why), "was 80.00000"));
	end(&f);
}

TEST(decayed_limit_fires_and_says_both_limits)
{
	struct trigger_env env = usual();
	struct fixture f;
	struct trigger_status status;

	env.min_sec = 0;
	env.decay_hours = 2;
	start(&f, NAME ">80", &env);
	assert_false(feed_event(&f, NAME, 50, 0));              /* 0 %: 50 of 80 */
	f.time_ns += 3600 * NS_PER_SEC;
	assert_true(feed_event(&f, NAME, 50, 0));               /* 50 %: 50 of 40 */
	assert_string_equal(buf_text(&f.why),
			    NAME " was 50, over its limit of 40 (80 at the start, "
				 "decaying to 0 in 2 h)");
	trigger_fired(f.trigger);
	assert_false(feed_event(&f, NAME, 10, 0));              /* armed again */
	f.time_ns += 2 * 3600 * NS_PER_SEC;                     /* 150 %: never below zero */
	trigger_status(f.trigger, &status);
	assert_false(feed_event(&f, NAME, 0, 0));
	assert_true(feed_event(&f, NAME, 0.1, 0));
	trigger_status(f.trigger, &status);
	assert_true(status.limit == 0);
	end(&f);
}

/* Samples of 1 s, two digits each: "10 20" is 10, 20. Returns how many have come when it fires. */
static size_t fires_at(struct fixture *f, const char *samples)
{
	size_t i;

	for (i = 0; samples[3 * i]; i++) {
		if (feed_event(f, NAME, strtod(samples + 3 * i, NULL), 0))
			return i + 1;
		f->time_ns += NS_PER_SEC;
		if (!samples[3 * i + 2])
			break;
	}
	return 0;
}

TEST(a_change_fires_and_says_from_where)
{
	struct trigger_env env = usual();
	struct trigger_status status;
	struct fixture f;

	env.min_sec = 0;
	start(&f, NAME " > +20% in 10s", &env);
	assert_int_equal(fires_at(&f, "50 40 45 48 49 60"), 5);
	assert_string_equal(buf_text(&f.why), NAME " rose by 22.5 % to 49 within 10 s, over its "
			    "limit of 20 %");
	trigger_status(f.trigger, &status);
	assert_true(status.limit == 20);
	end(&f);
	/* A slow rise is none. */
	start(&f, NAME " > +20% in 3s", &env);
	assert_int_equal(fires_at(&f, "40 42 44 46 48 50 52 54 56 58"), 0);
	end(&f);
	start(&f, NAME " < -30 in 1m;DecayToZeroHours=1;Ceiling=-5", &env);
	assert_int_equal(fires_at(&f, "80 90 70 61 59"), 5);
	assert_non_null(strstr(buf_text(&f.why), "fell by 31 to 59 within 60 s, under its limit"));
	end(&f);
	/* A new process of that name starts with nothing. */
	start(&f, NAME " > +20% in 1m", &env);
	assert_int_equal(fires_at(&f, "10 11"), 0);
	assert_false(feed(&f, '-'));
	assert_int_equal(fires_at(&f, "90 95"), 0);
	end(&f);
}

TEST(high_water_fires_only_on_a_worse_alarm)
{
	struct trigger_env env = usual();
	struct fixture f;

	env.min_sec = 0;
	start(&f, NAME ">80;HighWaterHours=24", &env);
	assert_int_equal(fires_at(&f, "10 85"), 2);
	assert_int_equal(fires_at(&f, "90 88"), 0);             /* the same alarm: its mark is 90 */
	trigger_fired(f.trigger);
	assert_int_equal(fires_at(&f, "10 89 10 91"), 4);
	trigger_fired(f.trigger);
	assert_int_equal(fires_at(&f, "91 91 91 91"), 0);
	f.time_ns += 24 * 3600 * NS_PER_SEC;
	assert_int_equal(fires_at(&f, "10 81"), 2);
	end(&f);
}

TEST(keys_after_the_number_move_the_limit)
{
	struct trigger_env env = usual();
	struct trigger_status status;
	struct buf kept = {0};
	struct fixture f;

	env.min_sec = 0;
	start(&f, "Disk:Free;Bytes:a;b < 100 ;DecayToZeroHours=2;Ceiling=300", &env);
	assert_false(feed_event(&f, "Disk:Free;Bytes:a;b", 150, 0));
	f.time_ns += 3600 * NS_PER_SEC;
	assert_true(feed_event(&f, "Disk:Free;Bytes:a;b", 150, 0));
	assert_string_equal(buf_text(&f.why), "Disk:Free;Bytes:a;b was 150, under its limit of 200 "
			    "(100 at the start, rising to 300 in 2 h)");
	assert_int_equal(trigger_save(f.trigger, &kept), 0);
	end(&f);
	start(&f, "Disk:Free;Bytes:a;b < 100 ;DecayToZeroHours=2;Ceiling=300", &env);
	assert_int_equal(trigger_load(f.trigger, kept.data, kept.len, 0, NULL), 0);
	trigger_status(f.trigger, &status);
	assert_true(status.limit == 200);
	end(&f);
	buf_free(&kept);
}

TEST(decay_runs_on_any_event_and_through_firings)
{
	struct trigger_env env = usual();
	struct event tick = { .kind = EVENT_TICK };
	struct trigger_status status;
	struct fixture f;

	env.decay_hours = 1;
	start(&f, NAME ">80", &env);
	tick.time_ns = f.time_ns;
	assert_false(perf_counter_trigger.feed(f.trigger, &tick, &f.why));
	tick.time_ns += 1800 * NS_PER_SEC;
	assert_false(perf_counter_trigger.feed(f.trigger, &tick, &f.why));
	trigger_fired(f.trigger);
	trigger_status(f.trigger, &status);
	assert_true(status.limit == 40);
	end(&f);
}

TEST(clock_jump_does_not_fire_early)
{
	struct trigger_env env = usual();
	struct fixture f;

	start(&f, NAME ">80", &env);
	expect(&f, "##", "  ");
	f.time_ns += 86400 * NS_PER_SEC;
	expect(&f, "##", " F");
	end(&f);

	start(&f, NAME ">80", &env);
	expect(&f, "###", "   ");
	f.time_ns -= 500 * NS_PER_SEC;
	expect(&f, "####", "   F");
	end(&f);
}

TEST(two_rules_fire_in_the_same_millisecond)
{
	struct trigger_env env = usual();
	struct fixture a, b;

	env.min_sec = 0;
	start(&a, NAME ">80", &env);
	start(&b, NAME ">=90", &env);
	assert_true(feed(&a, '#'));
	assert_true(feed(&b, '#'));
	/* Nor does the window of one hold the other back. */
	assert_false(feed(&b, '.'));
	trigger_fired(b.trigger);
	assert_true(feed(&b, '#'));
	assert_false(feed(&a, '.'));
	assert_false(feed(&a, '#'));
	end(&a);
	end(&b);
}

TEST(nothing_fires_in_the_window_and_what_held_fires_after_it)
{
	struct trigger_env env = usual();
	struct fixture f;
	size_t i;

	start(&f, NAME ">80", &env);
	for (i = 0; i < 3; i++)
		assert_false(feed(&f, '#'));
	assert_true(feed(&f, '#'));
	/* Still in the window: false for long enough, then true for long enough. */
	for (i = 0; "....######"[i]; i++)
		assert_false(feed(&f, "....######"[i]));
	trigger_fired(f.trigger);
	assert_true(feed(&f, '#'));
	assert_non_null(strstr(buf_text(&f.why), "for 6 s (7 samples)"));
	end(&f);
}

TEST(events_of_other_counters_are_ignored)
{
	struct trigger_env env = usual();
	struct event e = { .kind = EVENT_GENERIC, .name = NAME, .value = 99 };
	struct fixture f;

	env.min_sec = 0;
	start(&f, NAME ">80", &env);
	assert_false(perf_counter_trigger.feed(f.trigger, &e, &f.why));
	assert_false(feed_event(&f, "Processor:% Processor Time:0", 99, 0));
	assert_false(feed_event(&f, NULL, 99, 0));
	assert_true(feed_event(&f, NAME, 99, 0));
	end(&f);
}

TEST(status_follows_the_rule)
{
	struct trigger_env env = usual();
	struct trigger_status s;
	struct fixture f;

	env.already_true_fires = false;
	start(&f, NAME ">80", &env);
	trigger_status(f.trigger, &s);
	assert_int_equal(s.phase, TRIGGER_WAITING_DATA);
	assert_string_equal(s.text, "no value yet, limit > 80");
	assert_true(s.limit == 80 && s.value != s.value && s.nearest != s.nearest);

	expect(&f, "..", "  ");
	trigger_status(f.trigger, &s);
	assert_int_equal(s.phase, TRIGGER_DISARMED);
	assert_string_equal(s.text, "10 of > 80, waiting to be false: 2 of 4 samples");

	expect(&f, "..", "  ");
	trigger_status(f.trigger, &s);
	assert_int_equal(s.phase, TRIGGER_ARMED);
	assert_string_equal(s.text, "10 of > 80, armed");

	expect(&f, "##", "  ");
	trigger_status(f.trigger, &s);
	assert_int_equal(s.phase, TRIGGER_HOLDING);
	assert_string_equal(s.text, "90 of > 80, holding: 2 of 4 samples");

	expect(&f, "-", " ");
	trigger_status(f.trigger, &s);
	assert_int_equal(s.phase, TRIGGER_WAITING_DATA);
	assert_string_equal(s.text, "no such instance now, limit > 80");
	assert_non_null(s.absent);
	assert_true(s.value != s.value);
	assert_true(s.nearest == 90);
	end(&f);
}

TEST(nearest_is_the_smallest_for_under)
{
	struct trigger_env env = usual();
	struct trigger_status s;
	struct fixture f;

	start(&f, NAME "<5", &env);
	feed_event(&f, NAME, 90, 0);
	feed_event(&f, NAME, 7, 0);
	feed_event(&f, NAME, 50, 0);
	trigger_status(f.trigger, &s);
	assert_true(s.nearest == 7);
	end(&f);
}

static void assert_refused(const char *spec, const struct trigger_env *env, struct err *err)
{
	struct trigger *t = NULL;

	assert_int_equal(trigger_open(&perf_counter_trigger, spec, env, &t, err), ERR_USAGE);
	assert_null(t);
}

TEST(bad_spec_error_names_the_part)
{
	static const struct { const char *text, *says; } specs[] = {
		{ "Processor > 80", "'Processor' is not CATEGORY:COUNTER:INSTANCE" },
		{ "Memory:Available Bytes > 80", "is not CATEGORY:COUNTER:INSTANCE" },
		{ "> 80", "'' is not CATEGORY:COUNTER:INSTANCE" },
		{ ":% Processor Time:_Total > 80", "the category before the first ':' is empty" },
		{ "Processor::_Total > 80", "the counter between the two ':' is empty" },
		{ "Processor:% Processor Time:_Total", "no operator" },
		{ "A:B:C > 1;Foo=2", "unknown key 'Foo'; allowed are DecayToZeroHours" },
		{ "Processor:% Processor\nTime:_Total>1", "control character at byte 22" },
	};
	struct trigger_env env = usual();
	size_t i;

	for (i = 0; i < COUNT_OF(specs); i++) {
		struct err err = {0};

		assert_refused(specs[i].text, &env, &err);
		if (!strstr(err.text, specs[i].says))
			fail_msg("'%s': %s", specs[i].text, err.text);
	}
}

TEST(bad_settings_are_refused)
{
	struct trigger_env env = usual();
	struct err err;

	env.min_sec = -1;
	assert_refused(NAME ">80", &env, &err);
	env = usual();
	env.poll_sec = 0.01;
	assert_refused(NAME ">80", &env, &err);
	env = usual();
	env.decay_hours = 24;
	assert_refused(NAME "<80", &env, &err);
	assert_non_null(strstr(err.text, "DecayToZeroHours"));
}

TEST(rule_needs_its_counter_at_its_period)
{
	static struct needs needs;
	struct trigger_env env = usual();
	struct fixture f;

	memset(&needs, 0, sizeof(needs));
	env.poll_sec = 0.25;
	start(&f, "  Process:Working Set:a:b#*  >= 4G ", &env);
	assert_int_equal(perf_counter_trigger.needs(f.trigger, &needs, NULL), 0);
	assert_int_equal(needs.ncounters, 1);
	assert_string_equal(needs.counters[0].name, "Process:Working Set:a:b#*");
	assert_int_equal(needs.counters[0].period_ns, NS_PER_SEC / 4);
	assert_false(needs.counters[0].monitor);
	end(&f);
}

TEST(monitor_spec_may_end_in_a_period)
{
	static const struct { const char *spec, *name; uint64_t period_ns;
	} good[] = {
		{NAME, NAME, 2 * NS_PER_SEC},
		{NAME "@5", NAME, 5 * NS_PER_SEC},
		{NAME "@0.5", NAME, NS_PER_SEC / 2},
		{"Cgroup:memory.current:/user@1000.service",
		 "Cgroup:memory.current:/user@1000.service", 2 * NS_PER_SEC},
		{"Cgroup:memory.current:/user@1000@1", "Cgroup:memory.current:/user@1000",
		 NS_PER_SEC},
	};
	static struct needs needs;
	struct err err;
	size_t i;

	for (i = 0; i < COUNT_OF(good); i++) {
		memset(&needs, 0, sizeof(needs));
		assert_int_equal(counter_monitor_parse(good[i].spec, &needs, &err), 0);
		assert_string_equal(needs.counters[0].name, good[i].name);
		assert_int_equal(needs.counters[0].period_ns, good[i].period_ns);
		assert_true(needs.counters[0].monitor);
	}
	assert_int_equal(counter_monitor_parse(NAME "@0.01", &needs, &err), ERR_USAGE);
	assert_int_equal(counter_monitor_parse("Memory@1", &needs, &err), ERR_USAGE);
}

static int open_step(void *ctx)
{
	struct trigger_env env = usual();
	struct trigger *t = NULL;
	int rc = trigger_open(&perf_counter_trigger, ctx, &env, &t, NULL);

	trigger_close(t);
	return rc;
}

TEST(rule_reports_lack_of_memory)
{
	assert_int_equal(alloc_walk(open_step, NAME ">80"), 3);
}

TEST(rule_is_found_by_its_option)
{
	assert_ptr_equal(trigger_kind("stop-on-perf-counter"), &perf_counter_trigger);
	assert_null(trigger_kind("stop-on-nothing"));
}

TEST(rules_on_memory_ask_who_took_it)
{
	static const struct {
		const char *spec;
		bool memory;
	} rules[] = {
		{"Process:Working Set:shop>2G", true},
		{"process:private bytes:shop>+1G in 1h", true},
		{"Memory:Available MBytes:<100", true},
		{"Cgroup:memory.events oom_kill/sec:/shop>0", true},
		{"Cgroup:% Memory Limit:/shop>90", true},
		{"Cgroup:% Processor Time:/shop>90", false},
		{"Process:Thread Count:shop>90", false},
		{NAME ">90", false},
	};
	struct trigger_env env = usual();
	static struct needs needs;
	struct fixture f;
	size_t i;

	for (i = 0; i < COUNT_OF(rules); i++) {
		start(&f, rules[i].spec, &env);
		memset(&needs, 0, sizeof(needs));
		assert_int_equal(f.trigger->ops->needs(f.trigger, &needs, NULL), 0);
		assert_int_equal(needs.memory, rules[i].memory);
		end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_fires_where_the_story_says),
		cmocka_unit_test(why_says_value_limit_and_time),
		cmocka_unit_test(value_that_prints_like_the_limit_gets_all_its_digits),
		cmocka_unit_test(decayed_limit_fires_and_says_both_limits),
		cmocka_unit_test(a_change_fires_and_says_from_where),
		cmocka_unit_test(high_water_fires_only_on_a_worse_alarm),
		cmocka_unit_test(keys_after_the_number_move_the_limit),
		cmocka_unit_test(decay_runs_on_any_event_and_through_firings),
		cmocka_unit_test(clock_jump_does_not_fire_early),
		cmocka_unit_test(two_rules_fire_in_the_same_millisecond),
		cmocka_unit_test(nothing_fires_in_the_window_and_what_held_fires_after_it),
		cmocka_unit_test(events_of_other_counters_are_ignored),
		cmocka_unit_test(status_follows_the_rule),
		cmocka_unit_test(nearest_is_the_smallest_for_under),
		cmocka_unit_test(bad_spec_error_names_the_part),
		cmocka_unit_test(bad_settings_are_refused),
		cmocka_unit_test(rule_needs_its_counter_at_its_period),
		cmocka_unit_test(monitor_spec_may_end_in_a_period),
		cmocka_unit_test(rule_reports_lack_of_memory),
		cmocka_unit_test(rules_on_memory_ask_who_took_it),
		cmocka_unit_test(rule_is_found_by_its_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
