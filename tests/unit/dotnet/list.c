/* Which providers of .NET events there are. */
#include "source/dotnet/known.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <string.h>

TEST(providers_of_dotnet_have_its_spelling)
{
	struct buf near = {0};

	assert_string_equal(dotnet_known("system.net.http"), "System.Net.Http");
	assert_null(dotnet_known("MyCompany-Orders"));
	dotnet_known_near("Microsoft.AspNetCore.Hostin", &near);
	assert_non_null(strstr(buf_text(&near), "Microsoft.AspNetCore.Hosting"));
	buf_free(&near);
	assert_non_null(strstr(dotnet_instead("Windows Kernel"), "tracepoints"));
	assert_null(dotnet_instead("MyCompany-Orders"));
}

TEST(counters_of_its_providers_are_known)
{
	struct buf near = {0};

	assert_true(dotnet_known_counter("system.runtime", "CPU-usage", &near));
	assert_int_equal(near.len, 0);
	assert_false(dotnet_known_counter("System.Runtime", "cpu-usge", &near));
	assert_string_equal(buf_text(&near), "'cpu-usage'");
	buf_reset(&near);
	assert_false(dotnet_known_counter("MyCompany-Orders", "cpu-usage", &near));
	assert_int_equal(near.len, 0);
	buf_free(&near);
}

/* Byte for byte as ECMA-335 has them in an assembly. */
TEST(names_of_event_sources_are_found_in_assemblies)
{
	static const char attribute[] = "\1\0\1\0T\16\4Name\6Orders\0";
	static const char last_of_more[] = "\0T\16\4Name\6OrdersT\16\4Guid";
	static const char class_name[] = "get_X\0Orders\0OnStart";
	static const char constant[] = "\15O\0r\0d\0e\0r\0s\0\0";
	static const char other[] = "OrdersById\0MyOrders\0O\0r\0d\0e\0r\0";
	static const char longer[] = "\21O\0r\0d\0e\0r\0s\0B\0y\0\0";
	static const char later[] = "\21M\0y\0O\0r\0d\0e\0r\0s\0\0";

	assert_true(dotnet_bytes_name(attribute, sizeof(attribute), "Orders"));
	assert_true(dotnet_bytes_name(last_of_more, sizeof(last_of_more), "Orders"));
	assert_true(dotnet_bytes_name(class_name, sizeof(class_name), "Orders"));
	assert_true(dotnet_bytes_name(constant, sizeof(constant), "Orders"));
	assert_false(dotnet_bytes_name(other, sizeof(other), "Orders"));
	assert_false(dotnet_bytes_name(longer, sizeof(longer), "Orders"));
	assert_false(dotnet_bytes_name(later, sizeof(later), "Orders"));
	assert_false(dotnet_bytes_name(other, 0, "Orders"));
	assert_false(dotnet_bytes_name(other, sizeof(other), ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(providers_of_dotnet_have_its_spelling),
		cmocka_unit_test(counters_of_its_providers_are_known),
		cmocka_unit_test(names_of_event_sources_are_found_in_assemblies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
