/* Filters: who, when, and without the kernel. */
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define MS 1000000LL

/* The small incident: 12 samples, 10 ms apart, the first 10 ms after t0, the trigger 5 s after. */
static int small(void **state)
{
	static struct incident in;

	*state = &in;
	return sample_small(&in);
}

static int done(void **state)
{
	incident_free(*state);
	return 0;
}

static void check_kept(void **state, const struct incident_filter *filter, uint32_t nsamples)
{
	struct incident *in = *state;
	struct err err = {0};
	uint64_t sum = 0;
	unsigned i;

	if (incident_filter(in, filter, &err))
		fail_msg("%s", err.text);
	assert_int_equal(in->nsamples, nsamples);
	assert_int_equal(in->head.samples, nsamples);
	for (i = 0; i < QUALITIES; i++)
		sum += in->head.quality[i];
	assert_int_equal(sum, nsamples);
}

static void an_empty_filter_keeps_everything(void **state)
{
	check_kept(state, &(struct incident_filter){0}, 12);
}

static void a_process_is_found_by_name_without_case(void **state)
{
	check_kept(state, &(struct incident_filter){.process = "APP"}, 8);
}

static void a_process_is_found_with_its_exe_suffix(void **state)
{
	check_kept(state, &(struct incident_filter){.process = "Node.exe"}, 3);
}

static void a_process_is_found_by_pid(void **state)
{
	check_kept(state, &(struct incident_filter){.process = "200"}, 3);
}

static void a_thread_is_found_by_its_number(void **state)
{
	struct incident *in = *state;

	check_kept(state, &(struct incident_filter){.tid = 101}, 3);
	assert_int_equal(in->head.quality[QUALITY_BROKEN], 1);
	assert_int_equal(in->head.quality[QUALITY_COMPLETE], 0);
}

static void a_range_is_relative_to_the_trigger_and_includes_its_ends(void **state)
{
	struct incident_filter filter = {.has_from = true, .has_to = true, .from_ns = -4980 * MS,
					 .to_ns = -4950 * MS};
	struct incident *in = *state;

	check_kept(state, &filter, 4);
	assert_int_equal(in->samples[0].time_ns, 100020000000ULL);
	assert_int_equal(in->head.t0_ns, 100020000000ULL);
	assert_int_equal(in->head.t1_ns, 100050000000ULL);
}

static void a_range_beyond_the_window_ends_where_the_window_does(void **state)
{
	struct incident_filter filter = {.has_from = true, .has_to = true, .from_ns = INT64_MIN,
					 .to_ns = INT64_MAX};
	struct incident *in = *state;

	check_kept(state, &filter, 12);
	assert_int_equal(in->head.t0_ns, 100000000000ULL);
	assert_int_equal(in->head.t1_ns, 110000000000ULL);
}

static void without_the_kernel_samples_stay_and_end_in_their_caller(void **state)
{
	struct incident *in = *state;
	struct buf text = {0};

	assert_string_equal(in->frames[in->stacks[in->samples[5].stack].frame].function, "read");
	check_kept(state, &(struct incident_filter){.no_kernel = true}, 12);
	incident_frame_text(in, in->stacks[in->samples[5].stack].frame, false, &text);
	assert_string_equal(buf_text(&text), "app!?");
	buf_free(&text);
}

/* A CPU without work; who has no known thread stays. */
static void the_idle_process_is_number_zero(void **state)
{
	struct incident *in = *state;
	uint32_t idle = sample_thread(in, "swapper", 0, "swapper/1", 0), stack;

	assert_int_equal(sample_stack(in, "[kernel]!default_idle;[kernel]!net_rx", &stack), 0);
	assert_int_equal(sample_add(in, idle, stack, QUALITY_COMPLETE, 3), 0);
	check_kept(state, &(struct incident_filter){.no_idle = true}, 12);
}

static void a_stack_of_kernel_frames_only_becomes_none(void **state)
{
	struct incident *in = *state;
	uint32_t stack;

	assert_int_equal(sample_stack(in, "[kernel]!entry;[kernel]!idle", &stack), 0);
	assert_int_equal(sample_add(in, 0, stack, QUALITY_FP, 1), 0);
	check_kept(state, &(struct incident_filter){.no_kernel = true}, 13);
	assert_int_equal(in->samples[12].stack, STACK_NONE);
}

static uint32_t add_stack_of(struct incident *in, const char *frames)
{
	uint32_t stack;

	assert_int_equal(sample_stack(in, frames, &stack), 0);
	assert_int_equal(sample_add(in, 0, stack, QUALITY_COMPLETE, 1), 0);
	return in->nsamples - 1;
}

static void check_stack(const struct incident *in, uint32_t sample, const char *expected)
{
	struct buf text = {0}, one = {0}, all = {0};
	uint32_t at = in->samples[sample].stack;

	for (; at != STACK_NONE; at = in->stacks[at].parent) {
		buf_reset(&one);
		buf_reset(&text);
		incident_frame_text(in, in->stacks[at].frame, false, &text);
		buf_printf(&one, "%s%s%s", buf_text(&text), all.len ? ";" : "", buf_text(&all));
		buf_reset(&all);
		buf_puts(&all, buf_text(&one));
	}
	assert_string_equal(buf_text(&all), expected);
	buf_free(&text);
	buf_free(&one);
	buf_free(&all);
}

/* An event's leaf is no code, and says what the sample is. */
static void only_managed_frames_stay_of_stacks_that_have_them(void **state)
{
	struct incident *in = *state;
	uint32_t mixed = add_stack_of(in, "libc.so.6!start;[java]!A.run;libjvm.so!Unsafe;"
					  "[java]!A.hash;libzip.so!crc32;[kernel]!page_fault");
	uint32_t event = add_stack_of(in, "python3!main;[python]!work;libc.so.6!write;"
					  "[event]!write");
	uint32_t native = add_stack_of(in, "app!main;[kernel]!read");

	check_kept(state, &(struct incident_filter){.managed_only = true}, 15);
	check_stack(in, mixed, "[java]!A.run;[java]!A.hash");
	check_stack(in, event, "[python]!work;[event]!write");
	check_stack(in, native, "app!main;[kernel]!read");
}

