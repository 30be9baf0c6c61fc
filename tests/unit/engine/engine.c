/* The engine from sources to store, on numbered samples in trace time: no gap, no wrong window. */
#include "tests/support/engine_rig.h"

#include "base/os.h"
#include "model/ledger.h"
#include "tests/support/bad_disk.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(a_firing_keeps_the_window_around_it)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "window.db", 60);
	r.plan.fire_s[0] = 30;
	rig_run(&r);
	assert_int_equal(r.result.samples, 6000);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 2000, 3200);     /* 20.00 s to 32.00 s, both ends included */
	assert_string_equal(in.head.reason, "fire at sample 3000");
	assert_int_equal(in.head.trigger_ns, START_NS + SEC(30));
	assert_int_equal(in.head.t0_ns, START_NS + SEC(20));
	assert_int_equal(in.head.t1_ns, START_NS + SEC(32));
	assert_null(in.head.gap_reason);
	incident_free(&in);
	remove_store(r.path);
}

TEST(overlapping_incidents_each_have_their_whole_window)
{
	struct rig r;
	unsigned i;

	rig_open(&r, "overlap.db", 60);
	for (i = 0; i < 5; i++)
		r.plan.fire_s[i] = 20 + 3.0 * i;     /* each window overlaps three others */
	rig_run(&r);
	assert_int_equal(r.result.stored, 6);        /* and the end of the file */
	for (i = 0; i < 5; i++)
		rig_check(&r, i + 1, 1000 + 300 * i, 2200 + 300 * i);
	remove_store(r.path);
}

TEST(a_ring_shorter_than_the_delay_still_gives_the_whole_pre_window)
{
	struct rig r;

	rig_open(&r, "short.db", 700);
	r.cfg.ring_bytes = 20000;            /* less than two segments of 60 s */
	r.cfg.capture.post_ns = SEC(300);
	r.plan.fire_s[0] = 100;
	rig_run(&r);
	rig_check(&r, 1, 9000, 40000);
	remove_store(r.path);
}

TEST(a_slow_store_makes_no_gap_in_the_next_incident)
{
	struct incident in;
	struct rig r;

	bad_disk_install();
	bad_disk_slow(200000);               /* 0.2 MB/s: an incident takes as long as the run */
	rig_open(&r, "slow.db", 60);
	r.cfg.capture.incidents = 2;
	r.plan.fire_s[0] = 20;
	r.plan.fire_s[1] = 26;               /* while the first is being written */
	rig_run(&r);
	bad_disk_remove();
	rig_check(&r, 1, 1000, 2200);
	rig_load(&r, 2, &in);
	assert_numbers(&in, 1600, 2800);
	assert_int_equal(in.head.lost, 0);
	incident_free(&in);
	remove_store(r.path);
}

TEST(a_window_longer_than_the_recording_says_so)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "early.db", 20);
	r.plan.fire_s[0] = 4;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 1, 600);
	assert_string_equal(in.head.gap_reason,
			    "recording had begun only 4.0 s before the trigger");
	incident_free(&in);
	remove_store(r.path);
}

TEST(a_ring_too_small_for_the_window_says_so)
{
	struct ledger ledger = {0};
	struct incident in;
	uint64_t evicted = 0;
	struct rig r;
	uint32_t i;

	rig_open(&r, "small.db", 700);
	r.cfg.ring_bytes = 20000;
	r.cfg.capture.pre_ns = SEC(600);
	r.plan.fire_s[0] = 650;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_non_null(strstr(in.head.gap_reason, "held only the last"));
	assert_int_equal(in.samples[0].time_ns, in.head.t0_ns);
	assert_numbers(&in, in.samples[0].weight, 65200);
	/* From 50 s on, sample 5,000, was requested; samples before the first had left the ring. */
	assert_int_equal(ledger_new(&in, &ledger, NULL), 0);
	assert_true(ledger.total.evicted > 8192);
	assert_int_equal(ledger.total.evicted, in.samples[0].weight - 5000);
	assert_int_equal(ledger.total.recorded, 65200 - in.samples[0].weight + 1);
	for (i = 0; i < ledger.nrows; i++)
		evicted += ledger.rows[i].second < 0 ? ledger.rows[i].n.evicted : 0;
	assert_int_equal(evicted, ledger.total.evicted);
	ledger_free(&ledger);
	incident_free(&in);
	remove_store(r.path);
}

