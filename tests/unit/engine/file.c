/* The engine on a file: the trace's own time, nothing lost or cut, and an end that is said. */
#include "tests/support/engine_rig.h"

#include "base/array.h"
#include "base/os.h"
#include "tests/support/bad_disk.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HOUR SEC(3600)
#define YEAR (365 * 24 * HOUR)

/* ---- rules ----------------------------------------------------------------------------------- */

TEST(a_rule_fires_where_it_would_have_and_the_end_of_the_file_makes_no_incident)
{
	struct incident in;
	struct rig r;

	rig_open_file(&r, "rules.db", 60);
	r.plan.fire_s[0] = 30;
	rig_run(&r);
	assert_int_equal(r.result.stored, 1);
	assert_int_equal(r.result.firings, 1);
	assert_int_equal(r.result.read_ns, SEC(60));
	assert_false(r.result.interrupted);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 2000, 3200);
	assert_int_equal(in.head.state, INCIDENT_COMPLETE);
	assert_null(in.head.gap_reason);
	incident_free(&in);
	remove_store(r.path);
}

TEST(when_and_where_are_those_of_the_trace)
{
	struct incident in;
	struct rig r;

	rig_open_file(&r, "origin.db", 60);
	r.cfg.capture.freq_hz = 99;                  /* of live recording, not of a file */
	snprintf(r.plan.origin.note, sizeof(r.plan.origin.note), "the trace lost 12 events");
	r.plan.fire_s[0] = 30;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_int_equal(in.head.trigger_wall_ns, START_WALL_NS + SEC(30));
	assert_string_equal(in.head.host, "TRACED");
	assert_string_equal(in.head.host_text, "Windows 6.2.9200");
	assert_int_equal(in.head.period_ns[STREAM_CPU], STEP_NS);
	assert_string_equal(in.head.note, "the trace lost 12 events");
	incident_free(&in);
	remove_store(r.path);
}

TEST(a_window_beyond_the_file_says_where_it_begins_and_ends)
{
	struct incident in;
	struct rig r;

	rig_open_file(&r, "ends.db", 10);
	r.cfg.capture.post_ns = SEC(8);
	r.plan.fire_s[0] = 4;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 1, 1000);
	assert_int_equal(in.head.state, INCIDENT_COMPLETE);
	assert_int_equal(in.head.t1_ns, START_NS + SEC(10));
	assert_string_equal(in.head.gap_reason,
			    "the file begins only 4.0 s before the trigger; "
			    "end of file 6.0 s after the trigger");
	incident_free(&in);
	remove_store(r.path);
}

TEST(reading_ends_after_the_number_of_firings)
{
	struct rig r;

	rig_open_file(&r, "multiple.db", 100000);
	r.cfg.capture.incidents = 2;
	r.plan.fire_s[0] = 20;
	r.plan.fire_s[1] = 40;
	r.plan.fire_s[2] = 60;
	rig_run(&r);
	assert_int_equal(r.result.stored, 2);
	assert_false(r.result.interrupted);
	assert_int_equal(r.result.read_ns, SEC(42.1));  /* the first tick behind the last window */
	assert_int_equal(r.result.events, 4212);     /* however many waited in the queue by then */
	rig_check(&r, 2, 3000, 4200);
	remove_store(r.path);
}

TEST(a_rule_is_held_back_in_the_traces_time_when_that_is_asked_for)
{
	static const struct {
		uint64_t interval_ns;
		uint32_t per_hour, per_day, stored;
	} cases[] = {
		{SEC(35), 0, 0, 8},          /* at 10, 50, 90, ..., 290 s */
		{0, 4, 0, 4}, {0, 0, 5, 5}, {0, 0, 0, 30},
	};
	struct rig r;
	size_t k;

	for (k = 0; k < COUNT_OF(cases); k++) {
		rig_open_file(&r, "held.db", 400);
		rig_fire_often(&r);
		r.cfg.capture.min_interval_ns = cases[k].interval_ns;
		r.cfg.rule_per_hour = cases[k].per_hour;
		r.cfg.rule_per_day = cases[k].per_day;
		rig_run(&r);
		assert_int_equal(r.result.stored, cases[k].stored);
		remove_store(r.path);
	}
}

