/* Running a program and waiting for it. */
#include "base/os.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static char *nothing_more[] = {NULL};

static int run(struct buf *output, int *code, uint64_t timeout_ns, size_t max, const char *script,
	       struct err *err)
{
	char *argv[] = {"sh", "-c", (char *)script, "sh", "a b", NULL};

	buf_reset(output);
	*code = -1;
	return os_run(argv, nothing_more, timeout_ns, output, max, code, err);
}

TEST(output_and_exit_code_come_back)
{
	struct buf output = {0};
	struct err err = {0};
	int code;

	assert_int_equal(run(&output, &code, 10 * NS_PER_SEC, 100,
			     "echo \"<$1>\"; echo no >&2; exit 3", &err),
			 0);
	assert_string_equal(buf_text(&output), "<a b>\nno\n");
	assert_int_equal(code, 3);
	assert_int_equal(run(&output, &code, 10 * NS_PER_SEC, 100, "kill -9 $$", &err), 0);
	assert_int_equal(code, 128 + 9);
	assert_int_equal(run(&output, &code, 10 * NS_PER_SEC, 5, "echo 1234567890", &err), 0);
	assert_string_equal(buf_text(&output), "12345");
	buf_free(&output);
}

TEST(a_program_is_found_where_running_would_find_it)
{
	assert_true(os_finds_program("sh"));
	assert_true(os_finds_program("/bin/sh"));
	assert_false(os_finds_program("no-such-program"));
	assert_false(os_finds_program("/bin/no-such-program"));
	assert_false(os_finds_program("/etc/passwd"));
	assert_false(os_finds_program(""));
}

TEST(what_it_leaves_in_the_background_is_not_waited_for)
{
	struct buf output = {0};
	struct err err = {0};
	int code;

	assert_int_equal(run(&output, &code, 10 * NS_PER_SEC, 100, "sleep 3 & echo on", &err), 0);
	assert_string_equal(buf_text(&output), "on\n");
	buf_free(&output);
}

TEST(one_that_runs_too_long_is_ended)
{
	struct buf output = {0};
	struct err err = {0};
	int code;

	assert_int_equal(run(&output, &code, NS_PER_SEC / 5, 100, "echo begun; sleep 100", &err),
			 ERR_LIMIT);
	assert_string_equal(buf_text(&output), "begun\n");
	assert_non_null(strstr(err.text, "sh was ended: it ran for over 0 s"));
	buf_free(&output);
}

TEST(its_environment_is_ours_and_what_is_added)
{
	char *argv[] = {"sh", "-c", "echo \"$HOME|$RUN_TEST_A|$RUN_TEST_B\"", NULL};
	char *more[] = {"RUN_TEST_A=x; $(y)", "HOME=/other", NULL};
	struct buf output = {0};
	struct err err = {0};
	int code;

	setenv("RUN_TEST_B", "kept", 1);
	assert_int_equal(os_run(argv, more, 10 * NS_PER_SEC, &output, 100, &code, &err), 0);
	assert_string_equal(buf_text(&output), "/other|x; $(y)|kept\n");
	buf_free(&output);
}

TEST(a_raised_limit_of_open_files_is_ours_alone)
{
	struct rlimit few = {.rlim_cur = 100}, now;
	struct buf output = {0};
	struct err err = {0};
	int code;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	few.rlim_max = now.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	os_raise_file_limit();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_true(now.rlim_cur == now.rlim_max);
	assert_int_equal(run(&output, &code, 10 * NS_PER_SEC, 100, "ulimit -n; wc -c", &err), 0);
	assert_string_equal(buf_text(&output), "100\n0\n");
	buf_free(&output);
}

TEST(one_that_is_not_there_is_said)
{
	char *argv[] = {"/no/such/program", NULL};
	struct buf output = {0};
	struct err err = {0};
	int code;

	assert_int_not_equal(os_run(argv, nothing_more, NS_PER_SEC, &output, 100, &code, &err), 0);
	assert_non_null(strstr(err.text, "/no/such/program cannot be started"));
	buf_free(&output);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_and_exit_code_come_back),
		cmocka_unit_test(a_program_is_found_where_running_would_find_it),
		cmocka_unit_test(what_it_leaves_in_the_background_is_not_waited_for),
		cmocka_unit_test(one_that_runs_too_long_is_ended),
		cmocka_unit_test(its_environment_is_ours_and_what_is_added),
		cmocka_unit_test(a_raised_limit_of_open_files_is_ours_alone),
		cmocka_unit_test(one_that_is_not_there_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
