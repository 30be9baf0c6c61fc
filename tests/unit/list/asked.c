/* Which events of an ETW session a list of --event asks for. */
#include "source/list/asked.h"
#include "tests/support/test.h"

#define CLR "Microsoft-Windows-DotNETRuntime"

TEST(a_keyword_means_the_events_of_its_flag)
{
	assert_true(asked_event("kernel:DiskIOInit", "Windows Kernel", "DiskIO/ReadInit"));
	assert_true(asked_event("kernel:diskioinit", "Windows Kernel", "DiskIO/WriteInit"));
	assert_false(asked_event("kernel:DiskIOInit", "Windows Kernel", "DiskIO/Read"));
	assert_true(asked_event("kernel:imageload", "Windows Kernel", "Image/Load"));
}

/* They come with every session, with their stacks. */
TEST(processes_and_threads_are_not_meant_by_another_keyword)
{
	assert_false(asked_event("kernel:diskio", "Windows Kernel", "Thread/Start"));
	assert_false(asked_event("kernel:diskio", "Windows Kernel", "Process/Start"));
	assert_true(asked_event("kernel:process", "Windows Kernel", "Process/Start"));
}

TEST(an_event_of_the_kernel_may_be_named)
{
	assert_true(asked_event("kernel:DiskIO/Read", "Windows Kernel", "DiskIO/Read"));
	assert_false(asked_event("kernel:DiskIO/Read", "Windows Kernel", "DiskIO/Write"));
}

TEST(an_event_of_dotnet_is_meant_alone)
{
	assert_true(asked_event("clr:gc:gc/triggered", CLR, "GC/Triggered"));
	assert_false(asked_event("clr:gc:gc/triggered", CLR, "GC/Start"));
	assert_true(asked_event("clr:gc", CLR, "GC/Start"));
	assert_false(asked_event("clr:gc", "Windows Kernel", "DiskIO/Read"));
	assert_false(asked_event("kernel:diskio", CLR, "GC/Start"));
}

TEST(any_part_of_the_list_will_do)
{
	assert_true(asked_event("kernel:registry,clr:gc:GC/Start", CLR, "GC/Start"));
	assert_false(asked_event("kernel:nothing,clr:", "Windows Kernel", "DiskIO/Read"));
	assert_false(asked_event("", CLR, "GC/Start"));
	assert_false(asked_event(NULL, CLR, "GC/Start"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_keyword_means_the_events_of_its_flag),
		cmocka_unit_test(processes_and_threads_are_not_meant_by_another_keyword),
		cmocka_unit_test(an_event_of_the_kernel_may_be_named),
		cmocka_unit_test(an_event_of_dotnet_is_meant_alone),
		cmocka_unit_test(any_part_of_the_list_will_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