TEST(the_run_ends_after_the_number_of_incidents)
{
	struct rig r;

	rig_open(&r, "multiple.db", 1000);
	r.cfg.capture.incidents = 2;
	r.plan.fire_s[0] = 20;
	r.plan.fire_s[1] = 40;
	r.plan.fire_s[2] = 60;
	rig_run(&r);
	assert_int_equal(r.result.stored, 2);
	remove_store(r.path);
}

TEST(the_time_limit_makes_a_last_incident)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "limit.db", 600);
	r.cfg.capture.max_collect_ns = SEC(50);
	r.plan.fire_s[0] = 0;
	rig_run(&r);
	assert_int_equal(r.result.stored, 1);
	rig_load(&r, 1, &in);
	assert_string_equal(in.head.rule, "max-collect-sec");
	assert_string_equal(in.head.reason, "MaxCollectSec: 50 s have passed");
	incident_free(&in);
	remove_store(r.path);
}

TEST(without_rules_everything_held_is_one_incident)
{
	struct rig r;

	rig_open(&r, "all.db", 300);
	r.cfg.ntriggers = 0;
	rig_run(&r);
	assert_int_equal(r.result.stored, 1);
	rig_check(&r, 1, 1, 30000);
	remove_store(r.path);
}

TEST(losses_of_the_window_are_counted_exactly)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "lost.db", 60);
	r.plan.lose_each = 100;
	r.plan.fire_s[0] = 30;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_int_equal(in.head.lost, 13);  /* at 20, 21 ... 32 s */
	assert_int_equal(in.head.lost_by_kind[LOSS_KERNEL], 13);
	incident_free(&in);
	remove_store(r.path);
}

TEST(events_of_floods_are_left_out_not_lost)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "flood.db", 60);
	r.plan.lose_each = 100;
	r.plan.lose = LOSS_FLOOD;
	r.plan.fire_s[0] = 30;
	rig_run(&r);
	assert_int_equal(r.result.lost, 0);
	rig_load(&r, 1, &in);
	assert_int_equal(in.head.lost, 0);
	assert_int_equal(in.head.lost_by_kind[LOSS_FLOOD], 13);
	incident_free(&in);
	remove_store(r.path);
}

TEST(a_rule_that_fires_too_often_is_held_back)
{
	struct rig r;
	unsigned i;

	rig_open(&r, "often.db", 400);
	rig_fire_often(&r);
	for (i = 0; i < 30; i++)
		r.plan.fire_child[i] = i % 2;
	rig_run(&r);
	assert_int_equal(r.result.stored, ENGINE_RULE_PER_HOUR + 1);   /* and the end */
	remove_store(r.path);
}

TEST(one_process_leaves_half_of_a_rules_incidents_to_the_others)
{
	struct incident in;
	struct rig r;
	unsigned i;

	rig_open(&r, "half.db", 400);
	rig_fire_often(&r);                  /* 20 firings of one process come first */
	for (i = 20; i < 30; i++)
		r.plan.fire_child[i] = true;
	rig_run(&r);
	assert_int_equal(r.result.stored, ENGINE_RULE_PER_HOUR + 1);
	rig_load(&r, ENGINE_RULE_PER_HOUR / 2, &in);
	assert_int_equal(in.head.trigger_ns, START_NS + SEC(50));
	incident_free(&in);
	rig_load(&r, ENGINE_RULE_PER_HOUR / 2 + 1, &in);
	assert_int_equal(in.head.trigger_ns, START_NS + SEC(210));
	incident_free(&in);
	remove_store(r.path);
}

TEST(incidents_of_a_rule_keep_their_interval)
{
	struct rig r;

	rig_open(&r, "interval.db", 400);
	rig_fire_often(&r);
	r.cfg.capture.min_interval_ns = SEC(95);
	rig_run(&r);
	assert_int_equal(r.result.stored, 3 + 1);   /* at 10, 110 and 210 s, and the end */
	remove_store(r.path);
}

TEST(the_same_again_is_counted_with_the_incident_that_is_there)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "dedup.db", 400);
	rig_fire_often(&r);
	r.cfg.capture.dedup_ns = SEC(95);
	r.cfg.rule_per_hour = 100;
	rig_run(&r);
	assert_int_equal(r.result.stored, 3 + 1);   /* at 10, 110 and 210 s, and the end */
	rig_load(&r, 1, &in);
	assert_non_null(strstr(in.head.note, "fired again 9 times, last at "));   /* 20 to 100 s */
	incident_free(&in);
	remove_store(r.path);
}

