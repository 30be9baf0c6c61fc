/* Source lines and inlined functions, put into the stacks of an incident. */
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/* "app!main;app!run" three times and "app!main" once; frame 0 is main, frame 1 is run. */
static int make(struct incident *in)
{
	uint32_t thread, run, main_only;
	int rc = sample_incident(in);

	if (!rc)
		rc = sample_stack(in, "app!main;app!run", &run);
	if (!rc)
		rc = sample_stack(in, "app!main", &main_only);
	if (rc)
		return rc;
	thread = sample_thread(in, "app", 10, "app", 10);
	if (thread == UINT32_MAX)
		return ERR_MEMORY;
	rc = sample_add(in, thread, run, QUALITY_COMPLETE, 3);
	return rc ? rc : sample_add(in, thread, main_only, QUALITY_COMPLETE, 1);
}

/*
 * run() at a.cc:30 calls inner() at b.h:5, which is inlined into it, which calls deepest() at
 * b.h:9.
 */
static const struct incident_line lines[] = {
	{.function = "main", .file = "/src/a.cc", .line = 12},
	{.function = "other name of run", .file = "/src/a.cc", .line = 30},
	{.function = "inner", .file = "/src/b.h", .line = 5, .function_offset = 77},
	{.function = "deepest", .file = "/src/b.h", .line = 9, .function_offset = 78},
};
static const struct incident_expansion expansions[] = {{0, 1}, {1, 3}};

static const struct incident_frame *frame_at(const struct incident *in, uint32_t stack)
{
	return &in->frames[in->stacks[stack].frame];
}

TEST(inlined_functions_become_frames_below_their_caller)
{
	struct incident in;
	uint32_t stack;

	assert_int_equal(make(&in), 0);
	assert_int_equal(incident_expand(&in, expansions, lines, 4, NULL), 0);
	stack = in.samples[0].stack;
	assert_string_equal(frame_at(&in, stack)->function, "deepest");
	assert_int_equal(frame_at(&in, stack)->line, 9);
	assert_true(frame_at(&in, stack)->flags & FRAME_INLINED);
	stack = in.stacks[stack].parent;
	assert_string_equal(frame_at(&in, stack)->function, "inner");
	assert_true(frame_at(&in, stack)->flags & FRAME_INLINED);
	stack = in.stacks[stack].parent;
	assert_string_equal(frame_at(&in, stack)->function, "run");
	assert_string_equal(frame_at(&in, stack)->file, "/src/a.cc");
	assert_int_equal(frame_at(&in, stack)->line, 30);
	assert_false(frame_at(&in, stack)->flags & FRAME_INLINED);
	stack = in.stacks[stack].parent;
	assert_string_equal(frame_at(&in, stack)->function, "main");
	assert_int_equal(in.stacks[stack].parent, STACK_NONE);
	incident_free(&in);
}

TEST(an_inlined_frame_has_the_address_of_its_caller)
{
	struct incident in;
	const struct incident_frame *inlined, *caller;

	assert_int_equal(make(&in), 0);
	assert_int_equal(incident_expand(&in, expansions, lines, 4, NULL), 0);
	inlined = frame_at(&in, in.samples[0].stack);
	caller = frame_at(&in, in.stacks[in.samples[0].stack].parent);
	assert_int_equal(inlined->offset, caller->offset);
	assert_int_equal(inlined->module, caller->module);
	assert_int_equal(inlined->function_offset, 78);
	incident_free(&in);
}

TEST(samples_stay_as_many_and_share_what_they_shared)
{
	struct incident in;

	assert_int_equal(make(&in), 0);
	assert_int_equal(incident_expand(&in, expansions, lines, 4, NULL), 0);
	assert_int_equal(in.nsamples, 4);
	assert_int_equal(in.samples[0].stack, in.samples[2].stack);
	assert_string_equal(frame_at(&in, in.samples[3].stack)->function, "main");
	incident_free(&in);
}

TEST(a_frame_without_a_name_gets_one_and_a_named_one_keeps_its_own)
{
	const struct incident_line line[] = {{.function = "x"},
					     {.function = "found", .function_offset = 64}};
	const struct incident_expansion one[] = {{0, 1}, {1, 1}};
	struct incident in;
	uint32_t thread, stack;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(sample_stack(&in, "app!named;app!?", &stack), 0);
	thread = sample_thread(&in, "app", 10, "app", 10);
	assert_int_equal(sample_add(&in, thread, stack, QUALITY_COMPLETE, 1), 0);
	assert_int_equal(incident_expand(&in, one, line, 2, NULL), 0);
	stack = in.samples[0].stack;
	assert_string_equal(frame_at(&in, stack)->function, "found");
	assert_int_equal(frame_at(&in, stack)->function_offset, 64);
	assert_null(frame_at(&in, stack)->file);
	assert_string_equal(frame_at(&in, in.stacks[stack].parent)->function, "named");
	incident_free(&in);
}

TEST(frames_without_lines_stay_as_they_are)
{
	const struct incident_expansion none[] = {{0, 0}, {0, 0}};
	struct incident in;
	uint32_t stack, nstacks, nframes;

	assert_int_equal(make(&in), 0);
	stack = in.samples[0].stack;
	nstacks = in.nstacks;
	nframes = in.nframes;
	assert_int_equal(incident_expand(&in, none, lines, 4, NULL), 0);
	assert_int_equal(in.samples[0].stack, stack);
	assert_int_equal(in.nstacks, nstacks);
	assert_int_equal(in.nframes, nframes);
	incident_free(&in);
}

static int expand(void *ctx)
{
	struct incident in;
	int rc = make(&in);

	(void)ctx;
	if (!rc)
		rc = incident_expand(&in, expansions, lines, 4, NULL);
	incident_free(&in);
	return rc;
}

TEST(lack_of_memory_is_reported)
{
	assert_in_range(alloc_walk(expand, NULL), 5, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_functions_become_frames_below_their_caller),
		cmocka_unit_test(an_inlined_frame_has_the_address_of_its_caller),
		cmocka_unit_test(samples_stay_as_many_and_share_what_they_shared),
		cmocka_unit_test(a_frame_without_a_name_gets_one_and_a_named_one_keeps_its_own),
		cmocka_unit_test(frames_without_lines_stay_as_they_are),
		cmocka_unit_test(lack_of_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