TEST(a_rule_is_not_held_back_for_firing_often)
{
	struct rig r;

	rig_open_file(&r, "often.db", 400);
	rig_fire_often(&r);
	rig_run(&r);
	assert_int_equal(r.result.stored, 30);
	remove_store(r.path);
}

TEST(a_rule_fires_again_in_the_window_of_its_own_incident)
{
	struct rig r;

	rig_open_file(&r, "again.db", 60);
	r.plan.fire_s[0] = 30;
	r.plan.fire_s[1] = 31;
	rig_run(&r);
	assert_int_equal(r.result.stored, 2);
	rig_check(&r, 1, 2000, 3200);
	rig_check(&r, 2, 2100, 3300);
	remove_store(r.path);
}

/* Whether the writer is fast or slow: reading waits until it knows. */
TEST(the_same_again_is_the_same_at_each_reading)
{
	static const uint64_t speeds[] = {0, 200000};
	struct incident in;
	struct rig r;
	unsigned k;

	for (k = 0; k < 2; k++) {
		bad_disk_install();
		bad_disk_slow(speeds[k]);
		rig_open_file(&r, "dedup.db", 400);
		rig_fire_often(&r);
		r.cfg.capture.dedup_ns = SEC(95);
		r.cfg.capture.incidents = 3;
		rig_run(&r);
		bad_disk_remove();
		assert_int_equal(r.result.stored, 3);        /* at 10, 110 and 210 s */
		assert_int_equal(r.result.read_ns, SEC(211.1));
		rig_load(&r, 3, &in);
		assert_int_equal(in.head.trigger_ns, START_NS + SEC(210));
		incident_free(&in);
		rig_load(&r, 1, &in);
		assert_non_null(strstr(in.head.note, "fired again 9 times, last at "));
		incident_free(&in);
		remove_store(r.path);
	}
}

TEST(nothing_is_stored_when_no_rule_fires)
{
	struct rig r;

	rig_open_file(&r, "quiet.db", 10);
	rig_run(&r);
	assert_int_equal(r.result.stored, 0);
	assert_int_equal(r.result.events, 1000);
	remove_store(r.path);
}

TEST(the_time_limit_is_of_the_traces_time)
{
	struct incident in;
	struct rig r;

	rig_open_file(&r, "limit.db", 600);
	r.cfg.capture.max_collect_ns = SEC(50);
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 4000, 4999);     /* the tick at 50 s comes before the sample at 50 s */
	assert_int_equal(in.head.t1_ns, START_NS + SEC(50));
	assert_string_equal(in.head.rule, "max-collect-sec");
	incident_free(&in);
	remove_store(r.path);
}

/* ---- the store is slow ----------------------------------------------------------------------- */

/* What the same test of engine/engine.c cuts is whole here: the reader waited. */
TEST(a_slow_store_and_a_low_ceiling_cut_nothing)
{
	struct incident in;
	struct rig r;
	unsigned i;

	bad_disk_install();
	bad_disk_slow(1000000);
	rig_open_file(&r, "slow.db", 3000);
	r.cfg.ring_bytes = 20000;
	r.cfg.pinned_bytes = 1000;
	r.cfg.capture.pre_ns = SEC(10);
	r.cfg.capture.post_ns = SEC(400);
	for (i = 0; i < 4; i++)
		r.plan.fire_s[i] = 300 + 500 * i;
	rig_run(&r);
	bad_disk_remove();
	assert_int_equal(r.result.stored, 4);
	for (i = 0; i < 4; i++) {
		rig_load(&r, i + 1, &in);
		assert_numbers(&in, 29000 + 50000 * i, 70000 + 50000 * i);
		assert_null(in.head.gap_reason);
		incident_free(&in);
	}
	remove_store(r.path);
}