TEST(another_stack_is_not_the_same_up_to_its_eighth_function)
{
	/* nothing differs, again, the leaf, the 9th, the 8th, the 8th again, no stack, again */
	static const uint8_t stacks[] = {11, 11, 1, 9, 8, 8, 0, 0};
	static const struct { double s; const char *note; } kept[] = {
		{10, "fired again 2 times, "}, {30, NULL},
		{50, "again 1 time, "}, {70, "again 1 time, "},
	};
	struct incident in;
	struct rig r;
	unsigned i;

	rig_open(&r, "dedup_stacks.db", 100);
	r.cfg.rule_per_hour = 20;
	r.cfg.capture.pre_ns = SEC(1);
	r.cfg.capture.post_ns = SEC(1);
	r.cfg.capture.dedup_ns = SEC(1000);
	r.plan.names = true;
	for (i = 0; i < sizeof(stacks); i++) {
		r.plan.fire_s[i] = 10 * (i + 1);
		r.plan.fire_stack[i] = stacks[i];
	}
	rig_run(&r);
	assert_int_equal(r.result.stored, 4 + 1);
	for (i = 0; i < 4; i++) {
		rig_load(&r, i + 1, &in);
		assert_int_equal(in.head.trigger_ns, START_NS + SEC(kept[i].s));
		if (kept[i].note)
			assert_non_null(strstr(in.head.note, kept[i].note));
		else
			assert_null(in.head.note);
		incident_free(&in);
	}
	remove_store(r.path);
}

TEST(a_window_goes_on_while_what_fired_does)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "lasts.db", 200);
	synthetic_lasts(START_NS + SEC(35));
	r.plan.fire_s[0] = 30;
	r.plan.fire_s[1] = 100;
	rig_run(&r);
	synthetic_lasts(START_NS + SEC(1000));
	rig_load(&r, 1, &in);
	assert_in_range(in.head.t1_ns, START_NS + SEC(35), START_NS + SEC(35.2));    /* not 32 s */
	assert_string_equal(in.head.gap_reason,
			    "extended until its cause ended, 5.0 s after the trigger");
	assert_numbers(&in, 2000, in.nsamples + 1999);
	assert_in_range(in.nsamples, 1501, 1520);
	incident_free(&in);
	rig_load(&r, 2, &in);
	assert_int_equal(in.head.t1_ns, START_NS + SEC(102));
	incident_free(&in);
	remove_store(r.path);

	rig_open(&r, "lasts_long.db", 200);
	r.plan.fire_s[0] = 30;
	rig_run(&r);
	synthetic_lasts(0);
	rig_load(&r, 1, &in);
	assert_in_range(in.head.t1_ns, START_NS + SEC(92), START_NS + SEC(92.2)); /* <= 60 s more */
	incident_free(&in);
	remove_store(r.path);
}

static void take_nothing(struct source *s, const char *process)
{
	(void)s;
	(void)process;
}

static uint64_t until_second_35(struct source *s)
{
	(void)s;
	return START_NS + SEC(35);
}

TEST(a_window_waits_for_the_stacks_of_threads_that_its_rule_asked_for)
{
	struct source_ops ops = synthetic_source;
	const struct source_ops *const sources[] = {&ops, NULL};
	struct incident in;
	struct rig r;

	ops.take_stacks = take_nothing;
	ops.stacks_until = until_second_35;
	rig_open(&r, "stacks.db", 200);
	r.cfg.sources = sources;
	r.rule->stacks = "program";
	r.plan.fire_s[0] = 30;
	r.plan.fire_s[1] = 100;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_in_range(in.head.t1_ns, START_NS + SEC(35), START_NS + SEC(35.2));    /* not 32 s */
	assert_string_equal(in.head.gap_reason, "extended until the stacks of threads were taken, "
			    "5.0 s after the trigger");
	incident_free(&in);
	rig_load(&r, 2, &in);                /* those were taken long before */
	assert_int_equal(in.head.t1_ns, START_NS + SEC(102));
	incident_free(&in);
	remove_store(r.path);
}

TEST(a_full_disk_keeps_recording_and_says_what_was_lost)
{
	struct err err = {0};
	struct rig r;

	bad_disk_install();
	rig_open(&r, "full.db", 60);
	r.cfg.capture.incidents = 1;
	r.plan.fire_s[0] = 30;
	synthetic_plan(&r.plan);
	bad_disk_full_after(0);
	assert_int_not_equal(engine_run(&r.cfg, &r.result, &err), 0);
	bad_disk_remove();
	assert_true(strlen(err.text) > 20);
	remove_store(r.path);
}

