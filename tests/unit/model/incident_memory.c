/* What the marks of page faults and the sizes of processes make of the stream rss. */
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <string.h>

#define S 1000000000ULL
#define START_NS (100 * S)
#define PAGE 4096u

/* A fault of a process, or an event; times in seconds from the start, which is 60 s before now. */
struct told {
	unsigned at_s, cpu;
	enum stream stream;
	unsigned fault_s;                    /* of a mark: when the fault was */
	enum memory_mark mark;
	const char *who;
};

static const struct told gone_and_huge[] = {
	{1, 0, STREAM_RSS, .who = "a"},
	{1, 1, STREAM_RSS, .who = "b"},       /* at the same time on another CPU */
	{2, 0, STREAM_RSS, .who = "a"},
	{3, 0, STREAM_RSS_MARK, 1, MARK_GONE, NULL},
	{4, 0, STREAM_RSS_MARK, 2, MARK_HUGE, NULL},
	{5, 0, STREAM_RSS_MARK, 0, MARK_GONE, NULL},  /* of a fault before the window */
};

static uint32_t thread_named(struct incident *in, const char *who)
{
	return sample_thread(in, who, (uint32_t)who[0], who, (uint32_t)who[0]);
}

static int add_told(struct incident *in, const struct told *t)
{
	struct incident_sample s = {.time_ns = START_NS + t->at_s * S, .stream = (uint8_t)t->stream,
				    .cpu = (uint16_t)t->cpu, .thread = THREAD_NONE,
				    .stack = STACK_NONE, .weight = 10 * PAGE};

	if (t->who && (s.thread = thread_named(in, t->who)) == THREAD_NONE)
		return ERR_MEMORY;
	if (t->stream == STREAM_RSS_MARK || t->stream == STREAM_HEAP_MARK)
		s.weight = (uint64_t)memory_mark_weight(START_NS + t->fault_s * S, s.time_ns,
							t->mark);
	return incident_add_sample(in, &s);
}

static int add_last_size(struct incident *in, const char *who, unsigned at_s, unsigned before_kb,
			 unsigned anon_kb, unsigned killed)
{
	const struct event_field fields[] = {
		{.name = "BeforeKb", .type = FIELD_UINT, .v.u = before_kb},
		{.name = "AnonKb", .type = FIELD_UINT, .v.u = anon_kb},
		{.name = "Killed", .type = FIELD_UINT, .v.u = killed},
	};
	struct incident_event e = {.time_ns = START_NS + at_s * S, .kind = EVENT_GENERIC,
				   .thread = thread_named(in, who), .stack = STACK_NONE,
				   .provider = "Memory", .name = "RSS", .nfields = 3};

	return e.thread == THREAD_NONE ? ERR_MEMORY : incident_add_event(in, &e, fields);
}

static int add_size(struct incident *in, const char *who, unsigned at_s, unsigned before_kb,
		    unsigned anon_kb)
{
	return add_last_size(in, who, at_s, before_kb, anon_kb, 0);
}

static int add_exit(struct incident *in, const char *who, unsigned at_s)
{
	struct incident_event e = {.time_ns = START_NS + at_s * S, .kind = EVENT_PROCESS_EXIT,
				   .thread = thread_named(in, who), .stack = STACK_NONE,
				   .provider = "", .name = ""};

	return e.thread == THREAD_NONE ? ERR_MEMORY : incident_add_event(in, &e, NULL);
}

static int make(struct incident *in, const struct told *told, unsigned n)
{
	int rc = sample_incident(in);
	unsigned i;

	in->head.trigger_ns = START_NS + 60 * S;
	for (i = 0; !rc && i < n; i++)
		rc = add_told(in, &told[i]);
	return rc;
}

static double sum(const struct incident *in, enum stream stream, const char *who)
{
	double all = 0;
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == stream &&
		    strcmp(in->processes[in->threads[s->thread].process].name, who) == 0)
			all += (double)s->weight;
	}
	return all;
}

TEST(marks_name_their_fault_by_cpu_and_time)
{
	struct incident in;
	uint32_t i;

	assert_int_equal(make(&in, gone_and_huge, 6), 0);
	assert_int_equal(incident_memory(&in), 0);
	assert_true(sum(&in, STREAM_RSS, "a") == (10 + 10 * 512) * PAGE);
	assert_true(sum(&in, STREAM_RSS_NET, "a") == 10 * 512 * PAGE);
	assert_true(sum(&in, STREAM_RSS_NET, "b") == 10 * PAGE);
	assert_null(in.memory_factors);
	for (i = 0; i < in.nsamples; i++)
		assert_int_not_equal(in.samples[i].stream, STREAM_RSS_MARK);
	incident_free(&in);
}

TEST(net_samples_add_up_to_the_growth_of_each_process)
{
	struct incident in;

	assert_int_equal(make(&in, gone_and_huge, 6), 0);
	assert_int_equal(add_size(&in, "a", 1, 1000, 5000), 0);
	assert_int_equal(add_size(&in, "a", 5, 5000, 11240), 0);
	assert_int_equal(add_size(&in, "b", 5, 700, 600), 0);
	assert_int_equal(incident_memory(&in), 0);
	assert_true(sum(&in, STREAM_RSS_NET, "a") == 10240 * 1024);
	assert_true(sum(&in, STREAM_RSS_NET, "b") == 0);
	assert_true(in.memory_factors != NULL);
	incident_free(&in);
}