/* Each waits for its own end, and all hold the same segments: waiting for one would never end. */
TEST(windows_that_overlap_never_wait_for_one_another)
{
	struct trigger *rules[40];
	struct rig r;
	unsigned i;

	rig_open_file(&r, "overlap.db", 2000);
	for (i = 0; i < 40; i++)
		rules[i] = r.rule;           /* all fire at one event, more than may be pending */
	r.cfg.triggers = rules;
	r.cfg.ntriggers = 40;
	r.cfg.ring_bytes = 20000;
	r.cfg.pinned_bytes = 1000;
	r.cfg.capture.post_ns = SEC(1000);
	r.plan.fire_s[0] = 500;
	rig_run(&r);
	assert_int_equal(r.result.stored, 40);
	rig_check(&r, 40, 49000, 150000);
	remove_store(r.path);
}

static unsigned count_lines_with(const char *path, const char *words)
{
	struct os_file *file = NULL;
	struct buf text = {0};
	const char *at;
	unsigned n = 0;

	assert_int_equal(os_open(path, OS_READ, &file, NULL), 0);
	assert_int_equal(os_read_all(file, 1 << 20, &text, NULL), 0);
	os_close(file);
	for (at = buf_text(&text); (at = strstr(at, words)) != NULL; at += strlen(words))
		n++;
	buf_free(&text);
	return n;
}

/* Ten windows end at the same event. After each of them the store is over its limit. */
TEST(old_incidents_are_removed_when_all_that_are_due_are_stored)
{
	struct trigger *rules[10];
	char path[TMP_BYTES + 8];
	struct log *log = NULL;
	struct rig r;
	unsigned i;

	rig_open_file(&r, "due.db", 60);
	snprintf(path, sizeof(path), "%s.log", r.path);
	os_remove(path, NULL);
	assert_int_equal(log_open(path, &log, NULL), 0);
	for (i = 0; i < 10; i++)
		rules[i] = r.rule;
	r.cfg.triggers = rules;
	r.cfg.ntriggers = 10;
	r.cfg.store_limits.max_incidents = 1;
	r.cfg.log = log;
	r.plan.fire_s[0] = 30;
	rig_run(&r);
	log_close(log);
	assert_int_equal(r.result.stored, 10);
	assert_int_equal(count_lines_with(path, " stored: "), 10);
	/* Once, but that the reader may be held up between two of the ends. */
	assert_in_range(count_lines_with(path, "old incidents were removed"), 1, 4);
	rig_check(&r, 10, 2000, 3200);
	os_remove(path, NULL);
	remove_store(r.path);
}

static void fill_disk_at_10000(void *ctx, uint64_t number)
{
	(void)ctx;
	if (number == 10000)
		bad_disk_full_after(0);
}

TEST(a_full_disk_ends_the_reading)
{
	struct err err = {0};
	struct rig r;

	bad_disk_install();
	rig_open_file(&r, "full.db", 100000);
	r.cfg.ntriggers = 0;
	r.cfg.ring_bytes = 20000;
	r.cfg.pinned_bytes = 1000;
	r.plan.at = fill_disk_at_10000;
	synthetic_plan(&r.plan);
	assert_int_equal(engine_run(&r.cfg, &r.result, &err), ERR_IO);
	bad_disk_remove();
	assert_non_null(strstr(err.text, "could not be stored"));
	assert_true(r.result.samples < 10000000);
	remove_store(r.path);
}

/* ---- the whole file -------------------------------------------------------------------------- */

TEST(without_rules_the_file_is_one_incident)
{
	struct incident in;
	struct rig r;

	rig_open_file(&r, "whole.db", 300);
	r.cfg.ntriggers = 0;
	rig_run(&r);
	assert_int_equal(r.result.stored, 1);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 1, 30000);
	assert_int_equal(in.head.state, INCIDENT_COMPLETE);
	assert_string_equal(in.head.rule, "file");
	assert_string_equal(in.head.reason, "all of slow.etl");
	assert_int_equal(in.head.trigger_ns, START_NS);
	assert_int_equal(in.head.trigger_wall_ns, START_WALL_NS);
	assert_int_equal(in.head.t0_ns, START_NS);
	assert_int_equal(in.head.t1_ns, START_NS + SEC(300));
	assert_int_equal(in.head.asked_post_ns, SEC(300));
	assert_null(in.head.gap_reason);
	incident_free(&in);
	remove_store(r.path);
}

