/* Merging decoded segments into an incident. */
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define SEC 1000000000ULL

/*
 * Frames 0 main, 1 run, 2 idle; tree: 0 main, 1 main;run, 2 main;idle. Samples at 99, 101 and
 * 109 s, the first outside of the window; an event at 102 s with one field.
 */
static struct incident_stack nodes[] = {{STACK_NONE, 0}, {0, 1}, {0, 2}};
static struct incident_sample samples[] = {
	{.time_ns = 99 * SEC, .thread = 0, .stack = 2},
	{.time_ns = 101 * SEC, .thread = 0, .stack = 1, .quality = QUALITY_COMPLETE},
	{.time_ns = 109 * SEC, .thread = THREAD_NONE, .stack = STACK_NONE, .weight = 5, .cpu = 3},
};
static struct incident_event events[] = {
	{.time_ns = 102 * SEC, .kind = EVENT_GENERIC, .thread = 0, .stack = STACK_NONE,
	 .provider = "", .name = "Alloc", .nfields = 1},
};
static struct event_field fields[] = {{.name = "Size", .type = FIELD_UINT, .v.u = 64}};

static const struct segment_content content = {
	.nsamples = 3, .nnodes = 3, .nevents = 1, .nthreads = 1, .nframes = 3, .nfields = 1,
	.samples = samples, .nodes = nodes, .events = events, .fields = fields,
	.period_ns = {[STREAM_CPU] = 7, [STREAM_ALLOC] = 9},
};

static const uint32_t threads[] = {0};

/* An incident with the thread and the three frames, the latter backwards. */
static int tables(struct incident *in, uint32_t frame_of[3])
{
	static const struct frame_spec specs[] = {{"app", "idle", 3, 0}, {"app", "run", 2, 0},
						  {"app", "main", 1, 0}};
	uint32_t i, stack;
	int rc = sample_incident(in);

	for (i = 0; i < 3 && !rc; i++) {
		rc = sample_frames(in, &specs[i], 1, &stack);
		frame_of[2 - i] = i;
	}
	if (!rc && sample_thread(in, "app", 1, "app", 1) == UINT32_MAX)
		rc = ERR_MEMORY;
	return rc;
}

TEST(a_segment_is_clipped_to_the_window)
{
	struct incident in;
	uint32_t frames[3];

	assert_int_equal(tables(&in, frames), 0);
	assert_int_equal(incident_add_segment(&in, &content, threads, frames, NULL), 0);
	assert_int_equal(in.nsamples, 2);
	assert_int_equal(in.samples[0].time_ns, 101 * SEC);
	assert_string_equal(in.frames[in.stacks[in.samples[0].stack].frame].function, "run");
	assert_int_equal(in.samples[1].stack, STACK_NONE);
	assert_int_equal(in.samples[1].weight, 5);
	assert_int_equal(in.samples[1].cpu, 3);
	assert_int_equal(in.head.samples, 0);
	incident_count(&in);
	assert_int_equal(in.head.samples, 2);
	assert_int_equal(in.head.quality[QUALITY_COMPLETE], 1);
	incident_free(&in);
}

TEST(stacks_outside_of_the_window_are_left_out)
{
	struct incident in;
	uint32_t frames[3], before;

	assert_int_equal(tables(&in, frames), 0);
	before = in.nstacks;
	assert_int_equal(before, 3);         /* tables() made one of each frame: idle, run, main */
	assert_int_equal(incident_add_segment(&in, &content, threads, frames, NULL), 0);
	assert_int_equal(in.nstacks, 4);     /* and main;run, but not main;idle */
	incident_free(&in);
}

TEST(equal_stacks_of_two_segments_become_one)
{
	struct incident in;
	uint32_t frames[3];

	assert_int_equal(tables(&in, frames), 0);
	assert_int_equal(incident_add_segment(&in, &content, threads, frames, NULL), 0);
	assert_int_equal(incident_add_segment(&in, &content, threads, frames, NULL), 0);
	assert_int_equal(in.nstacks, 4);
	assert_int_equal(in.nsamples, 4);
	assert_int_equal(in.samples[0].stack, in.samples[2].stack);
	incident_free(&in);
}

