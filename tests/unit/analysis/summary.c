/*
 * The sums of samples that people are shown.
 */
#include "analysis/summary.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static int add(struct incident *in, uint32_t thread, const char *stack, uint32_t count)
{
	uint32_t node;
	int rc = sample_stack(in, stack, &node);

	if (!rc)
		rc = sample_add(in, thread, node, QUALITY_COMPLETE, count);
	in->head.samples = in->nsamples;
	return rc;
}

/* Seven samples: five of "web", two of "job"; recursion, and one without a stack. */
static int make(struct incident *in)
{
	uint32_t web, job;
	int rc = sample_incident(in);

	if (rc)
		return rc;
	web = sample_thread(in, "web", 10, "main", 10);
	job = sample_thread(in, "job", 20, "main", 20);
	if (web == UINT32_MAX || job == UINT32_MAX)
		return ERR_MEMORY;
	rc = add(in, web, "app!main;app!walk;app!walk", 3);
	if (!rc)
		rc = add(in, web, "app!main;app!walk", 1);
	if (!rc)
		rc = add(in, web, "", 1);
	if (!rc)
		rc = add(in, job, "app!main", 2);
	return rc;
}

static const struct summary_function *function(const struct summary *s, const char *name)
{
	uint32_t i;

	for (i = 0; i < s->nfunctions; i++) {
		if (strcmp(s->functions[i].name, name) == 0)
			return &s->functions[i];
	}
	fail_msg("no function %s", name);
	return NULL;
}

TEST(a_recursive_function_counts_once_a_sample)
{
	struct incident in = {0};
	struct summary s;

	assert_int_equal(make(&in), 0);
	assert_int_equal(summary_make(&in, false, &s, NULL), 0);
	assert_int_equal(s.nfunctions, 2);
	assert_int_equal(function(&s, "app!walk")->self, 4);
	assert_int_equal(function(&s, "app!walk")->inclusive, 4);
	assert_int_equal(function(&s, "app!main")->self, 2);
	assert_int_equal(function(&s, "app!main")->inclusive, 6);
	assert_int_equal(s.without_stack, 1);
	assert_string_equal(s.functions[0].name, "app!walk");
	summary_by_inclusive(&s);
	assert_string_equal(s.functions[0].name, "app!main");
	summary_free(&s);
	incident_free(&in);
}

/* They once were: what an event did a thousand times seemed to be where the time went. */
/* Enough for a second thread. */
TEST(many_samples_add_up_as_few_do)
{
	struct incident in = {0};
	struct summary s;
	uint32_t web;

	assert_int_equal(make(&in), 0);
	web = sample_thread(&in, "web", 10, "main", 10);
	assert_int_equal(add(&in, web, "app!main;app!walk", 20000), 0);
	assert_int_equal(summary_make(&in, false, &s, NULL), 0);
	assert_int_equal(function(&s, "app!walk")->self, 20004);
	assert_int_equal(function(&s, "app!main")->inclusive, 20006);
	assert_int_equal(s.without_stack, 1);
	assert_int_equal(s.stacks[0].samples, 20001);
	assert_int_equal(s.processes[0].samples, 20005);
	summary_free(&s);
	incident_free(&in);
}

TEST(samples_of_events_are_not_counted_beside_those_of_the_cpu)
{
	struct incident in = {0};
	struct summary s;
	uint32_t i;

	assert_int_equal(make(&in), 0);
	for (i = 0; i < 4; i++)
		in.samples[i].stream = i % 2 ? STREAM_EVENT : STREAM_ALLOC;
	assert_int_equal(summary_make(&in, false, &s, NULL), 0);
	assert_int_equal(s.whole, 3);
	assert_int_equal(s.nfunctions, 1);
	assert_int_equal(function(&s, "app!main")->self, 2);
	assert_int_equal(s.nstacks, 1);
	summary_free(&s);
	/* Without any of the CPU they are what there is. */
	for (i = 0; i < in.nsamples; i++)
		in.samples[i].stream = STREAM_EVENT;
	assert_int_equal(summary_make(&in, false, &s, NULL), 0);
	assert_int_equal(s.whole, 7);
	summary_free(&s);
	incident_free(&in);
}

TEST(samples_count_for_each_kind_of_code_in_their_stacks)
{
	struct incident in = {0};
	struct summary s;
	uint32_t web;

	assert_int_equal(sample_incident(&in), 0);
	web = sample_thread(&in, "web", 10, "main", 10);
	assert_int_equal(add(&in, web, "app!main;[java]!a.B.f;[java]!a.B.g;app!copy", 3), 0);
	assert_int_equal(add(&in, web, "app!main", 1), 0);
	assert_int_equal(add(&in, web, "", 1), 0);
	assert_int_equal(summary_make(&in, false, &s, NULL), 0);
	assert_int_equal(s.processes[0].code[CODE_JAVA], 3);
	assert_int_equal(s.processes[0].code[CODE_NATIVE], 4);
	assert_int_equal(s.processes[0].code[CODE_KERNEL], 0);
	summary_free(&s);
	incident_free(&in);
}

