/* Counter names of rules as paths of PDH. */
#include "source/counter/pdh_name.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pdh_name n;

static void reads(const char *name, enum pdh_want want, const char *path, const char *id_path)
{
	assert_int_equal(pdh_name_read(name, &n, NULL), 0);
	assert_int_equal(n.want, want);
	assert_string_equal(n.path, path);
	assert_string_equal(n.id_path, id_path);
}

TEST(a_name_becomes_a_path)
{
	reads("Memory:Available MBytes:", PDH_ONE, "\\Memory\\Available MBytes", "");
	reads("Processor:% Processor Time:_Total", PDH_ONE, "\\Processor(_Total)\\% Processor Time",
	      "");
	reads("LogicalDisk:% Free Space:C:", PDH_ONE, "\\LogicalDisk(C:)\\% Free Space", "");
	reads("process:Working Set:java#2", PDH_ONE, "\\process(java#2)\\Working Set",
	      "\\process(java#2)\\ID Process");
	reads(".NET CLR Memory:% Time in GC:w3wp", PDH_ONE, "\\.NET CLR Memory(w3wp)\\% Time in GC",
	      "\\.NET CLR Memory(w3wp)\\Process ID");
}

TEST(a_pid_is_looked_for_among_all)
{
	reads("Process:Working Set:pid=4711", PDH_PID, "\\Process(*)\\Working Set",
	      "\\Process(*)\\ID Process");
	assert_int_equal(n.pid, 4711);
	reads("Process:Working Set:pid=", PDH_ONE, "\\Process(pid=)\\Working Set",
	      "\\Process(pid=)\\ID Process");
	assert_int_equal(pdh_name_read("Memory:Pages:pid=3", &n, NULL), ERR_USAGE);
	reads("Process:Working Set:pid=99999999999", PDH_ONE,
	      "\\Process(pid=99999999999)\\Working Set", "\\Process(pid=99999999999)\\ID Process");
}

TEST(all_of_a_name_are_summed_and_no_other)
{
	reads("Process:Working Set:java#*", PDH_SUM, "\\Process(java*)\\Working Set", "");
	assert_true(pdh_name_takes(&n, "java"));
	assert_true(pdh_name_takes(&n, "Java#12"));
	assert_false(pdh_name_takes(&n, "javaw"));
	assert_false(pdh_name_takes(&n, "javaw#1"));
	reads("Process:Working Set:w3*", PDH_SUM, "\\Process(w3*)\\Working Set", "");
	assert_true(pdh_name_takes(&n, "w3wp#1"));
	reads("Process:Working Set:*", PDH_SUM, "\\Process(*)\\Working Set", "");
	assert_false(pdh_name_takes(&n, "_Total"));
}

TEST(what_would_be_another_path_is_refused)
{
	assert_int_equal(pdh_name_read("A\\B:C:", &n, NULL), ERR_USAGE);
	assert_int_equal(pdh_name_read("A(x):C:", &n, NULL), ERR_USAGE);
	assert_int_equal(pdh_name_read("*:C:", &n, NULL), ERR_USAGE);
	assert_int_equal(pdh_name_read("A:*:", &n, NULL), ERR_USAGE);
	assert_int_equal(pdh_name_read("A:B", &n, NULL), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_becomes_a_path),
		cmocka_unit_test(a_pid_is_looked_for_among_all),
		cmocka_unit_test(all_of_a_name_are_summed_and_no_other),
		cmocka_unit_test(what_would_be_another_path_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
