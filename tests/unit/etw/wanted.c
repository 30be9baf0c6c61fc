/* What an ETW session is to deliver, as options and rules say it. */
#include "source/etw/wanted.h"
#include "source/etw/render.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct etw_wanted w;
static struct err err;

static int read_with(const struct capture *options, const char *rule_provider)
{
	static struct needs needs;

	memset(&needs, 0, sizeof(needs));
	memset(&err, 0, sizeof(err));
	if (rule_provider)
		assert_int_equal(needs_provider(&needs, rule_provider, UINT64_MAX, 4, NULL), 0);
	return etw_wanted_read(options, &needs, &w, &err);
}

/* With a rule on this event. */
static int read_rule(const struct capture *options, const char *provider, const char *event)
{
	static struct needs needs;
	struct need_event e = {.name = ""};

	memset(&needs, 0, sizeof(needs));
	memset(&err, 0, sizeof(err));
	snprintf(e.provider, sizeof(e.provider), "%s", provider);
	snprintf(e.name, sizeof(e.name), "%s", event);
	assert_int_equal(needs_provider(&needs, provider, UINT64_MAX, 4, NULL), 0);
	assert_int_equal(needs_event(&needs, &e, NULL), 0);
	return etw_wanted_read(options, &needs, &w, &err);
}

static uint32_t flags_of(const char *kernel_events)
{
	assert_int_equal(read_with(&(struct capture){.kernel_events = kernel_events}, NULL), 0);
	return w.kernel_flags;
}

static bool has_stack(const char *guid, uint8_t opcode)
{
	struct etw_guid wanted;
	uint32_t i;

	assert_true(etw_guid_read(guid, &wanted));
	for (i = 0; i < w.nstacks; i++)
		if (w.stacks[i].opcode == opcode &&
		    memcmp(&w.stacks[i].guid, &wanted, sizeof(wanted)) == 0)
			return true;
	return false;
}

static void refused(const char *providers, const char *why)
{
	assert_int_equal(read_with(&(struct capture){.providers = providers}, NULL), ERR_USAGE);
	if (!strstr(err.text, why))
		fail_msg("'%s' is not in: %s", why, err.text);
}

static const char *guid_of(const char *name)
{
	static char text[ETW_GUID_TEXT];
	struct etw_guid guid;

	etw_guid_of_name(name, &guid);
	etw_guid_text(guid.bytes, text);
	return text;
}

/* As .NET's sources say them: DiagnosticSourceEventSource, RuntimeEventSource. */
TEST(guid_of_a_name_is_that_of_its_event_source)
{
	assert_string_equal(guid_of("Microsoft-Diagnostics-DiagnosticSource"),
			    "adb401e1-5296-51f8-c125-5fda75826144");
	assert_string_equal(guid_of("System.Runtime"), "49592c0f-5a05-516d-aa4b-a64e02026c89");
	assert_string_equal(guid_of("SYSTEM.RUNTIME"), "49592c0f-5a05-516d-aa4b-a64e02026c89");
}

TEST(guid_is_read_with_and_without_braces)
{
	struct etw_guid guid;

	assert_true(etw_guid_read("{E13C0D23-ccbc-4e12-931b-d9cc2eee27e4}", &guid));
	assert_memory_equal(&guid, &etw_clr_guid, sizeof(guid));
	assert_true(etw_guid_read("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4", &guid));
	assert_false(etw_guid_read("e13c0d23-ccbc-4e12-931b-d9cc2eee27e", &guid));
	assert_false(etw_guid_read("{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4", &guid));
	assert_false(etw_guid_read("e13c0d23xccbc-4e12-931b-d9cc2eee27e4", &guid));
	assert_false(etw_guid_read("g13c0d23-ccbc-4e12-931b-d9cc2eee27e4", &guid));
}

TEST(nothing_given_means_samples_and_dotnet)
{
	assert_int_equal(read_with(&(struct capture){0}, NULL), 0);
	assert_int_equal(w.kernel_flags, 0x01000007);
	/* Samples, starts of processes and threads, image loads. */
	assert_int_equal(w.nstacks, 4);
	assert_int_equal(w.nproviders, 1);
	assert_true(w.clr && w.providers[0].has_guid && !w.providers[0].stacks);
	assert_int_equal(w.providers[0].keywords, 0x4000C039);
}

