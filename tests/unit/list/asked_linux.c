/* What --providers and --event ask to record on Linux, as needs of sources. */
#include "source/list/asked.h"
#include "tests/support/test.h"

#include <string.h>

static struct needs needs;
static struct err err;

static int ask(const struct capture *capture)
{
	memset(&needs, 0, sizeof(needs));
	memset(&err, 0, sizeof(err));
	return asked_needs(capture, &needs, &err);
}

static int ask_providers(const char *list)
{
	return ask(&(struct capture){.providers = list});
}

static void is_event(uint32_t i, const char *provider, const char *name, bool stack)
{
	assert_true(i < needs.nevents && needs.events[i].asked);
	assert_string_equal(needs.events[i].provider, provider);
	assert_string_equal(needs.events[i].name, name);
	assert_int_equal(needs.events[i].stack, stack);
}

TEST(a_tracepoint_may_be_spelled_in_two_ways_and_be_a_pattern)
{
	assert_int_equal(ask_providers("sched:sched_switch:@StacksEnabled=true,sched/sched_waking,"
				       "block:*,irq"), 0);
	assert_int_equal(needs.nevents, 4);
	is_event(0, "sched", "sched_switch", true);
	is_event(1, "sched", "sched_waking", false);
	is_event(2, "block", "*", false);
	is_event(3, "irq", "*", false);
	assert_int_equal(needs.nproviders, 3);
	assert_false(needs.providers[0].unfiltered);
}

TEST(probes_keep_the_colons_of_their_names)
{
	assert_int_equal(ask_providers("uprobe:/bin/a:f%return,usdt:/bin/p:python:gc__start"
				       ":@ProcessIDFilter=7 8;@ProcessNameFilter=p.exe"), 0);
	is_event(0, "uprobe", "/bin/a:f%return", false);
	is_event(1, "usdt", "/bin/p:python:gc__start", false);
	assert_string_equal(needs.events[0].processes, "");
	assert_string_equal(needs.events[1].processes, "p.exe;7;8");
}

TEST(providers_of_net_have_keywords_and_level)
{
	assert_int_equal(ask_providers("*My-Source:0x10:2,Microsoft-Windows-DotNETRuntime"), 0);
	assert_int_equal(needs.nevents, 0);
	assert_int_equal(needs.nproviders, 2);
	assert_string_equal(needs.providers[0].name, "*My-Source");
	assert_int_equal(needs.providers[0].keywords, 0x10);
	assert_int_equal(needs.providers[0].level, 2);
	assert_true(needs.providers[0].unfiltered && needs.providers[1].unfiltered);
	assert_true(needs.providers[1].keywords == UINT64_MAX);
}

TEST(numbers_of_events_and_processes_filter_those_of_net)
{
	assert_int_equal(ask_providers("*A:@EventIDsToEnable=1 2,*B:@EventIDsToDisable=3,"
				       "*C:@ProcessNameFilter=web"), 0);
	assert_int_equal(needs.nproviders, 3);
	is_event(0, "*A", "1 2", false);
	is_event(1, "*B", "!3", false);
	is_event(2, "*C", "*", false);
	assert_string_equal(needs.events[2].processes, "web");
	assert_false(needs.providers[0].unfiltered);
}

TEST(event_is_short_for_both)
{
	assert_int_equal(ask(&(struct capture){
		.events = "kernel:DiskIO,kernel:sched:sched_switch,clr:GC:GC/AllocationTick"}), 0);
	assert_int_equal(needs.nevents, 3);
	is_event(0, "block", "block_rq_complete", true);
	is_event(1, "sched", "sched_switch", true);
	is_event(2, "Microsoft-Windows-DotNETRuntime", "10", true);
	assert_int_equal(needs.providers[2].keywords, 1);
}

TEST(a_keyword_of_windows_kernel_means_tracepoints)
{
	assert_int_equal(ask_providers("Windows Kernel:ContextSwitch"), 0);
	assert_int_equal(needs.nevents, 1);
	is_event(0, "sched", "sched_switch", false);
	assert_int_equal(ask_providers("Windows Kernel:Registry"), ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "Linux has no registry"));
}

TEST(what_cannot_be_is_refused)
{
	assert_int_equal(ask_providers("sched:sched_switch:@EventIDsToEnable=1"), ERR_USAGE);
	assert_non_null(strstr(err.text, "events of sched have no numbers"));
	assert_int_equal(ask_providers("sched:sched_switch:@Stacks=true"), ERR_USAGE);
	assert_int_equal(ask_providers("uprobe"), ERR_USAGE);
	assert_non_null(strstr(err.text, "uprobe:/path:function"));
	assert_int_equal(ask(&(struct capture){.events = "kernel:DiscIO"}), ERR_USAGE);
	assert_non_null(strstr(err.text, "'DiskIO'"));
	assert_int_equal(ask(&(struct capture){.events = "clr:GC:GC/Alocation"}), ERR_USAGE);
	assert_int_equal(ask(&(struct capture){.events = "gc"}), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tracepoint_may_be_spelled_in_two_ways_and_be_a_pattern),
		cmocka_unit_test(probes_keep_the_colons_of_their_names),
		cmocka_unit_test(providers_of_net_have_keywords_and_level),
		cmocka_unit_test(numbers_of_events_and_processes_filter_those_of_net),
		cmocka_unit_test(event_is_short_for_both),
		cmocka_unit_test(a_keyword_of_windows_kernel_means_tracepoints),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