TEST(firings_beyond_the_pending_ceiling_do_not_count)
{
	struct trigger *rules[ENGINE_PENDING_MAX + 8];
	struct rig r;
	unsigned i;

	rig_open(&r, "ceiling.db", 60);
	for (i = 0; i < ENGINE_PENDING_MAX + 8; i++)
		rules[i] = r.rule;           /* all fire at the same event */
	r.cfg.triggers = rules;
	r.cfg.ntriggers = ENGINE_PENDING_MAX + 8;
	r.cfg.capture.incidents = ENGINE_PENDING_MAX + 1;    /* one more than were kept */
	r.plan.fire_s[0] = 30;
	rig_run(&r);
	assert_int_equal(r.result.samples, 6000);
	assert_int_equal(r.result.stored, ENGINE_PENDING_MAX + 1);     /* and the end */
	remove_store(r.path);
}

TEST(a_slow_store_and_a_low_ceiling_cut_the_oldest_and_say_so)
{
	unsigned i, cut = 0;
	struct incident in;
	struct rig r;

	bad_disk_install();
	bad_disk_slow(1000000);
	rig_open(&r, "pinned.db", 3000);
	r.cfg.rule_per_hour = 20;
	r.cfg.ring_bytes = 20000;
	r.cfg.pinned_bytes = 1000;
	r.cfg.capture.pre_ns = SEC(100);
	r.cfg.capture.post_ns = SEC(200);
	for (i = 0; i < 8; i++)
		r.plan.fire_s[i] = 300 + 250 * i;
	rig_run(&r);
	bad_disk_remove();
	assert_int_equal(r.result.stored, 9);
	for (i = 1; i <= 8; i++) {
		rig_load(&r, i, &in);
		cut += in.head.gap_reason && strstr(in.head.gap_reason, "was given up");
		assert_true(in.nsamples > 0);
		incident_free(&in);
	}
	print_message("%u of 8 windows were cut\n", cut);
	remove_store(r.path);
}

/* In the middle of a post-window: what `recorder abort` does. */
static void abort_at_2000(void *ctx, uint64_t number)
{
	struct buf answer = {0};
	const char *path = ctx;
	unsigned tries = 500;

	if (number == 2000) {
		/* The control thread may not listen yet. */
		while (os_ipc_ask(path, "{\"cmd\":\"abort\"}", SEC(5), &answer, NULL) != 0 &&
		       --tries)
			os_sleep_ns(10 * NS_PER_MS);
		assert_non_null(strstr(buf_text(&answer), "nothing more is stored"));
	}
	buf_free(&answer);
}

struct during {
	const char *path;
	struct incident in;
};

/* In the middle of a post-window, while no event comes: what a kill -9 would leave. */
static void look_at_2000(void *ctx, uint64_t number)
{
	const char *path = ((struct during *)ctx)->path;
	struct incident *in = &((struct during *)ctx)->in;
	struct store *s = NULL;
	unsigned tries = 1000;

	if (number != 2000)
		return;
	while (in->nsamples < 501 && --tries) {
		incident_free(in);
		os_sleep_ns(10 * NS_PER_MS);
		if (store_open(path, STORE_READ, &s, NULL) == 0 && store_load(s, 1, in, NULL) != 0)
			memset(in, 0, sizeof(*in));
		store_close(s);
		s = NULL;
	}
}

TEST(the_past_is_stored_before_the_delay_is_over)
{
	struct during during = {0};
	struct rig r;

	rig_open(&r, "past.db", 60);
	r.cfg.capture.pre_ns = SEC(5);
	r.cfg.capture.post_ns = SEC(40);             /* the open segment ends at 60 s */
	r.plan.fire_s[0] = 15;
	r.plan.at = look_at_2000;
	r.plan.ctx = &during;
	during.path = r.path;
	rig_run(&r);
	assert_int_equal(during.in.head.state, INCIDENT_OPEN);
	assert_numbers(&during.in, 1000, 1500); /* from 10 s to the firing */
	incident_free(&during.in);
	rig_check(&r, 1, 1000, 5500);
	remove_store(r.path);
}

