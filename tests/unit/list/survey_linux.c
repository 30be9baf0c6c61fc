/* Looking at the processes of this machine; tests/cli/check_linux.sh looks at some with a cause. */
#include "source/list/survey.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static struct survey s;

TEST(at_least_this_process_is_looked_at)
{
	assert_int_equal(survey_run(60 * NS_PER_SEC, &s, NULL), 0);
	assert_true(s.looked_at >= 1);
	assert_int_equal(s.looked_at, s.processes);
	assert_true(s.affected <= s.looked_at);
	assert_string_equal(s.stuck_at, "");
}

TEST(without_time_processes_are_only_counted)
{
	assert_int_equal(survey_run(0, &s, NULL), 0);
	assert_int_equal(s.looked_at, 0);
	assert_int_equal(s.ngroups, 0);
	assert_true(s.processes >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_least_this_process_is_looked_at),
		cmocka_unit_test(without_time_processes_are_only_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
