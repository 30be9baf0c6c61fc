/* Names of counters and what is calculated from two readings. */
#include "base/array.h"
#include "base/os.h"
#include "source/counter/proc_table.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

static const struct counter_def *find(const char *name, struct proc_counter *out)
{
	struct err err = {0};

	if (proc_counter_find(name, out, &err))
		fail_msg("%s", err.text);
	return out->def;
}

TEST(name_is_found_without_regard_to_case)
{
	struct proc_counter c;

	assert_string_equal(find("PROCESSOR:% processor time:_Total", &c)->name,
			    "% Processor Time");
	assert_string_equal(c.category->name, "Processor");
	assert_string_equal(c.instance, "_Total");
	find("Memory:Available MBytes:", &c);
	assert_string_equal(c.instance, "");
	find("Cgroup:memory.current:/a:b", &c);
	assert_string_equal(c.instance, "/a:b");
	find("Process:Working Set:no such process", &c);
}

TEST(wrong_name_gets_the_nearest)
{
	static const struct { const char *name; int code; const char *says;
	} table[] = {
		{"Processer:% Processor Time:_Total", ERR_NOT_FOUND, "did you mean 'Processor' or"},
		{"Disk:% Disk Time:sda", ERR_NOT_FOUND, "'PhysicalDisk' or 'LogicalDisk'"},
		{"Xyzzy:a:b", ERR_NOT_FOUND, "there are Processor, System, Memory"},
		{".NET CLR Exceptions:# of Exceps Thrown / sec:_Global_", ERR_NOT_FOUND,
		 "is one of Windows; here use System.Runtime:exception-count:PROGRAM"},
		{"Processor:% Procesor Time:_Total", ERR_NOT_FOUND, "'% Processor Time'"},
		{"Processor:Processor Time:_Total", ERR_NOT_FOUND, "'% Processor Time'"},
		{"Memory:Availble MBytes:", ERR_NOT_FOUND, "'Available MBytes'"},
		{"Memory:zzzzzzzz:", ERR_NOT_FOUND, "'recorder counters Memory:' lists all"},
		{"Memory:Available Bytes", ERR_USAGE, "is not CATEGORY:COUNTER:INSTANCE"},
		{"", ERR_USAGE, "is not CATEGORY:COUNTER:INSTANCE"},
		{":a:b", ERR_USAGE, "no category"},
		{"a::b", ERR_USAGE, "no name between"},
		{"Memory:Available MBytes:@x", ERR_USAGE, "'@x' cannot be an instance of Memory"},
		{"Processor:% Processor Time:x", ERR_USAGE,
		 "'x' cannot be an instance of Processor"},
		{"Pressure:Some Avg10:cpuu", ERR_USAGE, "allowed: cpu, memory, io or irq"},
		{"Process:Thread Count:pid=abc", ERR_USAGE, "'pid=abc' cannot be an instance"},
		{"Process:Thread Count:pid=999999999999", ERR_USAGE, "pid=N or _Total"},
	};
	struct proc_counter c;
	size_t i;

	for (i = 0; i < COUNT_OF(table); i++) {
		struct err err = {0};

		assert_int_equal(proc_counter_find(table[i].name, &c, &err), table[i].code);
		if (!strstr(err.text, table[i].says))
			fail_msg("'%s': %s", table[i].name, err.text);
	}
}

TEST(every_counter_of_the_table_is_sound)
{
	size_t i;

	for (i = 0; i < PROC_CATEGORIES; i++) {
		const struct counter_category *c = &counter_categories[i];
		const struct counter_def *d;

		assert_int_equal(c->id, i);
		for (d = c->counters; d->name; d++) {
			assert_true(d->a && d->scale > 0);
			assert_true(strlen(d->unit) < 16);
			assert_null(strchr(d->name, ':'));
			assert_int_equal(counter_fields(d) >> PROC_FIELDS_MAX, 0);
		}
	}
}

static struct counter_raw raw(double seconds)
{
	struct counter_raw r = { .time_ns = (uint64_t)(seconds * NS_PER_SEC) };

	return r;
}

static double value(const char *name, const struct counter_raw *before,
		    const struct counter_raw *now)
{
	struct proc_counter c;
	double v;

	assert_int_equal(counter_value(find(name, &c), before, now, &v), COUNTER_VALUE);
	return v;
}

static enum counter_result result(const char *name, const struct counter_raw *before,
				  const struct counter_raw *now)
{
	struct proc_counter c;
	double v;

	return counter_value(find(name, &c), before, now, &v);
}

TEST(processor_time_is_a_share_of_all_time)
{
	struct counter_raw a = raw(1), b = raw(2);

	/* Of 100 ticks: 50 user, 10 system, 20 idle, 10 waiting, 10 stolen. */
	a.v[CPU_USER] = 1000;
	b.v[CPU_USER] = 1050;
	b.v[CPU_SYSTEM] = 10;
	b.v[CPU_IDLE] = 20;
	b.v[CPU_IOWAIT] = 10;
	b.v[CPU_STEAL] = 10;
	assert_true(value("Processor:% Processor Time:", &a, &b) == 60);
	assert_true(value("Processor:% User Time:", &a, &b) == 50);
	assert_true(value("Processor:% Privileged Time:", &a, &b) == 10);
	assert_true(value("Processor:% Idle Time:", &a, &b) == 30);
	assert_true(value("Processor:% Steal Time:", &a, &b) == 10);
}

