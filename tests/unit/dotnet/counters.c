/* Counters that .NET programs tell of themselves. Times are seconds. */
#include "base/os.h"
#include "source/dotnet/counters.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static struct needs needs;
static struct processes *processes;
static struct dotnet_counters *counters;
static char told[1000];

static void want(const char *name)
{
	assert_int_equal(needs_counter(&needs, name, NS_PER_SEC, false, NULL), 0);
}

static int set_up(void **state)
{
	(void)state;
	memset(&needs, 0, sizeof(needs));
	return processes_new(&processes, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	dotnet_counters_free(counters);
	counters = NULL;
	processes_free(processes);
	return 0;
}

/* A mean, or where seconds are given an increment. */
static void tell(uint32_t pid, const char *exe, double at_s, const char *name, double value,
		 double seconds)
{
	struct process *process = process_add(processes, pid, 1, 0, 0, NULL);
	struct event_field fields[] = {
		{.name = "Name", .type = FIELD_TEXT, .v.text = name},
		{.name = seconds > 0 ? "Increment" : "Mean", .type = FIELD_DOUBLE, .v.d = value},
		{.name = "IntervalSec", .type = FIELD_DOUBLE, .v.d = seconds},
	};
	struct event e = {.time_ns = (uint64_t)(at_s * 1e9), .kind = EVENT_GENERIC,
			  .provider = "System.Runtime", .name = "EventCounters",
			  .process = process, .fields = fields, .nfields = seconds > 0 ? 3 : 2};

	assert_non_null(process);
	process_set_exe(process, exe);
	dotnet_counters_event(counters, &e);
	process_unref(process);
}

static void put(void *ctx, const struct event *e)
{
	size_t n = strlen(told);

	(void)ctx;
	snprintf(told + n, sizeof(told) - n, e->flags & EVENT_FLAG_ABSENT ? "%s-" : "%s%g",
		 n ? " " : "", e->value);
}

/* The values of a second, in the order of the rules; "-" = absent. */
static const char *at(double s)
{
	told[0] = '\0';
	dotnet_counters_poll(counters, (uint64_t)(s * 1e9), put, NULL);
	return told;
}

TEST(a_mean_is_told_as_it_is_and_an_increment_a_second)
{
	want("System.Runtime:cpu-usage:shop");
	want("*system.runtime:alloc-rate:pid=7");
	want("System.Runtime:threadpool-queue-length:");
	want("Processor:% Processor Time:_Total");
	assert_int_equal(dotnet_counters_new(&needs, &counters, NULL), 0);
	assert_string_equal(dotnet_counters_source(counters, 1), "system.runtime");
	assert_null(dotnet_counters_source(counters, 3));
	at(10);
	tell(7, "/opt/shop", 10.5, "cpu-usage", 42, 0);
	tell(7, "/opt/shop", 10.5, "alloc-rate", 3000, 2);
	tell(7, "/opt/shop", 10.5, "other", 1, 0);
	assert_string_equal(at(11), "42 1500 -");
	assert_string_equal(at(11.5), "");               /* not due */
}

TEST(programs_of_a_name_are_summed_while_they_tell)
{
	want("System.Runtime:cpu-usage:shop");
	want("System.Runtime:cpu-usage:_Global_");
	assert_int_equal(dotnet_counters_new(&needs, &counters, NULL), 0);
	at(10);
	tell(7, "/opt/shop", 10.5, "cpu-usage", 10, 0);
	tell(8, "/opt/shop", 10.6, "cpu-usage", 20, 0);
	tell(9, "/opt/desk", 10.6, "cpu-usage", 30, 0);
	assert_string_equal(at(11), "30 60");
	tell(7, "/opt/shop", 13.5, "cpu-usage", 11, 0);
	assert_string_equal(at(14), "11 11");
	assert_string_equal(at(17), "- -");
}

TEST(without_such_a_rule_there_is_nothing)
{
	want("Processor:% Processor Time:_Total");
	want(".NET CLR Memory:% Time in GC:shop");
	assert_int_equal(dotnet_counters_new(&needs, &counters, NULL), 0);
	assert_null(counters);
	assert_true(dotnet_counters_poll(NULL, 1, put, NULL) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_mean_is_told_as_it_is_and_an_increment_a_second, set_up, tear_down),
		cmocka_unit_test_setup_teardown(programs_of_a_name_are_summed_while_they_tell,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_such_a_rule_there_is_nothing, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
