/* Counters of collections: shares of a period by hand. */
#include "base/os.h"
#include "source/runtime/gc_counters.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define MS NS_PER_MS
#define T0 (100 * NS_PER_SEC)

static struct needs needs;
static struct processes *processes;
static char said[600];

static void say(void *ctx, const struct event *e)
{
	size_t n = strlen(said);

	(void)ctx;
	if (e->flags & EVENT_FLAG_ABSENT)
		snprintf(said + n, sizeof(said) - n, "absent ");
	else
		snprintf(said + n, sizeof(said) - n, "%g ", e->value);
}

static struct gc_counters *counters_of(enum gc_runtime runtime, const char *const *names,
				       unsigned n)
{
	struct gc_counters *c;
	unsigned i;

	memset(&needs, 0, sizeof(needs));
	for (i = 0; i < n; i++)
		assert_int_equal(needs_counter(&needs, names[i], NS_PER_SEC, false, NULL), 0);
	assert_int_equal(gc_counters_new(&needs, runtime, &c, NULL), 0);
	gc_counters_poll(c, T0, say, NULL);          /* the first period begins */
	*said = '\0';
	return c;
}

static struct gc_counters *counters(const char *const *names, unsigned n)
{
	return counters_of(GC_DOTNET, names, n);
}

static void event(struct gc_counters *c, uint32_t pid, uint64_t at_ms, const char *name,
		  const char *field, uint64_t v)
{
	struct event_field f = {.name = field, .type = FIELD_UINT, .v.u = v};
	struct event e = {.time_ns = T0 + at_ms * MS, .name = name, .fields = &f, .nfields = 1};

	gc_counters_event(c, pid, &e);
}

static void program(struct gc_counters *c, uint32_t pid, const char *name)
{
	static uint64_t start_ns;

	gc_counters_program(c, process_add(processes, pid, ++start_ns, 0, 1, name));
}

static void pause(struct gc_counters *c, uint32_t pid, uint64_t from_ms, uint64_t to_ms,
		  uint64_t reason)
{
	event(c, pid, from_ms, "GC/SuspendEEStart", "Reason", reason);
	event(c, pid, to_ms, "GC/RestartEEStop", "ClrInstanceID", 0);
}

TEST(time_in_gc_is_the_share_of_the_period)
{
	static const char *const names[] = {
		".NET CLR Memory:% Time in GC:_Global_", ".NET CLR Memory:% Time in GC:web",
		".NET CLR Memory:% Time in GC:pid=8",
	};
	struct gc_counters *c = counters(names, 3);

	program(c, 7, "web");
	program(c, 8, "job");
	pause(c, 7, 100, 150, 1);
	pause(c, 7, 200, 900, 2);                    /* another reason: no collection */
	pause(c, 8, 300, 500, 6);
	event(c, 7, 950, "GC/SuspendEEStart", "Reason", 1);  /* is open */
	gc_counters_poll(c, T0 + 1000 * MS, say, NULL);
	assert_string_equal(said, "20 10 20 ");
	*said = '\0';
	event(c, 7, 1100, "GC/RestartEEStop", "ClrInstanceID", 0);
	gc_counters_poll(c, T0 + 1500 * MS, say, NULL);      /* not due */
	gc_counters_gone(c, 8);
	gc_counters_poll(c, T0 + 2000 * MS, say, NULL);
	assert_string_equal(said, "10 10 absent ");
	gc_counters_free(c);
}

TEST(pauses_that_are_told_together_are_in_the_share)
{
	static const char *const names[] = {".NET CLR Memory:% Time in GC:_Global_"};
	const struct event_field f[] = {{.name = "Pauses", .type = FIELD_UINT, .v.u = 3},
					{.name = "PauseMSec", .type = FIELD_DOUBLE, .v.d = 120.0}};
	const struct event e = {
		.time_ns = T0 + 500 * MS, .name = "GC/Pauses", .fields = f, .nfields = 2};
	struct gc_counters *c = counters(names, 1);

	program(c, 7, "web");
	pause(c, 7, 100, 150, 1);
	gc_counters_event(c, 7, &e);
	gc_counters_poll(c, T0 + 1000 * MS, say, NULL);
	assert_string_equal(said, "17 ");
	gc_counters_free(c);
}

