#include "base/os.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **program_args;
static char *program_name;

static void assert_time(uint64_t seconds, unsigned ms, const char *expected)
{
	char text[OS_TIME_TEXT_BYTES];

	os_time_text(seconds * NS_PER_SEC + ms * NS_PER_MS + 999999, text);
	assert_string_equal(text, expected);
}

TEST(os_time_text_is_utc_with_milliseconds)
{
	assert_time(0, 0, "1970-01-01T00:00:00.000Z");
	assert_time(951782400, 5, "2000-02-29T00:00:00.005Z");
	assert_time(1795230245, 678, "2026-11-21T03:04:05.678Z");
	assert_time(4102444799, 999, "2099-12-31T23:59:59.999Z");
}

TEST(os_clocks_go_forward)
{
	uint64_t before = os_now_ns(), after;
	int i;

	for (i = 0; i < 1000; i++) {
		after = os_now_ns();
		assert_true(after >= before);
		before = after;
	}
	/* Between 2020 and 2100. */
	assert_true(os_wall_ns() > 1577836800 * NS_PER_SEC);
	assert_true(os_wall_ns() < 4102444800 * NS_PER_SEC);
}

TEST(os_sleep_is_as_long_as_asked_at_least)
{
	uint64_t before = os_now_ns(), slept;

	os_sleep_ns(0);
	os_sleep_ns(20 * NS_PER_MS);
	slept = os_now_ns() - before;
	assert_true(slept >= 19 * NS_PER_MS);
	assert_true(slept < 5 * NS_PER_SEC);
}

TEST(os_error_codes_are_ours)
{
	assert_int_equal(os_error_code(2), ERR_NOT_FOUND);
	assert_int_equal(os_error_code(-12345), ERR_IO);
}

TEST(os_knows_the_machine)
{
	char name[100] = "", text[100] = "", cut[5];

	os_host_name(name, sizeof(name));
	os_host_text(text, sizeof(text));
	assert_true(strlen(name) > 0);
	assert_true(strncmp(text, "Linux ", 6) == 0 || strncmp(text, "Windows 10.", 11) == 0);
	os_host_text(cut, sizeof(cut));
	assert_int_equal(strlen(cut), 4);
	assert_in_range(os_cpu_count(), 1, 4096);
	assert_true(os_pid() > 0);
	assert_true(os_process_exists(os_pid()));
	assert_false(os_process_exists(99999999));
	assert_false(os_process_exists(UINT32_MAX));
}

TEST(os_random_bytes_differ)
{
	static unsigned char a[5000], b[5000];

	assert_int_equal(os_random(a, sizeof(a), NULL), 0);
	assert_int_equal(os_random(b, sizeof(b), NULL), 0);
	assert_true(memcmp(a, b, 16) != 0);
	assert_true(memcmp(a + 4984, b + 4984, 16) != 0);
	assert_int_equal(os_random(a, 0, NULL), 0);
}

TEST(os_self_usage_grows_with_work)
{
	uint64_t cpu_before, cpu_after, rss_bytes;
	uint64_t until = os_now_ns() + 60 * NS_PER_SEC;

	os_self_usage(&cpu_before, &rss_bytes);
	assert_true(rss_bytes > 100000);
	do {
		os_self_usage(&cpu_after, &rss_bytes);
	} while (cpu_after < cpu_before + 20 * NS_PER_MS && os_now_ns() < until);
	assert_true(cpu_after >= cpu_before + 20 * NS_PER_MS);
}

TEST(os_env_is_null_for_what_is_not_set)
{
	const char *path = os_env("PATH");

	assert_null(os_env("RECORDER_NO_SUCH_VARIABLE"));
	assert_non_null(path);
	assert_ptr_equal(os_env("PATH"), path);
}

TEST(os_args_begin_with_the_program_and_end_with_null)
{
	assert_non_null(strstr(program_args[0], "os"));
	assert_null(program_args[1]);
	assert_non_null(program_name);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

TEST(os_stores_have_a_directory_of_ours)
{
	struct buf system = {0}, own = {0}, dir = {0};

	os_system_store(&system);
	assert_int_equal(os_default_store(&own, NULL), 0);
	os_dirname(buf_text(&own), &dir);
	assert_true(ends_with(buf_text(&dir), "recorder"));
	assert_true(ends_with(buf_text(&own), "incidents.db"));
	assert_true(ends_with(buf_text(&system), "incidents.db"));
	if (os_is_admin())
		assert_string_equal(buf_text(&own), buf_text(&system));
	else
		assert_string_not_equal(buf_text(&own), buf_text(&system));
	buf_free(&system);
	buf_free(&own);
	buf_free(&dir);
}

TEST(os_standard_streams_are_there)
{
	assert_int_equal(os_write(os_stdout(), "", 0, NULL), 0);
	assert_false(os_is_terminal(os_stdout()) && os_terminal_columns() == 0);
	os_close(os_stdout());
	os_close(os_stderr());
	assert_int_equal(os_write(os_stderr(), "\n", 1, NULL), 0);
	assert_in_range(os_terminal_columns(), 1, 100000);
}

TEST(os_signal_wait_ends_when_nothing_comes)
{
	uint64_t before = os_now_ns();

	assert_int_equal(os_signals_open(NULL), 0);
	assert_int_equal(os_signal_wait(0), OS_SIGNAL_NONE);
	assert_int_equal(os_signal_wait(20 * NS_PER_MS), OS_SIGNAL_NONE);
	assert_true(os_now_ns() - before >= 19 * NS_PER_MS);
	os_signals_close();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_time_text_is_utc_with_milliseconds),
		cmocka_unit_test(os_clocks_go_forward),
		cmocka_unit_test(os_sleep_is_as_long_as_asked_at_least),
		cmocka_unit_test(os_error_codes_are_ours),
		cmocka_unit_test(os_knows_the_machine),
		cmocka_unit_test(os_random_bytes_differ),
		cmocka_unit_test(os_self_usage_grows_with_work),
		cmocka_unit_test(os_env_is_null_for_what_is_not_set),
		cmocka_unit_test(os_args_begin_with_the_program_and_end_with_null),
		cmocka_unit_test(os_stores_have_a_directory_of_ours),
		cmocka_unit_test(os_standard_streams_are_there),
		cmocka_unit_test(os_signal_wait_ends_when_nothing_comes),
	};

	program_name = argv[0];
	program_args = os_args(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