TEST(kernel_keywords_bring_what_stacks_need)
{
	assert_int_equal(read_with(&(struct capture){.kernel_events = "diskio, 0x400"}, NULL), 0);
	assert_int_equal(w.kernel_flags, 0x507);     /* and processes, threads, images */
	assert_int_equal(read_with(&(struct capture){.kernel_events = "None"}, NULL), 0);
	assert_int_equal(w.kernel_flags, 0);
	assert_int_equal(w.nstacks, 0);
	assert_int_equal(read_with(&(struct capture){.kernel_events = "Profil"}, NULL), ERR_USAGE);
	assert_non_null(strstr(err.text, "'Profile'"));
}

TEST(only_providers_leaves_out_the_rest)
{
	assert_int_equal(read_with(&(struct capture){.only_providers = "*A"}, NULL), 0);
	assert_int_equal(w.kernel_flags, 0);
	assert_int_equal(w.nproviders, 1);
	assert_false(w.clr);
	assert_int_equal(
		read_with(&(struct capture){.only_providers = "*A", .clr_events = "GC"}, NULL), 0);
	assert_true(w.clr);
	assert_int_equal(w.nproviders, 2);
}

TEST(a_provider_has_keywords_level_and_keys)
{
	const struct etw_wanted_provider *p = &w.providers[1];

	assert_int_equal(
		read_with(
			&(struct capture){.providers =
						  "Some-Provider:0x10:Verbose:@StacksEnabled=true;@"
						  "ProcessIDFilter=3 4;@EventIDsToDisable=9"},
			NULL),
		0);
	assert_string_equal(p->name, "Some-Provider");
	assert_false(p->has_guid);
	assert_int_equal(p->keywords, 0x10);
	assert_int_equal(p->level, 5);
	assert_true(p->stacks && p->events.are_left_out);
	assert_int_equal(p->npids, 2);
	assert_int_equal(p->pids[1], 4);
	assert_int_equal(p->events.n, 1);
	assert_int_equal(p->events.ids[0], 9);
	/* Keys may follow the name at once; * is all keywords. */
	assert_int_equal(
		read_with(&(struct capture){.providers = "*A:@StacksEnabled=true,*B:*:2"}, NULL),
		0);
	assert_true(p->stacks && p->has_guid && p->keywords == 0 && p->level == 5);
	assert_int_equal(w.providers[2].level, 2);
}

TEST(programs_and_stacks_of_some_events_are_keys_too)
{
	const struct etw_wanted_provider *p = &w.providers[1];

	assert_int_equal(
		read_with(&(struct capture){.providers = "*A:@ProcessNameFilter=w3wp.exe  "
							 "my.exe;@EventIDStacksToEnable=7 10"},
			  NULL),
		0);
	assert_string_equal(p->programs, "w3wp.exe;my.exe");
	assert_true(p->stacks && !p->with_stacks.are_left_out && p->with_stacks.n == 2);
	assert_int_equal(p->with_stacks.ids[1], 10);
	assert_int_equal(p->events.n, 0);
	/*
	 * Said twice: what one does not filter comes, and one stack filter is enough where the
	 * other asks for none.
	 */
	assert_int_equal(read_with(&(struct capture){.providers = "*A:@ProcessNameFilter=a.exe;@"
								  "EventIDStacksToDisable=7,*A:1"},
				   NULL),
			 0);
	assert_int_equal(w.nproviders, 2);
	assert_string_equal(p->programs, "");
	assert_int_equal(p->with_stacks.n, 1);
	assert_int_equal(
		read_with(
			&(struct capture){.providers = "*A:@EventIDsToEnable=1;@ProcessIDFilter=5,*"
						       "A:@EventIDsToEnable=2;@ProcessIDFilter=5"},
			NULL),
		0);
	assert_true(p->events.n == 0 && p->npids == 1);
}

/*
 * As PerfView does: processes, threads and images, and the CLR's code, or the stacks would be
 * numbers.
 */
TEST(only_providers_with_stacks_bring_what_names_them)
{
	assert_int_equal(
		read_with(&(struct capture){.only_providers = "*A:@StacksEnabled=true"}, NULL), 0);
	assert_int_equal(w.kernel_flags, 0x7);
	assert_true(w.clr && w.nproviders == 2);
	assert_int_equal(w.providers[1].keywords, 0x40000038);
	assert_int_equal(read_with(&(struct capture){.only_providers = "*A:@StacksEnabled=true",
						     .kernel_events = "None",
						     .clr_events = "None"},
				   NULL),
			 0);
	assert_true(w.kernel_flags == 0 && !w.clr);
}