/* An extension that calls back is no part of the interpreter, and what Python calls stays. */
static void the_interpreter_does_not_stand_between_python_and_its_callers(void **state)
{
	struct incident *in = *state;
	uint32_t calls = add_stack_of(in, "libc.so.6!start;libpython3.11.so.1.0!Py_RunMain;"
					  "python3.11!eval;[python]!main;python3.11!eval;"
					  "numpy.so!apply;python3.11!eval;[python]!key;"
					  "python3.11!long_add;[kernel]!page_fault");
	uint32_t starts = add_stack_of(in, "python3.11!main;python3.11!Py_Initialize");
	uint32_t other = add_stack_of(in, "python-tool!main;[python]!work");

	assert_int_equal(incident_fold_interpreters(in, NULL), 0);
	check_stack(in, calls, "libc.so.6!start;[python]!main;numpy.so!apply;[python]!key;"
			       "python3.11!long_add;[kernel]!page_fault");
	check_stack(in, starts, "python3.11!main;python3.11!Py_Initialize");
	check_stack(in, other, "python-tool!main;[python]!work");
}

static void events_of_others_go_and_those_of_nobody_stay(void **state)
{
	struct incident_event e = {.kind = EVENT_COUNTER, .time_ns = 101000000000ULL,
				   .thread = THREAD_NONE, .stack = STACK_NONE};
	struct incident *in = *state;

	assert_int_equal(incident_add_event(in, &e, NULL), 0);
	e.thread = 0;
	assert_int_equal(incident_add_event(in, &e, NULL), 0);
	check_kept(state, &(struct incident_filter){.process = "node"}, 3);
	assert_int_equal(in->nevents, 1);
	assert_int_equal(in->events[0].thread, THREAD_NONE);
}

static void check_refused(void **state, struct incident_filter filter, int code, const char *why)
{
	struct incident *in = *state;
	struct err err = {0};

	assert_int_equal(incident_filter(in, &filter, &err), code);
	if (strcmp(err.text, why) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(in->nsamples, 12);
	assert_int_equal(in->head.t0_ns, 100000000000ULL);
}

static void who_is_not_there_is_answered_with_who_is(void **state)
{
	check_refused(state, (struct incident_filter){.process = "nginx"}, ERR_NOT_FOUND,
		      "no process 'nginx' in this incident; the busiest are app (100), node (200)");
	check_refused(state, (struct incident_filter){.tid = 7}, ERR_NOT_FOUND,
		      "no thread 7 in this incident; the busiest are 100, 101, 200");
	check_refused(state, (struct incident_filter){.process = "app", .tid = 200}, ERR_NOT_FOUND,
		      "no thread 200 of process 'app' in this incident; "
		      "the busiest are 100, 101, 200");
}

static void a_range_that_holds_nothing_is_refused(void **state)
{
	check_refused(state, (struct incident_filter){.has_from = true, .from_ns = 6000 * MS},
		      ERR_NOT_FOUND,
		      "the incident holds -5.000 s to 5.000 s around its trigger, and "
		      "the filter leaves nothing of it");
	check_refused(state,
		      (struct incident_filter){.has_from = true, .has_to = true, .from_ns = MS},
		      ERR_USAGE, "from (0.001 s) is after to (0.000 s)");
}

static int filter_step(void *ctx)
{
	struct incident_filter filter = {.process = "app", .no_kernel = true,
					 .managed_only = true};
	struct incident in;
	int rc = sample_small(&in);

	(void)ctx;
	if (!rc)
		rc = incident_filter(&in, &filter, NULL);
	incident_free(&in);
	return rc;
}

static int fold_step(void *ctx)
{
	struct incident in;
	uint32_t stack;
	int rc = sample_small(&in);

	(void)ctx;
	if (!rc)
		rc = sample_stack(&in, "libc.so.6!start;python3.11!eval;[python]!main;"
				       "python3.11!add", &stack);
	if (!rc)
		rc = incident_fold_interpreters(&in, NULL);
	incident_free(&in);
	return rc;
}

TEST(folding_reports_lack_of_memory)
{
	assert_in_range(alloc_walk(fold_step, NULL), 20, 200);
}

TEST(filtering_reports_lack_of_memory)
{
	assert_in_range(alloc_walk(filter_step, NULL), 20, 200);
}

#define each(test) cmocka_unit_test_setup_teardown(test, small, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		each(an_empty_filter_keeps_everything),
		each(a_process_is_found_by_name_without_case),
		each(a_process_is_found_with_its_exe_suffix),
		each(a_process_is_found_by_pid),
		each(a_thread_is_found_by_its_number),
		each(a_range_is_relative_to_the_trigger_and_includes_its_ends),
		each(a_range_beyond_the_window_ends_where_the_window_does),
		each(without_the_kernel_samples_stay_and_end_in_their_caller),
		each(the_idle_process_is_number_zero),
		each(a_stack_of_kernel_frames_only_becomes_none),
		each(only_managed_frames_stay_of_stacks_that_have_them),
		each(the_interpreter_does_not_stand_between_python_and_its_callers),
		each(events_of_others_go_and_those_of_nobody_stay),
		each(who_is_not_there_is_answered_with_who_is),
		each(a_range_that_holds_nothing_is_refused),
		cmocka_unit_test(folding_reports_lack_of_memory),
		cmocka_unit_test(filtering_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
