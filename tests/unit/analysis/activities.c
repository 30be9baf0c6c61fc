/* Requests of events made by hand, and the thread time in them. */
#include "analysis/activities.h"

#include "base/array.h"
#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"
#include "triggers/event_match.h"

#include <string.h>

#define AT_MS(ms) (100 * NS_PER_SEC + (uint64_t)(ms) * NS_PER_MS)

static void event(struct incident *in, const char *provider, const char *name, uint32_t thread,
		  unsigned ms, const char *id, const char *text)
{
	const struct event_field fields[] = {
		{.name = "path", .type = FIELD_TEXT, .v.text = text},
		{.name = "ActivityID", .type = FIELD_TEXT, .v.text = id}};
	const struct incident_event e = {
		.time_ns = AT_MS(ms), .kind = EVENT_GENERIC, .thread = thread,
		.stack = STACK_NONE, .cpu = CPU_NONE, .provider = provider, .name = name,
		.nfields = id ? 2 : text ? 1 : 0};

	assert_int_equal(incident_add_event(in, &e, fields), 0);
}

/* Thread time up to a moment; its leaf is a text of [thread]. */
static void spent(struct incident *in, uint32_t thread, unsigned end_ms, unsigned ms,
		  const char *leaf)
{
	const struct incident_module module = {.kind = OBJECT_JIT, .name = "[thread]",
					       .path = "[thread]"};
	const struct incident_frame frame = {.module = incident_add_module(in, &module),
					     .offset = strlen(leaf), .function = leaf};
	struct incident_sample s = {.time_ns = AT_MS(end_ms), .weight = ms * NS_PER_MS,
				    .thread = thread, .cpu = CPU_NONE, .stream = STREAM_OFF_CPU};

	s.stack = incident_add_stack(in, STACK_NONE, incident_add_frame(in, &frame));
	assert_int_equal(incident_add_sample(in, &s), 0);
}

static uint32_t begin(struct incident *in, const char *thread, uint32_t tid)
{
	if (!in->nthreads)
		assert_int_equal(sample_incident(in), 0);
	in->head.t0_ns = AT_MS(0);
	in->head.t1_ns = AT_MS(1000);
	return sample_thread(in, "shop", 10, thread, tid);
}

static uint64_t ms_of(const struct activities *a, uint32_t i, enum activity_time kind)
{
	return a->items[i].spent_ns[kind] / NS_PER_MS;
}

/*
 *	serve   |10 ........................... 60|
 *	query          |20 ......... 50|
 *	thread  CPU 10 | BLOCKED 30    | CPU 10 |   and 40 ms blocked after it
 */
static void make_nested(struct incident *in)
{
	uint32_t a = begin(in, "a", 11);

	event(in, "uprobe", "/bin/shop:serve", a, 10, NULL, "/cart");
	event(in, "uprobe", "/bin/shop:query", a, 20, NULL, NULL);
	event(in, "uprobe", "/bin/shop:query%return", a, 50, NULL, NULL);
	event(in, "uprobe", "/bin/shop:serve%return", a, 60, NULL, NULL);
	spent(in, a, 20, 10, "CPU_TIME");
	spent(in, a, 50, 30, "BLOCKED_TIME");
	spent(in, a, 60, 10, "CPU_TIME");
	spent(in, a, 100, 40, "BLOCKED_TIME");
}

TEST(functions_of_a_thread_are_nested_and_have_its_time)
{
	struct incident in = {0};
	struct activities a;
	struct err err;

	make_nested(&in);
	assert_int_equal(activities_find(&in, NULL, 0, &a, &err), 0);
	assert_int_equal(activities_measure(&in, &a, &err), 0);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.items[0].name, "serve");
	assert_string_equal(a.items[0].text, "/cart");
	assert_int_equal(a.items[0].t1_ns - a.items[0].t0_ns, 50 * NS_PER_MS);
	assert_int_equal(ms_of(&a, 0, SPENT_CPU), 20);
	assert_int_equal(ms_of(&a, 0, SPENT_BLOCKED), 30);
	assert_string_equal(a.items[1].name, "query");
	assert_int_equal(a.items[1].parent, 0);
	assert_int_equal(ms_of(&a, 1, SPENT_BLOCKED), 30);
	assert_int_equal(ms_of(&a, 1, SPENT_CPU), 0);
	assert_int_equal(a.ngaps, 0);
	activities_free(&a);
	incident_free(&in);
}