TEST(an_abort_within_a_window_stores_nothing_more)
{
	char control[TMP_BYTES + 8];
	struct err err = {0};
	struct rig r;

	assert_int_equal(os_signals_open(&err), 0);
	rig_open(&r, "abort.db", 60);
	snprintf(control, sizeof(control), "%s.ctl", r.path);
	r.cfg.listen = true;
	r.cfg.capture.post_ns = SEC(40);
	r.plan.fire_s[0] = 15;
	r.plan.at = abort_at_2000;
	r.plan.ctx = control;
	synthetic_plan(&r.plan);
	assert_int_equal(engine_run(&r.cfg, &r.result, &err), ERR_STOPPED);
	os_signals_close();
	assert_int_equal(r.result.stored, 0);
	remove_store(r.path);
}

/* An alert at 50 s speaks of 20 s: the window is 10 to 22 s, as of an alert in time. */
TEST(a_firing_that_came_late_is_placed_where_it_speaks_of)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "late.db", 60);
	r.cfg.capture.replay_late = true;
	r.plan.fire_s[0] = 50;
	r.plan.fire_s[1] = 0;
	r.plan.fire_late_s = 30;
	rig_run(&r);
	rig_load(&r, 1, &in);
	/* What it speaks of has whole milliseconds of a wall clock that is read anew. */
	assert_in_range(in.head.trigger_ns, START_NS + SEC(19.9), START_NS + SEC(20.1));
	assert_in_range(in.samples[0].weight, 990, 1010);
	assert_in_range(in.samples[in.nsamples - 1].weight, 2190, 2210);
	assert_int_equal(in.nsamples, in.samples[in.nsamples - 1].weight -
				      in.samples[0].weight + 1);
	assert_non_null(strstr(in.head.reason, "30 s before it came)"));
	incident_free(&in);
	remove_store(r.path);
}

/* Before the start there is nothing: the window stays where it fired, and says so. */
TEST(a_firing_that_came_too_late_says_so)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "too_late.db", 60);
	r.cfg.capture.replay_late = true;
	r.plan.fire_s[0] = 50;
	r.plan.fire_s[1] = 0;
	r.plan.fire_late_s = 70;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_int_equal(in.head.trigger_ns, START_NS + SEC(50));
	assert_non_null(strstr(in.head.reason, "the buffer has no more of it"));
	incident_free(&in);
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_firing_keeps_the_window_around_it),
		cmocka_unit_test(overlapping_incidents_each_have_their_whole_window),
		cmocka_unit_test(a_ring_shorter_than_the_delay_still_gives_the_whole_pre_window),
		cmocka_unit_test(a_slow_store_makes_no_gap_in_the_next_incident),
		cmocka_unit_test(a_window_longer_than_the_recording_says_so),
		cmocka_unit_test(a_ring_too_small_for_the_window_says_so),
		cmocka_unit_test(the_run_ends_after_the_number_of_incidents),
		cmocka_unit_test(the_time_limit_makes_a_last_incident),
		cmocka_unit_test(without_rules_everything_held_is_one_incident),
		cmocka_unit_test(losses_of_the_window_are_counted_exactly),
		cmocka_unit_test(events_of_floods_are_left_out_not_lost),
		cmocka_unit_test(a_rule_that_fires_too_often_is_held_back),
		cmocka_unit_test(one_process_leaves_half_of_a_rules_incidents_to_the_others),
		cmocka_unit_test(firings_beyond_the_pending_ceiling_do_not_count),
		cmocka_unit_test(a_slow_store_and_a_low_ceiling_cut_the_oldest_and_say_so),
		cmocka_unit_test(the_past_is_stored_before_the_delay_is_over),
		cmocka_unit_test(an_abort_within_a_window_stores_nothing_more),
		cmocka_unit_test(incidents_of_a_rule_keep_their_interval),
		cmocka_unit_test(the_same_again_is_counted_with_the_incident_that_is_there),
		cmocka_unit_test(another_stack_is_not_the_same_up_to_its_eighth_function),
		cmocka_unit_test(a_window_goes_on_while_what_fired_does),
		cmocka_unit_test(
			a_window_waits_for_the_stacks_of_threads_that_its_rule_asked_for),
		cmocka_unit_test(a_full_disk_keeps_recording_and_says_what_was_lost),
		cmocka_unit_test(a_firing_that_came_late_is_placed_where_it_speaks_of),
		cmocka_unit_test(a_firing_that_came_too_late_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