/* It freed most of it before it ended, say. */
TEST(growth_that_page_faults_do_not_explain_is_not_put_on_them)
{
	struct incident in;

	assert_int_equal(make(&in, gone_and_huge, 6), 0);
	assert_int_equal(add_size(&in, "b", 5, 600, 1024 * 1024), 0);
	assert_int_equal(incident_memory(&in), 0);
	assert_true(sum(&in, STREAM_RSS_NET, "b") == 10 * PAGE);
	incident_free(&in);
}

TEST(memory_of_a_process_that_ended_before_has_gone)
{
	static const struct told told[] = {
		{1, 0, STREAM_RSS, .who = "early"}, {2, 0, STREAM_RSS, .who = "late"}};
	struct incident in;

	assert_int_equal(make(&in, told, 2), 0);
	assert_int_equal(add_exit(&in, "early", 54), 0);
	assert_int_equal(add_exit(&in, "late", 56), 0);
	assert_int_equal(incident_memory(&in), 0);
	assert_true(sum(&in, STREAM_RSS_NET, "early") == 0);
	assert_true(sum(&in, STREAM_RSS_NET, "late") == 10 * PAGE);
	assert_true(sum(&in, STREAM_RSS, "early") == 10 * PAGE);
	incident_free(&in);
}

TEST(memory_of_a_process_that_the_kernel_killed_counts_as_it_was)
{
	static const struct told told[] = {{1, 0, STREAM_RSS, .who = "victim"}};
	struct incident in;

	assert_int_equal(make(&in, told, 1), 0);
	assert_int_equal(add_last_size(&in, "victim", 30, 8, 48, 1), 0);
	assert_int_equal(add_exit(&in, "victim", 31), 0);
	assert_int_equal(incident_memory(&in), 0);
	assert_true(sum(&in, STREAM_RSS_NET, "victim") == 40 * 1024);
	incident_free(&in);
}

/* A fault of the same CPU and moment is another thing. */
TEST(blocks_of_a_heap_that_were_freed_are_not_in_use)
{
	static const struct told told[] = {
		{1, 0, STREAM_HEAP, .who = "a"}, {1, 0, STREAM_RSS, .who = "a"},
		{2, 0, STREAM_HEAP, .who = "a"}, {2, 0, STREAM_RSS, .who = "a"},
		{3, 0, STREAM_HEAP_MARK, 1, MARK_GONE, NULL},
		{4, 0, STREAM_RSS_MARK, 2, MARK_GONE, NULL},
	};
	struct incident in;
	uint32_t i;

	assert_int_equal(make(&in, told, 6), 0);
	assert_int_equal(incident_memory(&in), 0);
	assert_true(sum(&in, STREAM_HEAP, "a") == 20 * PAGE);
	assert_true(sum(&in, STREAM_HEAP_NET, "a") == 10 * PAGE);
	assert_true(sum(&in, STREAM_RSS_NET, "a") == 10 * PAGE);
	for (i = 0; i < in.nsamples; i++)
		if (in.samples[i].stream == STREAM_HEAP_NET)
			assert_true(in.samples[i].time_ns == START_NS + 2 * S);
	assert_int_equal(in.nfreed, 1);
	assert_true(in.freed[0].weight == 10 * PAGE);
	assert_true(in.freed[0].time_ns == START_NS + 1 * S);
	assert_true(in.freed[0].freed_ns == START_NS + 3 * S);
	incident_free(&in);
}

/* Weights and marks that no recorder writes. */
TEST(impossible_marks_do_no_harm)
{
	struct incident_sample s = {.stream = STREAM_RSS_MARK, .thread = THREAD_NONE,
				    .stack = STACK_NONE, .time_ns = START_NS + 3 * S};
	static const uint64_t weights[] = {0, 1, INT64_MAX, UINT64_MAX};
	struct incident in;
	unsigned i;

	assert_int_equal(make(&in, gone_and_huge, 3), 0);
	for (i = 0; i < 4; i++) {
		s.weight = weights[i];
		assert_int_equal(incident_add_sample(&in, &s), 0);
	}
	in.samples[0].weight = UINT64_MAX;
	assert_int_equal(incident_memory(&in), 0);
	assert_true(sum(&in, STREAM_RSS_NET, "b") == 10 * PAGE);
	incident_free(&in);
}

static int step(void *ctx)
{
	struct incident in;
	int rc = make(&in, gone_and_huge, 6);

	(void)ctx;
	if (!rc)
		rc = add_size(&in, "a", 1, 1000, 5000);
	if (!rc)
		rc = incident_memory(&in);
	incident_free(&in);
	return rc;
}

TEST(an_allocation_that_fails_is_an_error)
{
	assert_in_range(alloc_walk(step, NULL), 5, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_name_their_fault_by_cpu_and_time),
		cmocka_unit_test(net_samples_add_up_to_the_growth_of_each_process),
		cmocka_unit_test(memory_of_a_process_that_ended_before_has_gone),
		cmocka_unit_test(memory_of_a_process_that_the_kernel_killed_counts_as_it_was),
		cmocka_unit_test(blocks_of_a_heap_that_were_freed_are_not_in_use),
		cmocka_unit_test(growth_that_page_faults_do_not_explain_is_not_put_on_them),
		cmocka_unit_test(impossible_marks_do_no_harm),
		cmocka_unit_test(an_allocation_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