TEST(what_makes_no_sense_is_refused)
{
	refused("*A:xyz", "keywords 'xyz'");
	refused("*A:1:loud", "'loud' is not a level");
	refused("*A:1:2:@Stacks=true", "one of @StacksEnabled");
	refused("*A:@StacksEnabled=maybe", "true or false");
	refused("*A:@ProcessIDFilter=1 x", "'x' is not a number");
	refused("*A:@ProcessIDFilter=1 2 3 4 5 6 7 8 9", "8 numbers at most");
	refused("*A:@EventIDsToEnable=70000", "is not a number");
	refused(":1:2", "names no provider");
	assert_int_equal(read_with(&(struct capture){.clr_events = "GC Jitt"}, NULL), ERR_USAGE);
	assert_non_null(strstr(err.text, "'Jit'"));
}

TEST(a_rule_adds_its_provider_and_filters_give_way)
{
	assert_int_equal(
		read_with(&(struct capture){.providers = "*A:1:2:@ProcessIDFilter=7"}, "*A"), 0);
	assert_int_equal(w.nproviders, 2);
	assert_int_equal(w.providers[1].npids, 0);
	assert_int_equal(w.providers[1].keywords, 0);        /* all */
	assert_int_equal(w.providers[1].level, 4);
	/*
	 * A rule on the CLR's events is of the provider that is there already, by name or by
	 * GUID.
	 */
	assert_int_equal(read_with(&(struct capture){0}, "E13C0D23-ccbc-4e12-931b-d9cc2eee27e4"),
			 0);
	assert_int_equal(w.nproviders, 1);
}

TEST(a_rule_on_the_kernel_brings_the_flag_of_its_event)
{
	static const struct {
		const char *event;
		uint32_t flags;
	} rules[] = {
		{"Process/Start", 0}, {"Thread/Stop", 0}, {"Image/Unload", 0},
		{"Process/PerfCtr", 0x8}, {"Thread/CSwitch", 0x10}, {"PerfInfo/TimerDPC", 0x20},
		{"PerfInfo/ISR", 0x40}, {"PerfInfo/SysClEnter", 0x80}, {"DiskIO/Read", 0x300},
		{"DiskIO/FlushBuffers", 0x100}, {"DiskIO/WriteInit", 0x400},
		{"Dispatcher/ReadyThread", 0x800}, {"Memory/TransitionFault", 0x1000},
		{"Memory/HardFault", 0x2200}, {"VirtualMem/Alloc", 0x4000},
		{"FileIO/MapFile", 0x8200}, {"TcpIp/SendIPV6", 0x10000}, {"UdpIp/Recv", 0x10000},
		{"Registry/SetValue", 0x20000}, {"ALPC/SendMessage", 0x100000},
		{"SplitIo/VolMgr", 0x200000}, {"DiskIO/DriverCompleteRequest", 0x800000},
		{"FileIO/OperationEnd", 0x2000000}, {"FileIO/Create", 0x4000000},
		{"fileio/write", 0x4000200},
	};
	static const char *const spellings[] = {
		"Windows Kernel", "windows kernel trace", "{9e814aad-3204-11d2-9a82-006008a86939}",
		"9E814AAD-3204-11d2-9a82-006008a86939"};
	size_t i, k;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		for (k = 0; k < sizeof(spellings) / sizeof(spellings[0]); k++) {
			if (read_rule(&(struct capture){.only_providers = "*A"}, spellings[k],
				      rules[i].event))
				fail_msg("%s: %s", rules[i].event, err.text);
			assert_int_equal(w.kernel_flags, rules[i].flags | 0x7);
			assert_int_equal(w.nproviders, 1);
		}
	assert_int_equal(read_rule(&(struct capture){0}, "Windows Kernel", "DiskIO/Read"), 0);
	assert_int_equal(w.kernel_flags, 0x01000307);
	assert_int_equal(read_rule(&(struct capture){.kernel_events = "None"}, "Windows Kernel",
				   "DiskIO/Read"),
			 0);
	assert_int_equal(w.kernel_flags, 0x307);
}

TEST(an_unknown_event_of_the_kernel_is_refused_with_the_nearest)
{
	struct capture none = {0};

	assert_int_equal(read_rule(&none, "Windows Kernel", "DiskIO/Raed"), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "no event 'DiskIO/Raed'; near is 'DiskIO/Read'"));
	assert_int_equal(read_rule(&none, "Windows Kernel", "PerfInfo/Sample"), ERR_UNSUPPORTED);
	assert_int_equal(read_rule(&none, "Windows Kernel", "Process/DCStart"), ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "only describes other events"));
	assert_int_equal(read_rule(&none, "Windows Kernel", "SystemConfig/CPU"), ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "trace files only"));
}