/* 3,000 s make 50 segments of 60 s; the ring and what is pinned hold two or three of them. */
TEST(a_file_larger_than_memory_is_stored_whole)
{
	struct incident in;
	struct rig r;

	rig_open_file(&r, "large.db", 3000);
	r.cfg.ntriggers = 0;
	r.cfg.ring_bytes = 20000;
	r.cfg.pinned_bytes = 1000;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 1, 300000);
	assert_null(in.head.gap_reason);
	incident_free(&in);
	remove_store(r.path);
}

static void ask(const char *path, const char *command)
{
	struct buf answer = {0};
	unsigned tries = 500;

	/* The control thread may not listen yet. */
	while (os_ipc_ask(path, command, SEC(5), &answer, NULL) != 0 && --tries)
		os_sleep_ns(10 * NS_PER_MS);
	assert_true(tries > 0);
	buf_free(&answer);
}

static void stop_at_20000(void *ctx, uint64_t number)
{
	if (number == 20000)
		ask(ctx, "{\"cmd\":\"stop\"}");
}

TEST(a_file_that_is_not_read_to_its_end_is_partial_and_says_so)
{
	char control[TMP_BYTES + 8];
	struct incident in;
	struct err err = {0};
	struct rig r;

	assert_int_equal(os_signals_open(&err), 0);
	rig_open_file(&r, "stopped.db", 100000);
	snprintf(control, sizeof(control), "%s.ctl", r.path);
	r.cfg.ntriggers = 0;
	r.cfg.listen = true;
	r.plan.at = stop_at_20000;
	r.plan.ctx = control;
	rig_run(&r);
	os_signals_close();
	assert_true(r.result.interrupted);
	assert_int_equal(r.result.stored, 1);
	rig_load(&r, 1, &in);
	assert_true(in.nsamples >= 19999 && in.nsamples < 10000000);
	assert_numbers(&in, 1, in.nsamples);
	assert_int_equal(in.head.state, INCIDENT_PARTIAL);
	assert_non_null(strstr(in.head.gap_reason,
			    "reading was stopped"));
	incident_free(&in);
	remove_store(r.path);
}

TEST(a_file_that_cannot_be_read_on_keeps_what_there_was)
{
	struct incident in;
	struct err err = {0};
	struct rig r;

	rig_open_file(&r, "broken.db", 300);
	r.cfg.ntriggers = 0;
	r.plan.fail_after = 10000;
	synthetic_plan(&r.plan);
	assert_int_equal(engine_run(&r.cfg, &r.result, &err), ERR_IO);
	assert_string_equal(err.text, "cannot read on");
	rig_load(&r, 1, &in);
	assert_numbers(&in, 1, 10000);
	assert_int_equal(in.head.state, INCIDENT_PARTIAL);
	assert_string_equal(in.head.gap_reason,
			    "reading ended (cannot read on) 100.0 s after the trigger");
	incident_free(&in);
	remove_store(r.path);
}

/* ---- time ------------------------------------------------------------------------------------ */

struct ticker {
	struct trigger base;
	uint64_t ticks, last_ns;
	uint64_t waits_until_ns, noticed_ns; /* what a rule that waits would see */
};

static bool ticker_feed(struct trigger *t, const struct event *e, struct buf *why)
{
	struct ticker *k = (struct ticker *)t;

	(void)why;
	if (e->kind != EVENT_TICK)
		return false;
	assert_true(e->time_ns > k->last_ns);
	k->last_ns = e->time_ns;
	k->ticks++;
	if (!k->noticed_ns && e->time_ns >= k->waits_until_ns)
		k->noticed_ns = e->time_ns;
	return false;
}

static struct ticker tick_through(const char *name, uint64_t gap_ns, uint64_t wait_ns)
{
	static const struct trigger_ops ops = {.name = "ticker", .feed = ticker_feed};
	struct ticker k = {.base = {.ops = &ops, .spec = "ticker", .kinds = UINT32_MAX},
			   .waits_until_ns = START_NS + wait_ns};
	struct trigger *rule = &k.base;
	struct rig r;

	rig_open_file(&r, name, 20);
	r.cfg.triggers = &rule;
	r.plan.gap_after = 1000;
	r.plan.gap_ns = gap_ns;
	rig_run(&r);
	assert_int_equal(r.result.samples, 2000);
	remove_store(r.path);
	return k;
}

