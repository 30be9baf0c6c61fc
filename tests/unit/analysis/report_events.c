/* The collections of a report. */
#include "analysis/report_events.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define AT_MS(ms) (100 * NS_PER_SEC + (uint64_t)(ms) * NS_PER_MS)

static struct incident in;

static int setup(void **state)
{
	(void)state;
	if (incident_init(&in))
		return -1;
	in.head.trigger_ns = AT_MS(1000);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	incident_free(&in);
	return 0;
}

static uint32_t thread(const char *process, uint32_t pid, uint32_t tid)
{
	const struct incident_process p = {.pid = pid, .name = process, .cmdline = ""};
	struct incident_thread t = {.tid = tid, .name = ""};

	t.process = incident_add_process(&in, &p);
	return incident_add_thread(&in, &t);
}

/* count, depth: -1 = the event has none */
static void event(const char *name, uint32_t thread, unsigned ms, int count, int depth)
{
	const struct event_field all[3] = {
		{.name = "Reason", .type = FIELD_UINT, .v.u = 1},
		{.name = "Count", .type = FIELD_UINT, .v.u = (uint64_t)count},
		{.name = "Depth", .type = FIELD_UINT, .v.u = (uint64_t)depth}};
	struct incident_event e = {.time_ns = AT_MS(ms),
				   .kind = EVENT_GENERIC,
				   .thread = thread,
				   .stack = STACK_NONE,
				   .cpu = CPU_NONE,
				   .provider = "X",
				   .name = name};
	struct event_field fields[3];

	fields[e.nfields++] = all[0];
	if (count >= 0)
		fields[e.nfields++] = all[1];
	if (depth >= 0)
		fields[e.nfields++] = all[2];
	assert_int_equal(incident_add_event(&in, &e, fields), 0);
}

/* Finds all collections; free() the result. */
static struct collection *find(uint32_t n)
{
	struct collection *all = NULL;
	uint32_t found = 0;

	assert_int_equal(collections_find(&in, &all, &found, NULL), 0);
	assert_int_equal(found, n);
	return all;
}

static void expect(const struct collection *c, uint32_t thread, unsigned ms, unsigned took_ms,
		   int generation)
{
	assert_int_equal(c->start->thread, thread);
	assert_int_equal(c->start->time_ns, AT_MS(ms));
	assert_int_equal(c->duration_ns, took_ms * NS_PER_MS);
	assert_true(c->generation == generation);
	assert_true(c->reason == 1);
}

TEST(each_has_what_its_runtime_told)
{
	uint32_t net = thread("web", 7, 7), node = thread("node", 8, 8),
		 worker = thread("node", 8, 9);
	struct collection *all;

	event("GC/Start", net, 100, 5, 1);
	event("GC/Stop", net, 160, 5, 1);
	event("GC/Start", node, 200, -1, 2);    /* two threads of one process, which do not count */
	event("GC/Start", worker, 210, -1, 0);
	event("GC/Stop", worker, 223, -1, -1);
	event("GC/Stop", node, 250, -1, 2);
	all = find(3);
	expect(&all[0], net, 100, 60, 1);
	expect(&all[1], node, 200, 50, 2);
	expect(&all[2], worker, 210, 13, 0);
	assert_true(all[0].count == 5);
	assert_true(all[1].count != all[1].count);
	assert_true(all[0].ended && all[1].ended && all[2].ended);
	free(all);
}

/* One that took 5 ms, not one of 805 ms; and an end that comes later is not that of the first. */
TEST(a_collection_whose_end_was_lost_is_counted_and_takes_no_other_end)
{
	uint32_t node = thread("node", 8, 8), net = thread("web", 7, 7);
	struct collection *all;

	event("GC/Start", node, 100, -1, 0);
	event("GC/Start", node, 900, -1, 2);
	event("GC/Stop", node, 905, -1, 2);
	event("GC/Stop", node, 980, -1, 0);
	event("GC/Start", net, 910, 5, 1);               /* with a number, twice the same is one */
	event("GC/Start", net, 912, 5, 1);
	event("GC/Stop", net, 913, 5, 1);
	event("GC/Start", net, 990, 6, 1);
	all = find(4);
	expect(&all[0], node, 900, 5, 2);
	expect(&all[1], net, 910, 3, 1);
	expect(&all[2], node, 100, 0, 0);
	expect(&all[3], net, 990, 0, 1);
	assert_true(all[0].ended && all[1].ended);
	assert_true(!all[2].ended && all[2].end_lost);
	assert_true(!all[3].ended && !all[3].end_lost);
	free(all);
}

