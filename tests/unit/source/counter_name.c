/* Which names of counters are values that programs tell of themselves. */
#include "source/counter_name.h"
#include "tests/support/test.h"

TEST(values_of_programs_are_known_by_their_category)
{
	assert_true(jvm_counter_is("jvm:java.threads.live:shop"));
	assert_false(jvm_counter_is("JVM Memory:% Time in GC:shop"));
	assert_true(event_counter_is("System.Runtime:cpu-usage:shop"));
	assert_true(event_counter_is("*Shop:orders:_Global_"));
	assert_true(prometheus_counter_is("Prometheus:up:http://127.0.0.1:9100/metrics"));
	assert_false(event_counter_is("Prometheus:up:http://127.0.0.1:9100/metrics"));
}

TEST(categories_of_windows_are_not)
{
	assert_false(event_counter_is("Hyper-V Hypervisor:Logical Processors:"));
	assert_false(event_counter_is("ASP.NET Applications:Requests/Sec:__Total__"));
	assert_false(event_counter_is(".NET CLR Memory:% Time in GC:shop"));
	assert_false(event_counter_is("Processor:% Processor Time:_Total"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_programs_are_known_by_their_category),
		cmocka_unit_test(categories_of_windows_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