/* A piece of 40 ms that began before the request and ended after it has 10 ms of it. */
TEST(a_piece_of_time_is_split_where_a_request_begins_and_ends)
{
	struct incident in = {0};
	struct activities a;
	uint64_t whole = 0, inside = 0;
	uint32_t thread = begin(&in, "a", 11), i;
	struct err err;

	event(&in, "usdt", "/bin/shop:shop:request__start", thread, 20, NULL, "x");
	event(&in, "usdt", "/bin/shop:shop:request__done", thread, 30, NULL, "x");
	spent(&in, thread, 50, 40, "CPU_TIME");
	assert_int_equal(activities_find(&in, NULL, 0, &a, &err), 0);
	assert_int_equal(activities_measure(&in, &a, &err), 0);
	assert_int_equal(ms_of(&a, 0, SPENT_CPU), 10);
	assert_int_equal(activities_group(&in, &a, &err), 0);
	assert_int_equal(in.nsamples, 3);
	for (i = 0; i < in.nsamples; i++) {
		whole += in.samples[i].weight / NS_PER_MS;
		if (!strcmp(in.threads[in.samples[i].thread].name, "(Activities)"))
			inside += in.samples[i].weight / NS_PER_MS;
		assert_true(!i || in.samples[i].time_ns >= in.samples[i - 1].time_ns);
	}
	assert_int_equal(whole, 40);
	assert_int_equal(inside, 10);
	activities_free(&a);
	incident_free(&in);
}

/*
 * One thread starts, another stops: the first is in it until it waits. Nobody accounts for the
 * rest.
 */
TEST(what_was_given_away_is_unknown_after_the_first_wait)
{
	static char pair[] = "usdt:/bin/shop:shop:got;StopEvent=sent";
	char *pairs[] = {pair};
	struct incident in = {0};
	struct activities a;
	uint32_t first = begin(&in, "a", 11), second = begin(&in, "b", 12);
	struct err err;

	event(&in, "usdt", "/bin/shop:shop:got", first, 10, NULL, "7");
	event(&in, "usdt", "/bin/shop:shop:sent", second, 100, NULL, "7");
	spent(&in, first, 15, 5, "CPU_TIME");
	spent(&in, first, 200, 185, "BLOCKED_TIME");
	spent(&in, second, 200, 190, "BLOCKED_TIME");
	assert_int_equal(activities_find(&in, pairs, 1, &a, &err), 0);
	assert_int_equal(activities_measure(&in, &a, &err), 0);
	assert_int_equal(a.n, 1);
	assert_true(a.items[0].ended);
	assert_int_equal(ms_of(&a, 0, SPENT_CPU), 5);
	assert_int_equal(ms_of(&a, 0, SPENT_BLOCKED), 0);
	assert_int_equal(ms_of(&a, 0, SPENT_ASYNC), 85);
	assert_int_equal(a.ngaps, 1);
	activities_free(&a);
	incident_free(&in);
}

/* Ids of process 10, made as ActivityTracker makes them: /1/5, /1/5/3. */
#define PATH_1_5 "00000015-0000-0000-0000-0000c8999d59"
#define PATH_1_5_3 "00003015-0000-0000-0000-0000c8c99d59"

