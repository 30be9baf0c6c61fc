/* Events with stacks as samples, once each. */
#include "analysis/event_samples.h"
#include "base/array.h"
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

/* A followed object's sample and what came of it, of a trace whose ticks had no leaf yet. */
TEST(a_followed_object_has_the_leaf_of_its_tick)
{
	struct incident_sample object = {.weight = 1000, .cpu = 1, .stream = STREAM_HEAP};
	uint32_t leaf = STACK_NONE, named = 0, other = 0, i;
	struct incident in = {0};

	assert_int_equal(make(&in), 0);
	object.time_ns = in.head.t0_ns + 5 * 1000000;
	object.thread = in.samples[0].thread;
	object.stack = in.samples[0].stack;
	assert_int_equal(incident_add_sample(&in, &object), 0);
	object.time_ns++;                    /* no tick's */
	assert_int_equal(incident_add_sample(&in, &object), 0);
	assert_int_equal(incident_sort(&in), 0);
	assert_int_equal(event_samples_add(&in, NULL), 0);
	for (i = 0; i < in.nsamples; i++) {
		if (in.samples[i].stream == STREAM_ALLOC)
			leaf = in.samples[i].stack;
		if (in.samples[i].stream == STREAM_HEAP && in.samples[i].time_ns < object.time_ns)
			named = in.samples[i].stack;
		if (in.samples[i].stream == STREAM_HEAP && in.samples[i].time_ns == object.time_ns)
			other = in.samples[i].stack;
	}
	assert_int_equal(named, leaf);
	assert_int_equal(other, object.stack);
	assert_int_not_equal(leaf, object.stack);
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

static void put(struct incident *in, uint64_t ms, uint32_t thread, const char *provider,
		const char *name, const struct event_field *fields, uint32_t n)
{
	assert_int_equal(add_event(in, ms, thread, STACK_NONE, provider, name, fields, n), 0);
}

TEST(disk_and_file_io_is_bytes_and_time_of_who_asked)
{
	static const struct event_field issue[] = {
		{"dev", FIELD_UINT, {.u = 254 << 20 | 1}}, {"sector", FIELD_UINT, {.u = 8}}};
	static const struct event_field complete[] = {
		{"dev", FIELD_UINT, {.u = 254 << 20 | 1}}, {"sector", FIELD_UINT, {.u = 8}},
		{"nr_sector", FIELD_UINT, {.u = 16}}, {"rwbs", FIELD_TEXT, {.text = "RA"}}};
	static const struct event_field ret = {"ret", FIELD_INT, {.i = 700}};
	static const struct event_field failed = {"ret", FIELD_INT, {.i = -11}};
	static const struct event_field asked[] = {{"IrpPtr", FIELD_UINT, {.u = 77}},
		{"FileName", FIELD_TEXT, {.text = "C:\\a.txt"}}};
	static const struct event_field done[] = {{"IrpPtr", FIELD_UINT, {.u = 77}},
		{"ExtraInfo", FIELD_UINT, {.u = 5}}};
	static const struct {
		unsigned ms;
		enum stream stream;
		unsigned weight;
		const char *leaf;
	} expected[] = {
		{3, STREAM_IO_BYTES, 8192, "device 254:1"},
		{3, STREAM_IO_TIME, 2000000, "device 254:1"},
		{7, STREAM_FILE_BYTES, 700, "sys_enter_read"},
		{7, STREAM_FILE_TIME, 3000000, "sys_enter_read"},
		{9, STREAM_FILE_TIME, 1000000, "sys_enter_write"},
		{12, STREAM_FILE_BYTES, 5, "C:\\a.txt"},
		{12, STREAM_FILE_TIME, 2000000, "C:\\a.txt"},
	};
	struct incident in = {0};
	uint32_t asker, other, i;

	assert_int_equal(sample_incident(&in), 0);
	asker = sample_thread(&in, "web", 10, "main", 10);
	other = sample_thread(&in, "idle", 11, "main", 11);
	put(&in, 1, asker, "block", "block_rq_issue", issue, 2);
	put(&in, 3, other, "block", "block_rq_complete", complete, 4);
	put(&in, 4, asker, "syscalls", "sys_enter_read", NULL, 0);
	/* Without its beginning nobody asked for it. */
	put(&in, 5, other, "syscalls", "sys_exit_read", &ret, 1);
	put(&in, 7, asker, "syscalls", "sys_exit_read", &ret, 1);
	put(&in, 8, asker, "syscalls", "sys_enter_write", NULL, 0);
	put(&in, 9, asker, "syscalls", "sys_exit_write", &failed, 1);
	put(&in, 10, asker, "Windows Kernel", "FileIO/Read", asked, 2);
	put(&in, 12, other, "Windows Kernel", "FileIO/OperationEnd", done, 2);
	assert_int_equal(event_samples_add(&in, NULL), 0);
	assert_int_equal(in.nsamples, COUNT_OF(expected));
	for (i = 0; i < in.nsamples; i++) {
		const struct incident_sample *s = &in.samples[i];

		assert_int_equal(s->time_ns - in.head.t0_ns, expected[i].ms * 1000000u);
		assert_int_equal(s->stream, expected[i].stream);
		assert_int_equal(s->weight, expected[i].weight);
		assert_int_equal(s->thread, asker);
		assert_string_equal(in.frames[in.stacks[s->stack].frame].function,
				    expected[i].leaf);
	}
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
		cmocka_unit_test(a_followed_object_has_the_leaf_of_its_tick),
		cmocka_unit_test(its_name_is_a_metric),
		cmocka_unit_test(disk_and_file_io_is_bytes_and_time_of_who_asked),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
