/* Events with stacks as samples, once each. */
#include "analysis/event_samples.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <string.h>

static int add_event(struct incident *in, uint64_t ms, uint32_t thread, uint32_t stack,
		     const char *provider, const char *name, const struct event_field *fields,
		     uint32_t nfields)
{
	const struct incident_event e = {
		.time_ns = in->head.t0_ns + ms * 1000000, .kind = EVENT_GENERIC, .thread = thread,
		.stack = stack, .cpu = CPU_NONE, .provider = provider, .name = name,
		.nfields = nfields};

	return incident_add_event(in, &e, fields);
}

/* Two CPU samples at 10 and 20 ms; events between and around them, some without a stack. */
static int make(struct incident *in)
{
	static const struct event_field allocation[] = {
		{"TypeName", FIELD_TEXT, {.text = "System.String"}},
		{"AllocationAmount64", FIELD_UINT, {.u = 1000}},
		{"AllocationKind", FIELD_UINT, {.u = 1}}};
	struct incident_sample sampled = {.weight = 1, .cpu = CPU_NONE, .stream = STREAM_EVENT};
	uint32_t thread, stack = STACK_NONE;
	int rc = sample_incident(in);

	thread = rc ? UINT32_MAX : sample_thread(in, "web", 10, "main", 10);
	if (thread == UINT32_MAX)
		return ERR_MEMORY;
	rc = sample_stack(in, "app!main;app!work", &stack);
	if (!rc)
		rc = sample_add(in, thread, stack, QUALITY_COMPLETE, 2);
	if (!rc)
		rc = add_event(in, 5, thread, stack, "Clr", "GC/AllocationTick", allocation, 3);
	if (!rc)
		rc = add_event(in, 15, thread, stack, "Clr", "Loader/ModuleLoad", NULL, 0);
	if (!rc)
		rc = add_event(in, 16, thread, STACK_NONE, "Clr", "GC/Stop", NULL, 0);
	if (!rc)
		rc = add_event(in, 17, thread, stack, "Recorder", "Thread", NULL, 0);
	if (!rc)
		rc = add_event(in, 30, thread, stack, "sched", "sched_switch", NULL, 0);
	if (rc)
		return rc;
	/* This one's source has sampled it. */
	sampled.time_ns = in->head.t0_ns + 30 * 1000000;
	sampled.thread = thread;
	sampled.stack = stack;
	return incident_add_sample(in, &sampled);
}

static int make_and_add(void *ctx)
{
	struct incident in = {0};
	int rc = make(&in);

	(void)ctx;
	if (!rc)
		rc = event_samples_add(&in, NULL);
	incident_free(&in);
	return rc;
}

TEST(an_event_with_a_stack_is_a_sample_once)
{
	static const struct { unsigned ms; enum stream stream; unsigned weight; } expected[] = {
		{5, STREAM_EVENT, 1}, {5, STREAM_ALLOC, 1000}, {10, STREAM_CPU, 10000000},
		{15, STREAM_EVENT, 1}, {20, STREAM_CPU, 10000000}, {30, STREAM_EVENT, 1}};
	struct incident in = {0};
	uint32_t leaf, i;
	unsigned again;

	assert_int_equal(make(&in), 0);
	for (again = 0; again < 2; again++) {
		assert_int_equal(event_samples_add(&in, NULL), 0);
		assert_int_equal(in.nsamples, 6);
		for (i = 0; i < 6; i++) {
			assert_int_equal(in.samples[i].time_ns - in.head.t0_ns,
					 expected[i].ms * 1000000u);
			assert_int_equal(in.samples[i].stream, expected[i].stream);
			assert_int_equal(in.samples[i].weight, expected[i].weight);
		}
	}
	leaf = in.stacks[in.samples[0].stack].frame;
	assert_string_equal(in.frames[leaf].function, "GC/AllocationTick System.String");
	assert_string_equal(incident_frame_module(&in, leaf), "event");
	leaf = in.stacks[in.samples[1].stack].frame;
	assert_string_equal(in.frames[leaf].function, "LargeObject");
	assert_int_equal(in.stacks[in.samples[1].stack].parent, in.samples[0].stack);
	leaf = in.stacks[in.stacks[in.samples[0].stack].parent].frame;
	assert_string_equal(in.frames[leaf].function, "work");
	incident_free(&in);
}

/* It can be asked for by its name, as those that sources sample. */
TEST(its_name_is_a_metric)
{
	const struct incident_filter filter = {.event = "loader/moduleload"};
	struct incident in = {0};

	assert_int_equal(make(&in), 0);
	assert_int_equal(event_samples_add(&in, NULL), 0);
	assert_int_equal(incident_filter(&in, &filter, NULL), 0);
	assert_int_equal(in.nsamples, 4);            /* of other streams: 3 */
	incident_free(&in);
}

TEST(lack_of_memory_is_an_error)
{
	assert_in_range(alloc_walk(make_and_add, NULL), 10, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_with_a_stack_is_a_sample_once),
		cmocka_unit_test(its_name_is_a_metric),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