TEST(rate_is_growth_per_second)
{
	struct counter_raw a = raw(1), b = raw(3);

	a.v[SYS_SWITCHES] = 100;
	b.v[SYS_SWITCHES] = 500;
	assert_true(value("System:Context Switches/sec:", &a, &b) == 200);
	a.v[PID_USER] = 1.5;
	b.v[PID_USER] = 4.5;            /* 3 s of CPU in 2 s: one and a half CPUs */
	assert_true(value("Process:% User Time:x", &a, &b) == 150);
}

TEST(rate_needs_two_readings_and_is_never_a_made_up_zero)
{
	struct counter_raw a = raw(1), b = raw(2);

	assert_int_equal(result("System:Context Switches/sec:", NULL, &a), COUNTER_NOT_YET);
	assert_int_equal(result("System:Context Switches/sec:", &a, &a), COUNTER_NOT_YET);
	a.v[SYS_SWITCHES] = 1;          /* it decreased: a reset */
	assert_int_equal(result("System:Context Switches/sec:", &a, &b), COUNTER_NOT_YET);
	a.v[SYS_SWITCHES] = 0;
	b.identity = 7;                 /* of another process */
	assert_int_equal(result("System:Context Switches/sec:", &a, &b), COUNTER_NOT_YET);
	b.identity = 0;
	b.v[SYS_SWITCHES] = NAN;
	assert_int_equal(result("System:Context Switches/sec:", &a, &b), COUNTER_ABSENT);
	b.v[SYS_SWITCHES] = 5;
	a.v[SYS_SWITCHES] = NAN;        /* readable only now */
	assert_int_equal(result("System:Context Switches/sec:", &a, &b), COUNTER_NOT_YET);
}

TEST(levels_need_one_reading)
{
	struct counter_raw a = raw(1);

	a.v[RAM_AVAILABLE] = 512.0 * 1048576;
	a.v[RAM_COMMITTED] = 30;
	a.v[RAM_LIMIT] = 20;
	a.v[RAM_SWAP_TOTAL] = 100;
	a.v[RAM_SWAP_FREE] = 25;
	assert_true(value("Memory:Available MBytes:", NULL, &a) == 512);
	assert_true(value("Memory:% Committed Bytes In Use:", NULL, &a) == 150);
	assert_true(value("Memory:Swap Used Bytes:", NULL, &a) == 75);
	a.v[RAM_LIMIT] = 0;
	assert_int_equal(result("Memory:% Committed Bytes In Use:", NULL, &a), COUNTER_ABSENT);
	a.v[RAM_AVAILABLE] = NAN;
	assert_int_equal(result("Memory:Available Bytes:", NULL, &a), COUNTER_ABSENT);
}

TEST(disk_counters_follow_iostats)
{
	struct counter_raw a = raw(1), b = raw(3);

	b.v[DISK_READS] = 10;
	b.v[DISK_READ_MS] = 50;
	b.v[DISK_READ_SECTORS] = 4;
	b.v[DISK_BUSY_MS] = 500;
	b.v[DISK_QUEUE_MS] = 4000;
	b.v[DISK_COUNT] = 1;
	assert_true(value("PhysicalDisk:% Disk Time:sda", &a, &b) == 25);
	assert_true(fabs(value("PhysicalDisk:Avg. Disk sec/Read:sda", &a, &b) - 0.005) < 1e-12);
	assert_true(value("PhysicalDisk:Avg. Disk sec/Write:sda", &a, &b) == 0);
	assert_true(value("PhysicalDisk:Disk Read Bytes/sec:sda", &a, &b) == 1024);
	assert_true(value("PhysicalDisk:Avg. Disk Queue Length:sda", &a, &b) == 2);
	b.v[DISK_COUNT] = 2;            /* of two disks, one was busy half of the time */
	assert_true(fabs(value("PhysicalDisk:% Disk Time:_Total", &a, &b) - 12.5) < 1e-9);
}

TEST(patterns_are_parts_or_globs)
{
	assert_true(name_matches(NULL, "x"));
	assert_true(name_matches("", "x"));
	assert_true(name_matches("PROCESSOR TIME", "Processor:% Processor Time:0"));
	assert_true(name_matches("mem*bytes:", "Memory:Available Bytes:"));
	assert_true(name_matches("*:nginx#*", "Process:Working Set:nginx#*"));
	assert_true(name_matches("nginx#*", "Process:Working Set:nginx#*"));
	assert_true(name_matches("?emory*", "Memory:Free Bytes:"));
	assert_false(name_matches("mem*x", "Memory:Free Bytes:"));
	assert_false(name_matches("xyz", "Memory"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_is_found_without_regard_to_case),
		cmocka_unit_test(wrong_name_gets_the_nearest),
		cmocka_unit_test(every_counter_of_the_table_is_sound),
		cmocka_unit_test(processor_time_is_a_share_of_all_time),
		cmocka_unit_test(rate_is_growth_per_second),
		cmocka_unit_test(rate_needs_two_readings_and_is_never_a_made_up_zero),
		cmocka_unit_test(levels_need_one_reading),
		cmocka_unit_test(disk_counters_follow_iostats),
		cmocka_unit_test(patterns_are_parts_or_globs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