TEST(generated_code_without_a_name_is_counted)
{
	struct incident in = {0};
	struct summary s;
	uint32_t web, i;

	assert_int_equal(sample_incident(&in), 0);
	web = sample_thread(&in, "web", 10, "main", 10);
	assert_int_equal(add(&in, web, "app!main;[jit]!nobody;app!copy", 3), 0);
	assert_int_equal(add(&in, web, "app!main;[jit]!f", 1), 0);
	for (i = 0; i < in.nframes; i++)
		if (strcmp(in.frames[i].function, "nobody") == 0)
			in.frames[i].function = NULL;
	assert_int_equal(summary_make(&in, false, &s, NULL), 0);
	assert_int_equal(s.processes[0].code[CODE_GENERATED], 4);
	assert_int_equal(s.processes[0].unnamed, 3);
	summary_free(&s);
	incident_free(&in);
}

TEST(processes_and_stacks_come_heaviest_first)
{
	struct incident in = {0};
	struct summary s;

	assert_int_equal(make(&in), 0);
	assert_int_equal(summary_make(&in, false, &s, NULL), 0);
	assert_int_equal(s.nprocesses, 2);
	assert_string_equal(in.processes[s.processes[0].process].name, "web");
	assert_int_equal(s.processes[0].samples, 5);
	assert_int_equal(s.processes[0].quality[QUALITY_COMPLETE], 5);
	assert_int_equal(s.processes[1].samples, 2);
	assert_int_equal(s.nstacks, 3);
	assert_int_equal(s.stacks[0].samples, 3);
	assert_int_equal(s.stacks[1].samples, 2);
	assert_int_equal(s.stacks[2].samples, 1);
	summary_free(&s);
	incident_free(&in);
}

TEST(stacks_that_differ_only_in_call_sites_are_one)
{
	struct incident in = {0};
	struct summary s;
	struct incident_frame other;
	uint32_t web, main_node, leaf;

	assert_int_equal(make(&in), 0);
	web = sample_thread(&in, "web", 10, "main", 10);
	/* "app!main;app!walk" again, main calling from another place: a frame of its own. */
	assert_int_equal(sample_stack(&in, "app!main;app!walk", &leaf), 0);
	other = in.frames[in.stacks[in.stacks[leaf].parent].frame];
	other.offset += 4;
	main_node = incident_add_stack(&in, STACK_NONE, incident_add_frame(&in, &other));
	leaf = incident_add_stack(&in, main_node, in.stacks[leaf].frame);
	assert_int_equal(sample_add(&in, web, leaf, QUALITY_COMPLETE, 5), 0);
	assert_int_equal(summary_make(&in, false, &s, NULL), 0);
	assert_int_equal(s.nstacks, 3);
	assert_int_equal(s.stacks[0].samples, 6);    /* 1 + 5 */
	summary_free(&s);
	incident_free(&in);
}

TEST(counters_have_their_readings)
{
	struct incident_event e = {.kind = EVENT_COUNTER,
				   .thread = THREAD_NONE,
				   .stack = STACK_NONE,
				   .cpu = CPU_NONE,
				   .provider = "",
				   .name = "Memory:Free:"};
	static const double readings[] = {4, 8, 3};          /* at 1, 2 and 3 s; trigger at 2 s */
	struct incident in = {0};
	struct summary_counter *counters;
	uint32_t n, i;

	assert_int_equal(make(&in), 0);
	in.head.trigger_ns = 2000000000;
	for (i = 0; i < 3; i++) {
		e.time_ns = (i + 1) * 1000000000ULL;
		e.value = readings[i];
		assert_int_equal(incident_add_event(&in, &e, NULL), 0);
	}
	e.flags = EVENT_FLAG_ABSENT;
	e.name = "Process:Threads:gone";
	assert_int_equal(incident_add_event(&in, &e, NULL), 0);
	assert_int_equal(summary_counters(&in, &counters, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(counters[0].name, "Memory:Free:");
	assert_int_equal(counters[0].values, 3);
	assert_true(counters[0].min == 3 && counters[0].max == 8 && counters[0].mean == 5);
	assert_true(counters[0].at_trigger == 8);
	free(counters);
	incident_free(&in);
}

TEST(an_empty_incident_adds_up_to_nothing)
{
	struct incident in = {0};
	struct summary s;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(summary_make(&in, false, &s, NULL), 0);
	assert_int_equal(s.nprocesses + s.nfunctions + s.nstacks, 0);
	summary_free(&s);
	incident_free(&in);
}

static int summarize(void *ctx)
{
	struct summary s = {0};
	int rc = summary_make(ctx, false, &s, NULL);

	summary_free(&s);
	return rc;
}

TEST(lack_of_memory_is_an_error)
{
	struct incident in = {0};

	assert_int_equal(make(&in), 0);
	assert_in_range(alloc_walk(summarize, &in), 6, 60);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recursive_function_counts_once_a_sample),
		cmocka_unit_test(many_samples_add_up_as_few_do),
		cmocka_unit_test(samples_of_events_are_not_counted_beside_those_of_the_cpu),
		cmocka_unit_test(samples_count_for_each_kind_of_code_in_their_stacks),
		cmocka_unit_test(generated_code_without_a_name_is_counted),
		cmocka_unit_test(processes_and_stacks_come_heaviest_first),
		cmocka_unit_test(counters_have_their_readings),
		cmocka_unit_test(stacks_that_differ_only_in_call_sites_are_one),
		cmocka_unit_test(an_empty_incident_adds_up_to_nothing),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