TEST(the_id_of_an_activity_is_a_path)
{
	char path[ACTIVITY_PATH_BYTES];

	assert_true(activity_path(PATH_1_5, 10, path));
	assert_string_equal(path, "/1/5");
	assert_true(activity_path(PATH_1_5_3, 10, path));
	assert_string_equal(path, "/1/5/3");
	/* 12, 3: a number of one byte with four higher bits: 0x312. */
	assert_true(activity_path("000012c3-0000-0000-0000-00007aac9d59", 10, path));
	assert_string_equal(path, "/786");
	assert_false(activity_path("6bf0e1a5-0000-0000-0000-000000000001", 10, path));
	assert_false(activity_path("no id", 10, path));
}

/* Another thread takes part where an event has the id; nested in it is what has a longer one. */
TEST(threads_take_part_where_their_events_have_the_id)
{
	const char *provider = "Shop-Orders";
	struct incident in = {0};
	struct activities a;
	uint32_t first = begin(&in, "a", 11), second = begin(&in, "b", 12);
	struct err err;

	event(&in, provider, "Order/Start", first, 10, PATH_1_5, "one");
	event(&in, provider, "Query/Start", second, 20, PATH_1_5_3, "two");
	event(&in, provider, "Query/Stop", second, 50, PATH_1_5_3, "two");
	event(&in, provider, "Note", first, 60, PATH_1_5, NULL);
	event(&in, provider, "Order/Stop", first, 70, PATH_1_5, "one");
	spent(&in, first, 70, 60, "BLOCKED_TIME");
	spent(&in, second, 100, 90, "CPU_TIME");
	assert_int_equal(activities_find(&in, NULL, 0, &a, &err), 0);
	assert_int_equal(activities_measure(&in, &a, &err), 0);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.items[0].name, "Order");
	assert_int_equal(a.items[1].parent, 0);
	assert_int_equal(ms_of(&a, 1, SPENT_CPU), 30);
	assert_int_equal(ms_of(&a, 0, SPENT_BLOCKED), 60);
	/* After the query its thread is back in the order, until that ends. */
	assert_int_equal(ms_of(&a, 0, SPENT_CPU), 50);
	activities_free(&a);
	incident_free(&in);
}

/* id: NULL = events of tasks have none in this trace */
static void task(struct incident *in, const char *name, uint32_t thread, unsigned ms,
		 const char *id)
{
	const struct event_field fields[] = {
		{.name = "TaskID", .type = FIELD_UINT, .v.u = 9},
		{.name = "ActivityID", .type = FIELD_TEXT, .v.text = id}};
	const struct incident_event e = {
		.time_ns = AT_MS(ms), .kind = EVENT_GENERIC, .thread = thread,
		.stack = STACK_NONE, .cpu = CPU_NONE, .name = name, .nfields = id ? 2 : 1,
		.provider = "System.Threading.Tasks.TplEventSource"};

	assert_int_equal(incident_add_event(in, &e, fields), 0);
}

TEST(a_task_is_part_of_the_request_that_scheduled_it)
{
	struct incident in = {0};
	struct activities a;
	uint32_t first = begin(&in, "a", 11), second = begin(&in, "b", 12);
	struct err err;

	event(&in, "Shop-Orders", "Order/Start", first, 10, PATH_1_5, "one");
	task(&in, "TaskScheduled/Send", first, 20, NULL);
	task(&in, "TaskExecute/Start", second, 30, NULL);
	task(&in, "TaskExecute/Stop", second, 70, NULL);
	event(&in, "Shop-Orders", "Order/Stop", first, 90, PATH_1_5, "one");
	spent(&in, first, 90, 80, "BLOCKED_TIME");
	spent(&in, second, 100, 100, "CPU_TIME");
	assert_int_equal(activities_find(&in, NULL, 0, &a, &err), 0);
	assert_int_equal(activities_measure(&in, &a, &err), 0);
	assert_int_equal(a.n, 1);
	assert_int_equal(ms_of(&a, 0, SPENT_CPU), 40);
	assert_int_equal(ms_of(&a, 0, SPENT_BLOCKED), 80);
	activities_free(&a);
	incident_free(&in);
}