TEST(a_rule_or_provider_may_name_flags_of_the_kernel)
{
	static struct needs needs;

	memset(&needs, 0, sizeof(needs));
	assert_int_equal(needs_provider(&needs, "Windows Kernel Trace", 0x20000, 4, NULL), 0);
	assert_int_equal(etw_wanted_read(&(struct capture){0}, &needs, &w, &err), 0);
	assert_int_equal(w.kernel_flags, 0x01020007);
	assert_int_equal(
		read_with(&(struct capture){.providers = "Windows Kernel Trace:0x100"}, NULL), 0);
	assert_int_equal(w.kernel_flags, 0x01000107);
	assert_int_equal(read_with(&(struct capture){.only_providers = "Windows Kernel"}, NULL), 0);
	assert_int_equal(w.kernel_flags, 0x0101270F);
	assert_int_equal(w.nproviders, 0);
	assert_int_equal(
		read_with(&(struct capture){.only_providers = "windows kernel:Registry+DiskIO"},
			  NULL),
		0);
	assert_int_equal(w.kernel_flags, 0x00020107);
	assert_int_equal(
		read_with(&(struct capture){.only_providers = "Windows Kernel/DiskIO/Read,*A"},
			  NULL),
		0);
	assert_int_equal(w.kernel_flags, 0x307);
	assert_int_equal(w.nproviders, 1);
	refused("Windows Kernel:Registri", "near is 'Registry'");
	assert_int_equal(
		read_with(&(struct capture){.providers = "Windows Kernel/DiskIO/Raed"}, NULL),
		ERR_NOT_FOUND);
}

/* As KernelTraceEventParser.Keywords says them. */
TEST(groups_of_kernel_events_are_those_of_perfview)
{
	assert_int_equal(flags_of("Default"), 0x0101270F);
	assert_int_equal(flags_of("ThreadTime"), 0x01012F1F);
	assert_int_equal(flags_of("Verbose"), 0x0703FF1F);
	assert_int_equal(flags_of("OS"), 0x00B00067);
	assert_int_equal(flags_of("All"), 0x07B3FFFF);
	assert_int_equal(flags_of("None"), 0);
	assert_int_equal(flags_of("Default+Registry"), flags_of("Default,Registry"));
}

TEST(stacks_are_those_of_perfviews_guide)
{
	flags_of("All");
	assert_true(has_stack("ce1dbfb4-137e-4da6-87b0-3f59aa102cbc", 46));  /* Profile */
	assert_true(has_stack("ce1dbfb4-137e-4da6-87b0-3f59aa102cbc", 52));  /* SystemCall */
	assert_false(has_stack("ce1dbfb4-137e-4da6-87b0-3f59aa102cbc", 68)); /* DPC */
	assert_true(has_stack("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c", 1));   /* Process */
	/* ImageLoad: of the group of processes, by which the kernel writes it. */
	assert_true(has_stack("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c", 10));
	assert_true(has_stack("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c", 36));  /* ContextSwitch */
	assert_true(has_stack("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c", 50));  /* Dispatcher */
	assert_true(has_stack("3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c", 10));  /* PageFaults */
	assert_true(has_stack("3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c", 32));  /* HardFaults */
	assert_true(has_stack("3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c", 98));  /* VirtualAlloc */
	assert_true(has_stack("3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c", 12));  /* DiskIOInit */
	assert_false(has_stack("3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c", 10)); /* DiskIO */
	assert_true(has_stack("90cbdc39-4a3e-11d1-84f4-0000f80464e3", 64));  /* FileIOInit */
	assert_true(has_stack("90cbdc39-4a3e-11d1-84f4-0000f80464e3", 77));
	assert_false(has_stack("90cbdc39-4a3e-11d1-84f4-0000f80464e3", 76)); /* FileIO */
	assert_false(has_stack("90cbdc39-4a3e-11d1-84f4-0000f80464e3", 0));  /* DiskFileIO */
	assert_true(has_stack("ae53722e-c863-11d2-8659-00c04fa321a1", 16));  /* Registry */
	assert_true(has_stack("45d8cccd-539f-4b72-a8b7-5c683142609a", 33));  /* ALPC */
	assert_in_range(w.nstacks, 50, ETW_WANTED_STACKS_MAX - 1);
}

