/* A program that the user named: it waits to be let go, and keeps our streams. */
#include "base/os.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct os_child *start(const char *script)
{
	char *argv[] = {"sh", "-c", (char *)script, NULL};
	struct os_child *child = NULL;

	assert_int_equal(os_child_start(argv, NULL, &child, NULL), 0);
	return child;
}

static int code_of(struct os_child *child)
{
	int code = -1;

	while (!os_child_ended(child, &code))
		os_sleep_ns(NS_PER_MS);
	return code;
}

TEST(a_child_waits_until_it_is_let_go_and_its_exit_code_comes_back)
{
	char script[200];
	struct os_child *child;
	int code = -1;

	snprintf(script, sizeof(script), "touch '%s'; exit 7", tmp_path("ran"));
	child = start(script);
	os_sleep_ns(20 * NS_PER_MS);
	assert_false(os_child_ended(child, &code));
	assert_false(os_exists(tmp_path("ran")));
	assert_int_equal(os_child_go(child, NULL), 0);
	assert_int_equal(code_of(child), 7);
	assert_true(os_exists(tmp_path("ran")));
	assert_int_equal(code_of(child), 7);         /* asked again */
	os_child_free(child);
}

TEST(a_child_that_a_signal_ends_has_128_and_its_number)
{
	struct os_child *child = start("kill -9 $$");

	assert_int_equal(os_child_go(child, NULL), 0);
	assert_int_equal(code_of(child), 128 + SIGKILL);
	os_child_free(child);
}

TEST(a_child_that_is_not_let_go_never_runs)
{
	char script[200];
	struct os_child *child;
	uint32_t pid;

	snprintf(script, sizeof(script), "touch '%s'", tmp_path("never"));
	child = start(script);
	pid = os_child_pid(child);
	os_child_free(child);
	assert_int_equal(kill((pid_t)pid, 0), -1);   /* waited for */
	assert_false(os_exists(tmp_path("never")));
	os_child_free(NULL);
}

TEST(a_child_without_a_program_says_so_when_it_is_let_go)
{
	char *argv[] = {"/no/such/program", NULL};
	struct os_child *child = NULL;
	struct err err = {0};

	assert_int_equal(os_child_start(argv, NULL, &child, NULL), 0);
	assert_int_equal(os_child_go(child, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "/no/such/program cannot be started"));
	assert_int_equal(code_of(child), 127);
	os_child_free(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_waits_until_it_is_let_go_and_its_exit_code_comes_back),
		cmocka_unit_test(a_child_that_a_signal_ends_has_128_and_its_number),
		cmocka_unit_test(a_child_that_is_not_let_go_never_runs),
		cmocka_unit_test(a_child_without_a_program_says_so_when_it_is_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