/*
 *	first   order |10 .. 30| the pool's, with no id
 *	second                           order |60 .. 80|   the method goes on after its await
 */
TEST(an_async_method_leaves_its_thread_and_goes_on_on_another)
{
	struct incident in = {0};
	struct activities a;
	uint32_t first = begin(&in, "a", 11), second = begin(&in, "b", 12);
	struct err err;

	event(&in, "Shop-Orders", "Order/Start", first, 10, PATH_1_5, "one");
	task(&in, "TraceOperationBegin", first, 20, PATH_1_5);
	task(&in, "TaskCompleted", first, 30, NULL);
	task(&in, "TraceSynchronousWorkBegin", second, 60, NULL);
	event(&in, "Shop-Orders", "Order/Stop", second, 80, PATH_1_5, "one");
	spent(&in, first, 30, 30, "CPU_TIME");
	spent(&in, first, 100, 70, "BLOCKED_TIME");
	spent(&in, second, 100, 60, "CPU_TIME");
	assert_int_equal(activities_find(&in, NULL, 0, &a, &err), 0);
	assert_int_equal(activities_measure(&in, &a, &err), 0);
	assert_int_equal(ms_of(&a, 0, SPENT_CPU), 40);
	assert_int_equal(ms_of(&a, 0, SPENT_BLOCKED), 0);
	assert_int_equal(ms_of(&a, 0, SPENT_ASYNC), 30);
	activities_free(&a);
	incident_free(&in);
}

TEST(what_has_no_stop_goes_on_to_the_end_and_says_so)
{
	struct incident in = {0};
	struct activities a;
	struct err err;

	make_nested(&in);
	event(&in, "uprobe", "/bin/shop:serve", begin(&in, "b", 12), 900, NULL, "/pay");
	assert_int_equal(activities_find(&in, NULL, 0, &a, &err), 0);
	assert_int_equal(a.n, 3);
	assert_false(a.items[2].ended);
	assert_int_equal(a.items[2].t1_ns, in.head.t1_ns);
	activities_free(&a);
	incident_free(&in);
}

TEST(a_pair_that_is_not_there_is_said)
{
	static char pair[] = "usdt:/bin/shop:shop:got;StopEvent=sent";
	char *pairs[] = {pair};
	struct incident in = {0};
	struct activities a;
	struct err err;

	make_nested(&in);
	assert_int_equal(activities_find(&in, pairs, 1, &a, &err), ERR_NOT_FOUND);
	incident_free(&in);
}

struct walk {
	struct incident in;
	struct activities a;
};

static int measure_and_group(void *ctx)
{
	struct walk *w = ctx;
	struct err err;
	int rc = activities_measure(&w->in, &w->a, &err);

	return rc ? rc : activities_group(&w->in, &w->a, &err);
}

TEST(lack_of_memory_is_an_error_and_leaks_nothing)
{
	struct walk w = {.a = {0}};
	struct err err;

	make_nested(&w.in);
	assert_int_equal(activities_find(&w.in, NULL, 0, &w.a, &err), 0);
	assert_true(alloc_walk(measure_and_group, &w) > 4);
	activities_free(&w.a);
	incident_free(&w.in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_a_thread_are_nested_and_have_its_time),
		cmocka_unit_test(a_piece_of_time_is_split_where_a_request_begins_and_ends),
		cmocka_unit_test(what_was_given_away_is_unknown_after_the_first_wait),
		cmocka_unit_test(the_id_of_an_activity_is_a_path),
		cmocka_unit_test(threads_take_part_where_their_events_have_the_id),
		cmocka_unit_test(a_task_is_part_of_the_request_that_scheduled_it),
		cmocka_unit_test(an_async_method_leaves_its_thread_and_goes_on_on_another),
		cmocka_unit_test(what_has_no_stop_goes_on_to_the_end_and_says_so),
		cmocka_unit_test(a_pair_that_is_not_there_is_said),
		cmocka_unit_test(lack_of_memory_is_an_error_and_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