TEST(events_come_with_their_names_and_fields)
{
	struct incident in;
	uint32_t frames[3];

	assert_int_equal(tables(&in, frames), 0);
	assert_int_equal(incident_add_segment(&in, &content, threads, frames, NULL), 0);
	assert_int_equal(in.nevents, 1);
	assert_string_equal(in.events[0].provider, "");
	assert_string_equal(in.events[0].name, "Alloc");
	assert_string_equal(in.fields[in.events[0].first_field].name, "Size");
	assert_int_equal(in.fields[0].v.u, 64);
	incident_free(&in);
}

TEST(a_period_is_taken_only_where_none_is_known)
{
	struct incident in;
	uint32_t frames[3];

	assert_int_equal(tables(&in, frames), 0);
	assert_int_equal(incident_add_segment(&in, &content, threads, frames, NULL), 0);
	assert_int_equal(in.head.period_ns[STREAM_CPU], 10000000);
	assert_int_equal(in.head.period_ns[STREAM_ALLOC], 9);
	incident_free(&in);
}

static void check_refused(struct segment_content damaged, const char *why)
{
	struct incident in;
	struct err err = {0};
	uint32_t frames[3];

	assert_int_equal(tables(&in, frames), 0);
	assert_int_equal(incident_add_segment(&in, &damaged, threads, frames, &err), ERR_FORMAT);
	assert_string_equal(err.text, why);
	assert_int_equal(in.nsamples, 0);
	incident_free(&in);
}

TEST(damaged_segments_are_refused_whole)
{
	struct incident_stack own_parent[] = {{0, 0}, {0, 1}, {0, 2}};
	struct incident_stack no_frame[] = {{STACK_NONE, 3}, {0, 1}, {0, 2}};
	struct incident_sample no_stack = {.time_ns = 101 * SEC, .stack = 3};
	struct incident_event no_field = {.time_ns = 101 * SEC, .thread = 0, .stack = STACK_NONE,
					 .first_field = 1, .nfields = 1};
	struct segment_content c = content;

	c.nodes = own_parent;
	check_refused(c, "a segment is damaged: stack 0 points nowhere");
	c.nodes = no_frame;
	check_refused(c, "a segment is damaged: stack 0 points nowhere");
	c = content;
	c.samples = &no_stack;
	c.nsamples = 1;
	check_refused(c, "a segment is damaged: sample 0 points nowhere");
	c = content;
	c.events = &no_field;
	check_refused(c, "a segment is damaged: event 0 points nowhere");
}

static int merge_step(void *ctx)
{
	struct incident in;
	uint32_t frames[3];
	int rc = tables(&in, frames);

	(void)ctx;
	if (!rc)
		rc = incident_add_segment(&in, &content, threads, frames, NULL);
	incident_free(&in);
	return rc;
}

TEST(merging_reports_lack_of_memory)
{
	assert_in_range(alloc_walk(merge_step, NULL), 20, 200);
}

/* In the window only the last one has a weight: 5 of a period of 7. */
TEST(a_sample_that_weighs_otherwise_than_its_period_is_no_unit)
{
	struct segment_content even = content;
	struct incident in;
	uint32_t frames[3];

	assert_int_equal(tables(&in, frames), 0);
	even.period_ns[STREAM_CPU] = 5;
	assert_int_equal(incident_add_segment(&in, &even, threads, frames, NULL), 0);
	assert_false(in.several_periods);
	incident_free(&in);
	assert_int_equal(tables(&in, frames), 0);
	assert_int_equal(incident_add_segment(&in, &content, threads, frames, NULL), 0);
	assert_true(in.several_periods);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_is_clipped_to_the_window),
		cmocka_unit_test(stacks_outside_of_the_window_are_left_out),
		cmocka_unit_test(equal_stacks_of_two_segments_become_one),
		cmocka_unit_test(events_come_with_their_names_and_fields),
		cmocka_unit_test(a_period_is_taken_only_where_none_is_known),
		cmocka_unit_test(a_sample_that_weighs_otherwise_than_its_period_is_no_unit),
		cmocka_unit_test(damaged_segments_are_refused_whole),
		cmocka_unit_test(merging_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
