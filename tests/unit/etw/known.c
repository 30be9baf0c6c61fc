/* Rules that can never fire are refused, with the nearest names. */
#include "source/etw/known.h"

#include "tests/support/test.h"

#include <string.h>

#define CLR "Microsoft-Windows-DotNETRuntime"

/* "" = taken; else the error. */
static const char *check(const char *provider, const char *event, const char *filter,
			 uint64_t keywords, unsigned level)
{
	static struct needs needs;
	static struct err err;
	struct need_event e = {0};

	memset(&needs, 0, sizeof(needs));
	strcpy(e.provider, provider);
	strcpy(e.name, event);
	strcpy(e.filter, filter);
	assert_int_equal(needs_provider(&needs, provider, keywords, (uint8_t)level, NULL), 0);
	assert_int_equal(needs_event(&needs, &e, NULL), 0);
	return etw_known_check(&needs, &err) ? err.text : "";
}

/* The same rules as event_name_is(), which compares the events later. */
TEST(names_are_those_that_would_match)
{
	assert_string_equal(check(CLR, "gc/stop", "", UINT64_MAX, 4), "");
	assert_string_equal(check(CLR, "GCStart", "", UINT64_MAX, 4), "");
	assert_string_equal(check(CLR, "GC/Stop/Info", "", UINT64_MAX, 4), "");
	assert_string_equal(check(CLR, "EventID(999)", "", UINT64_MAX, 4), "");
	assert_non_null(strstr(check(CLR, "GCStrt", "", UINT64_MAX, 4), "'GC/Start'"));
	assert_string_equal(check("MyCompany-Orders", "GCStrt", "", UINT64_MAX, 4), "");
}

TEST(fields_are_those_of_the_event)
{
	assert_string_equal(check(CLR, "GC/Start", "Depth>=2;ProcessName=a", 1, 4), "");
	assert_non_null(strstr(check(CLR, "GC/Start", "Dpth>=2", 1, 4), "nearest are Depth"));
	assert_non_null(strstr(check(CLR, "GC/Start", "Depth=two", 1, 4), "is a number"));
	assert_string_equal(check("Windows Kernel Trace", "DiskIO/Read", "DiskServiceTimeMSec>9",
				  UINT64_MAX, 4), "");
	assert_non_null(strstr(check("Windows Kernel", "DiskIO/Read", "DiskServiceTime>9",
				     UINT64_MAX, 4), "DiskServiceTimeMSec"));
}

TEST(keywords_and_level_must_bring_the_event)
{
	assert_string_equal(check(CLR, "GC/Start", "", 0x8001, 4), "");
	assert_string_equal(check(CLR, "GC/Start", "", 0, 4), "");
	assert_non_null(strstr(check(CLR, "GC/Start", "", 0x8000, 4), "needs the keyword 0x1"));
	assert_non_null(strstr(check(CLR, "Exception/Start", "", 1, 4), "keyword 0x8000"));
	assert_non_null(strstr(check(CLR, "GC/AllocationTick", "", 1, 4), "Level=5"));
	assert_string_equal(check(CLR, "GC/AllocationTick", "", 1, 5), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_that_would_match),
		cmocka_unit_test(fields_are_those_of_the_event),
		cmocka_unit_test(keywords_and_level_must_bring_the_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
