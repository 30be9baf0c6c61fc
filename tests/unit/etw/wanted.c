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
	assert_int_equal(read_with(&(struct capture){.only_providers = "*A"}, "Windows Kernel"), 0);
	assert_int_equal(w.kernel_flags, 0x01000007);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