TEST(ticks_come_every_100_ms_also_between_a_files_events)
{
	struct ticker k = tick_through("ticks.db", SEC(600), SEC(123.4));

	assert_int_equal(k.ticks, 6200);
	assert_int_equal(k.noticed_ns, START_NS + SEC(123.4));
}

TEST(a_gap_of_a_century_is_no_century_of_ticks)
{
	struct ticker k = tick_through("gap.db", 100 * YEAR, SEC(10) + 30 * 24 * HOUR);

	assert_true(k.ticks < 600000);
	/* What waits for 30 days is noticed then, but for 0.003 % of them. */
	assert_true(k.noticed_ns - k.waits_until_ns <= 30 * 24 * HOUR / 36000);
	assert_true(k.last_ns > START_NS + 100 * YEAR);
}

TEST(a_time_at_the_end_of_all_time_is_survived)
{
	struct ticker k = tick_through("wild.db", UINT64_MAX - START_NS - SEC(20), HOUR);

	assert_true(k.ticks < 1000000);
}

TEST(a_window_in_a_gap_ends_where_it_was_to_end)
{
	struct incident in;
	struct rig r;

	rig_open_file(&r, "gapwindow.db", 20);
	r.plan.gap_after = 1000;
	r.plan.gap_ns = 100 * YEAR;
	r.plan.fire_s[0] = 10;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 1, 1000);
	assert_int_equal(in.head.t1_ns, START_NS + SEC(12));
	incident_free(&in);
	remove_store(r.path);
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(frames_have_the_names_that_only_the_source_knows)
{
	struct incident in;
	unsigned named = 0;
	struct rig r;
	uint32_t i;

	rig_open_file(&r, "names.db", 10);
	r.cfg.ntriggers = 0;
	r.plan.names = true;
	rig_run(&r);
	rig_load(&r, 1, &in);
	for (i = 0; i < in.nframes; i++)
		named += in.frames[i].function && strncmp(in.frames[i].function, "leaf_", 5) == 0;
	assert_int_equal(named, 10);
	incident_free(&in);
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_rule_fires_where_it_would_have_and_the_end_of_the_file_makes_no_incident),
		cmocka_unit_test(when_and_where_are_those_of_the_trace),
		cmocka_unit_test(a_window_beyond_the_file_says_where_it_begins_and_ends),
		cmocka_unit_test(reading_ends_after_the_number_of_firings),
		cmocka_unit_test(a_rule_is_held_back_in_the_traces_time_when_that_is_asked_for),
		cmocka_unit_test(a_rule_is_not_held_back_for_firing_often),
		cmocka_unit_test(a_rule_fires_again_in_the_window_of_its_own_incident),
		cmocka_unit_test(the_same_again_is_the_same_at_each_reading),
		cmocka_unit_test(nothing_is_stored_when_no_rule_fires),
		cmocka_unit_test(the_time_limit_is_of_the_traces_time),
		cmocka_unit_test(a_slow_store_and_a_low_ceiling_cut_nothing),
		cmocka_unit_test(windows_that_overlap_never_wait_for_one_another),
		cmocka_unit_test(old_incidents_are_removed_when_all_that_are_due_are_stored),
		cmocka_unit_test(a_full_disk_ends_the_reading),
		cmocka_unit_test(without_rules_the_file_is_one_incident),
		cmocka_unit_test(a_file_larger_than_memory_is_stored_whole),
		cmocka_unit_test(a_file_that_is_not_read_to_its_end_is_partial_and_says_so),
		cmocka_unit_test(a_file_that_cannot_be_read_on_keeps_what_there_was),
		cmocka_unit_test(ticks_come_every_100_ms_also_between_a_files_events),
		cmocka_unit_test(a_gap_of_a_century_is_no_century_of_ticks),
		cmocka_unit_test(a_time_at_the_end_of_all_time_is_survived),
		cmocka_unit_test(a_window_in_a_gap_ends_where_it_was_to_end),
		cmocka_unit_test(frames_have_the_names_that_only_the_source_knows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