static void sizes(const char *name, unsigned ms, const char *const *names, const uint64_t *v)
{
	struct incident_event e = {.time_ns = AT_MS(ms), .kind = EVENT_GENERIC,
				   .stack = STACK_NONE, .cpu = CPU_NONE, .provider = "X",
				   .name = name};
	struct event_field fields[3];

	for (; e.nfields < 3 && names[e.nfields]; e.nfields++)
		fields[e.nfields] = (struct event_field){
			.name = names[e.nfields], .type = FIELD_UINT, .v.u = v[e.nfields]};
	assert_int_equal(incident_add_event(&in, &e, fields), 0);
}

/* What stands at 4 is a generation only in a runtime that tells its size after a collection. */
TEST(the_heap_before_a_collection_is_the_sum_over_heaps_and_generations)
{
	static const char *const before[] = {"SizeBefore0", "SizeBefore3", "SizeBefore4"};
	static const char *const old[] = {"GenerationSize0", NULL};
	static const char *const new[] = {"GenerationSize0", "GenerationSize4", NULL};
	uint32_t net = thread("web", 7, 7);
	struct collection *all;

	event("GC/Start", net, 100, 1, 0);
	sizes("GC/PerHeapHistory", 110, before, (const uint64_t[]){1000, 20, 7});
	sizes("GC/PerHeapHistory", 111, before, (const uint64_t[]){2000, 30, 0});
	event("GC/Stop", net, 150, 1, 0);
	sizes("GC/HeapStats", 151, old, (const uint64_t[]){400});
	event("GC/Start", net, 200, 2, 0);
	sizes("GC/PerHeapHistory", 210, before, (const uint64_t[]){1000, 20, 7});
	event("GC/Stop", net, 240, 2, 0);
	sizes("GC/HeapStats", 241, new, (const uint64_t[]){500, 7});
	event("GC/Start", net, 300, 3, 0);
	event("GC/Stop", net, 330, 3, 0);
	all = find(3);
	assert_true(all[0].before_bytes == 3050 && all[0].after_bytes == 400);
	assert_true(all[1].before_bytes == 1027 && all[1].after_bytes == 507);
	assert_true(all[2].before_bytes != all[2].before_bytes);
	free(all);
}

/* A concurrent one: short pauses at its beginning and its end, and a small collection within. */
TEST(pauses_belong_to_what_begins_in_them_else_to_the_concurrent_one)
{
	const struct event_field start[] = {{.name = "Count", .type = FIELD_UINT, .v.u = 1},
					    {.name = "Depth", .type = FIELD_UINT, .v.u = 2},
					    {.name = "Type", .type = FIELD_UINT, .v.u = 1},
					    {.name = "Reason", .type = FIELD_UINT, .v.u = 1}};
	const struct incident_event e = {.time_ns = AT_MS(11), .kind = EVENT_GENERIC,
					 .stack = STACK_NONE, .cpu = CPU_NONE, .provider = "X",
					 .name = "GC/Start", .nfields = 4,
					 .thread = thread("a", 1, 1)};
	struct gc_process *p;
	struct collection *all;
	uint32_t n;

	event("GC/SuspendEEStart", e.thread, 10, -1, -1);
	assert_int_equal(incident_add_event(&in, &e, start), 0);
	event("GC/RestartEEStop", e.thread, 13, -1, -1);
	event("GC/SuspendEEStart", e.thread, 20, -1, -1);
	event("GC/Start", e.thread, 21, 2, 0);
	event("GC/Stop", e.thread, 25, 2, 0);
	event("GC/RestartEEStop", e.thread, 26, -1, -1);
	event("GC/SuspendEEStart", e.thread, 40, -1, -1);
	event("GC/RestartEEStop", e.thread, 44, -1, -1);
	event("GC/Stop", e.thread, 60, 1, 2);
	all = find(2);
	expect(&all[0], e.thread, 11, 49, 2);
	assert_int_equal(all[0].npauses, 2);
	assert_int_equal(all[0].pause_ns, 7 * NS_PER_MS);
	assert_int_equal(all[0].longest_pause_ns, 4 * NS_PER_MS);
	assert_int_equal(all[1].npauses, 1);
	assert_int_equal(all[1].pause_ns, 6 * NS_PER_MS);
	assert_int_equal(gc_processes(&in, all, 2, &p, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(p->all.pause_ns, 13 * NS_PER_MS);
	assert_int_equal(p->generations[2].pauses, 2);
	assert_int_equal(p->generations[0].longest_pause_ns, 6 * NS_PER_MS);
	free(p);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_has_what_its_runtime_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_collection_whose_end_was_lost_is_counted_and_takes_no_other_end, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			pauses_belong_to_what_begins_in_them_else_to_the_concurrent_one,
			setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_heap_before_a_collection_is_the_sum_over_heaps_and_generations,
			setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