TEST(clr_default_is_that_of_perfviews_guide)
{
	assert_int_equal(read_with(&(struct capture){.clr_events = "Default"}, NULL), 0);
	assert_int_equal(w.providers[0].keywords, 0xC04FCCBD);
	assert_int_equal(read_with(&(struct capture){.clr_events = "GC+SupressNGen"}, NULL), 0);
	assert_int_equal(w.providers[0].keywords, 0x40040039);       /* and what names need */
}

TEST(clr_level_is_what_is_asked_or_what_a_rule_needs)
{
	assert_int_equal(read_with(&(struct capture){.clr_event_level = "Warning"}, NULL), 0);
	assert_int_equal(w.providers[0].level, 3);
	assert_int_equal(read_with(&(struct capture){.clr_event_level = "3"},
				   "Microsoft-Windows-DotNETRuntime"),
			 0);
	assert_int_equal(w.providers[0].level, 4);
	assert_int_equal(read_with(&(struct capture){0}, NULL), 0);
	assert_int_equal(w.providers[0].level, 5);
	assert_int_equal(read_with(&(struct capture){.clr_event_level = "loud"}, NULL), ERR_USAGE);
	assert_non_null(strstr(err.text, "--clr-event-level: 'loud' is not a level"));
}

TEST(tpl_events_are_the_tasks_of_dotnet)
{
	const struct etw_wanted_provider *p = &w.providers[1];
	struct etw_guid tpl;

	assert_true(etw_guid_read("2e5dba47-a3d2-4d16-8ee0-6671ffdcd7b5", &tpl));
	assert_int_equal(read_with(&(struct capture){.tpl_events = "None"}, NULL), 0);
	assert_int_equal(w.nproviders, 1);
	assert_int_equal(read_with(&(struct capture){.tpl_events = "Default",
						     .clr_event_level = "Informational"},
				   NULL),
			 0);
	assert_true(w.nproviders == 2 && p->has_guid && p->keywords == 0xFF && p->level == 4);
	assert_memory_equal(&p->guid, &tpl, sizeof(tpl));
	assert_true(p->stacks && p->with_stacks.n == 3 && !p->with_stacks.are_left_out);
	assert_int_equal(read_with(&(struct capture){.tpl_events = "Task"}, NULL), ERR_USAGE);
	assert_non_null(strstr(err.text, "'Tasks'"));
}

TEST(event_is_short_for_a_keyword_and_for_an_event_of_net)
{
	assert_int_equal(
		read_with(&(struct capture){.only_providers = "", .events = "kernel:Registry,"
					    "kernel:DiskIO/Read,clr:GC:GC/AllocationTick"}, NULL),
		0);
	assert_true(w.kernel_flags & ETW_FLAG_REGISTRY && w.kernel_flags & ETW_FLAG_DISK_IO);
	assert_int_equal(w.nproviders, 1);
	assert_true(w.clr && w.providers[0].keywords & 1);
	assert_int_equal(read_with(&(struct capture){.events = "kernel:Registri"}, NULL),
			 ERR_USAGE);
	assert_int_equal(read_with(&(struct capture){.events = "disk:Read"}, NULL), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guid_of_a_name_is_that_of_its_event_source),
		cmocka_unit_test(guid_is_read_with_and_without_braces),
		cmocka_unit_test(nothing_given_means_samples_and_dotnet),
		cmocka_unit_test(kernel_keywords_bring_what_stacks_need),
		cmocka_unit_test(only_providers_leaves_out_the_rest),
		cmocka_unit_test(a_provider_has_keywords_level_and_keys),
		cmocka_unit_test(programs_and_stacks_of_some_events_are_keys_too),
		cmocka_unit_test(only_providers_with_stacks_bring_what_names_them),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(a_rule_adds_its_provider_and_filters_give_way),
		cmocka_unit_test(a_rule_on_the_kernel_brings_the_flag_of_its_event),
		cmocka_unit_test(an_unknown_event_of_the_kernel_is_refused_with_the_nearest),
		cmocka_unit_test(a_rule_or_provider_may_name_flags_of_the_kernel),
		cmocka_unit_test(groups_of_kernel_events_are_those_of_perfview),
		cmocka_unit_test(stacks_are_those_of_perfviews_guide),
		cmocka_unit_test(clr_default_is_that_of_perfviews_guide),
		cmocka_unit_test(clr_level_is_what_is_asked_or_what_a_rule_needs),
		cmocka_unit_test(tpl_events_are_the_tasks_of_dotnet),
		cmocka_unit_test(event_is_short_for_a_keyword_and_for_an_event_of_net),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