TEST(collections_are_counted_by_generation_and_bytes_added)
{
	static const char *const names[] = {
		".NET CLR Memory:# Gen 0 Collections:_Global_",
		".NET CLR Memory:# Gen 2 Collections:web",
		".NET CLR Memory:# Bytes in all Heaps:web",
		"Processor:% Processor Time:_Total",
	};
	struct gc_counters *c = counters(names, 4);

	gc_counters_poll(c, T0 + 1000 * MS, say, NULL);
	assert_string_equal(said, "0 absent absent ");
	program(c, 7, "web");
	program(c, 8, "web");
	event(c, 7, 1100, "GC/Start", "Depth", 0);
	event(c, 8, 1100, "GC/Start", "Depth", 0);
	event(c, 8, 1200, "GC/Start", "Depth", 2);
	event(c, 8, 1300, "GC/Start", "Depth", 77);
	event(c, 7, 1300, "GC/HeapStats", "GenerationSize0", 1000);
	event(c, 8, 1300, "GC/HeapStats", "GenerationSize3", 24);
	*said = '\0';
	gc_counters_poll(c, T0 + 2000 * MS, say, NULL);
	assert_string_equal(said, "2 1 1024 ");
	gc_counters_free(c);
}

TEST(a_jvm_s_heap_is_what_it_says)
{
	static const char *const names[] = {
		"JVM Memory:# Bytes in all Heaps:_Global_", "JVM Memory:# Bytes in all Heaps:pid=8",
	};
	const char *other = "JVM Memory:% Time in GC:_Global_";
	struct gc_counters *c = counters_of(GC_JVM, names, 2);

	assert_true(gc_counters_want_bytes(c));
	gc_counters_bytes(c, 7, 5);                  /* a program that it was not told of */
	program(c, 7, "java");
	program(c, 8, "java");
	gc_counters_bytes(c, 7, 1000);
	gc_counters_poll(c, T0 + 1000 * MS, say, NULL);
	assert_string_equal(said, "1000 absent ");
	*said = '\0';
	gc_counters_bytes(c, 7, 500);
	gc_counters_bytes(c, 8, 24);
	gc_counters_poll(c, T0 + 2000 * MS, say, NULL);
	assert_string_equal(said, "524 24 ");
	gc_counters_free(c);
	c = counters_of(GC_JVM, &other, 1);
	assert_false(gc_counters_want_bytes(c));
	gc_counters_free(c);
}

TEST(a_thousand_pauses_in_a_period_are_all_in_the_share)
{
	static const char *const names[] = {".NET CLR Memory:% Time in GC:_Global_"};
	struct gc_counters *c = counters(names, 1);
	unsigned i;

	program(c, 7, "web");
	for (i = 0; i < 490; i++)
		pause(c, 7, 10 + 2 * i, 11 + 2 * i, 1);
	gc_counters_poll(c, T0 + 1000 * MS, say, NULL);
	assert_string_equal(said, "49 ");
	gc_counters_free(c);
}

TEST(a_name_that_is_wrong_is_told_the_nearest)
{
	struct err err;

	assert_true(gc_counter_is("jvm memory:x:y"));
	assert_false(gc_counter_is("Memory:Available Bytes:"));
	assert_int_equal(gc_counter_check("JVM Memory:% Time in GC:java", &err), 0);
	assert_int_equal(gc_counter_check(".NET CLR Memory:% Time in CG:_Global_", &err),
			 ERR_USAGE);
	assert_non_null(strstr(err.text, "did you mean '% Time in GC'"));
	assert_int_equal(
		gc_counter_check(".NET CLR Memory:Promoted Memory from Gen 0:_Global_", &err),
		ERR_USAGE);
	assert_non_null(strstr(err.text, "it has '% Time in GC', '# Gen 0 Collections', "));
}

static int open_processes(void **state)
{
	(void)state;
	return processes_new(&processes, NULL);
}

static int close_processes(void **state)
{
	(void)state;
	processes_free(processes);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_in_gc_is_the_share_of_the_period),
		cmocka_unit_test(pauses_that_are_told_together_are_in_the_share),
		cmocka_unit_test(collections_are_counted_by_generation_and_bytes_added),
		cmocka_unit_test(a_jvm_s_heap_is_what_it_says),
		cmocka_unit_test(a_thousand_pauses_in_a_period_are_all_in_the_share),
		cmocka_unit_test(a_name_that_is_wrong_is_told_the_nearest),
	};

	return cmocka_run_group_tests(tests, open_processes, close_processes);
}
