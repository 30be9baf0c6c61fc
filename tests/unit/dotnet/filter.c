/* Which events of .NET programs are delivered. */
#include "source/dotnet/filter.h"
#include "tests/support/test.h"

#include <string.h>

#define CLR "Microsoft-Windows-DotNETRuntime"

static struct needs needs;
static struct err err;

static void want(const char *provider, const char *names, const char *processes)
{
	struct need_event e = {.asked = true};

	strcpy(e.provider, provider);
	strcpy(e.name, names);
	strcpy(e.processes, processes);
	assert_int_equal(needs_filtered_provider(&needs, provider, 1, 5, &err), 0);
	assert_int_equal(needs_event(&needs, &e, &err), 0);
}

static bool passes(const char *provider, const char *name, uint32_t id)
{
	const struct event e = {.kind = EVENT_GENERIC, .provider = provider, .name = name,
				.flags = EVENT_FLAG_ID | id << EVENT_ID_SHIFT};
	struct dotnet_filter *f;
	bool pass;

	assert_int_equal(dotnet_filter_new(&needs, &f, &err), 0);
	pass = dotnet_filter_pass(f, &e);
	dotnet_filter_free(f);
	return pass;
}

TEST(only_events_with_these_numbers_or_names_pass)
{
	memset(&needs, 0, sizeof(needs));
	want("*A", "1 GC/Start", "");
	assert_true(passes("A", "One", 1) && passes("A", "GC/Start", 7));
	assert_false(passes("A", "Two", 2));
	assert_false(passes("B", "One", 1));
}

TEST(all_but_these_pass)
{
	memset(&needs, 0, sizeof(needs));
	want("*A", "!3", "");
	assert_true(passes("A", "One", 1));
	assert_false(passes("A", "Three", 3));
}

TEST(what_a_rule_wants_passes_whole)
{
	memset(&needs, 0, sizeof(needs));
	want("{E13C0D23-CCBC-4E12-931B-D9CC2EEE27E4}", "1", "");
	assert_false(passes(CLR, "GC/Stop", 2));
	assert_int_equal(needs_provider(&needs, CLR, 1, 4, &err), 0);
	assert_true(passes(CLR, "GC/Stop", 2));
}

TEST(an_event_without_a_process_is_none_of_a_named_one)
{
	memset(&needs, 0, sizeof(needs));
	want("*A", "*", "web;12");
	assert_false(passes("A", "One", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_events_with_these_numbers_or_names_pass),
		cmocka_unit_test(all_but_these_pass),
		cmocka_unit_test(what_a_rule_wants_passes_whole),
		cmocka_unit_test(an_event_without_a_process_is_none_of_a_named_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
