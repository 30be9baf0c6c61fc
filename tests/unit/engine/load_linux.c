/*
 * The engine under load: full tables, and many incidents on a slow disk. On Linux only, for they
 * take long; what they show is the same code on both hosts.
 */
#include "tests/support/engine_rig.h"

#include "base/os.h"
#include "tests/support/bad_disk.h"
#include "tests/support/test.h"

#include <string.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { FULL_LOAD = 0, RATE = 2000 };
#else
enum { FULL_LOAD = 1, RATE = 20000 };    /* samples a second of trace time */
#endif

/*
 * 1.2 million samples with a function each, in a table for a million frames: what the oldest
 * segments listed is forgotten together with them, and the present keeps its stacks.
 */
TEST(a_full_frame_table_costs_the_oldest_history_and_no_stack)
{
	struct incident in;
	struct rig r;

	if (!FULL_LOAD) {
		print_message("this takes a minute under a sanitizer\n");
		skip();
	}
	rig_open(&r, "frames.db", 0);
	r.plan.nsamples = 1200000;
	r.plan.functions = 1200000;
	r.plan.step_ns = NS_PER_SEC / 1000;
	r.plan.fire_s[0] = 1190;
	rig_run(&r);
	assert_int_equal(r.result.samples, 1200000);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 1180000, 1192000);
	assert_int_equal(in.head.quality[QUALITY_COMPLETE], 12001);
	assert_int_equal(in.head.lost, 0);
	incident_free(&in);
	remove_store(r.path);
}

/*
 * A machine that builds programs: 50 processes a second, for 900 s. The table of 65,536 is half
 * full after 11 minutes; from then on, too, each sample says whose it is.
 */
TEST(processes_that_come_and_go_for_long_keep_their_names)
{
	struct incident in;
	uint32_t i, children = 0;
	const char *name;
	struct rig r;

	rig_open(&r, "children.db", 0);
	r.cfg.capture.pre_ns = SEC(60);
	r.plan.nsamples = 180000;
	r.plan.step_ns = NS_PER_SEC / 200;
	r.plan.child_each = 4;
	r.plan.fire_s[0] = 890;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_numbers(&in, 166000, 178400);
	for (i = 0; i < in.nsamples; i++) {
		name = in.processes[in.threads[in.samples[i].thread].process].name;
		assert_string_equal(name, (uint64_t)in.samples[i].weight % 4 ? "synthetic"
									      : "child");
		children += name[0] == 'c';
	}
	assert_int_equal(children, 3101);
	incident_free(&in);
	remove_store(r.path);
}

/* Not of the buffer, which would tell somebody to make that larger. */
TEST(a_window_shortened_by_a_full_table_says_so)
{
	struct incident in;
	struct rig r;

	rig_open(&r, "short.db", 0);
	r.cfg.capture.pre_ns = SEC(1600);
	r.plan.nsamples = 340000;
	r.plan.step_ns = NS_PER_SEC / 200;
	r.plan.child_each = 4;
	r.plan.fire_s[0] = 1690;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_non_null(in.head.gap_reason);
	assert_non_null(strstr(in.head.gap_reason, "s were held: a table was nearly full"));
	assert_null(strstr(in.head.gap_reason, "--buffer-mb"));
	incident_free(&in);
	remove_store(r.path);
}

/*
 * 20,000 samples a second, two rules that both fire every 3 s for the 30 s before it, and a disk of
 * 1 MB/s: twenty incidents overlap, and each has every number of its window.
 */
TEST(twenty_overlapping_incidents_on_a_slow_disk_have_no_gap)
{
	struct trigger *rules[2];
	struct incident in;
	struct rig r;
	unsigned i;

	rig_open(&r, "zero-gap.db", 0);
	rules[0] = rules[1] = r.rule;
	r.cfg.triggers = rules;
	r.cfg.ntriggers = 2;
	r.cfg.rule_per_hour = 20;
	r.plan.nsamples = RATE * 65;
	r.plan.step_ns = NS_PER_SEC / RATE;
	r.cfg.capture.pre_ns = SEC(30);
	for (i = 0; i < 10; i++)
		r.plan.fire_s[i] = 31 + 3.0 * i;
	bad_disk_install();
	bad_disk_slow(1000000);
	rig_run(&r);
	bad_disk_remove();
	assert_int_equal(r.result.samples, RATE * 65);
	assert_int_equal(r.result.failed, 0);
	assert_int_equal(r.result.stored, 20 + 1);   /* and the end */
	for (i = 0; i < 10; i++) {
		rig_load(&r, 2 * i + 1 + i % 2, &in);
		assert_numbers(&in, RATE * (1 + 3 * i), RATE * (33 + 3 * i));
		assert_null(in.head.gap_reason);
		incident_free(&in);
	}
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_frame_table_costs_the_oldest_history_and_no_stack),
		cmocka_unit_test(processes_that_come_and_go_for_long_keep_their_names),
		cmocka_unit_test(a_window_shortened_by_a_full_table_says_so),
		cmocka_unit_test(twenty_overlapping_incidents_on_a_slow_disk_have_no_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
