/* The console's mode is changed for colours and set back. The console is this file's own. */
#include "base/os.h"
#include "base/os_windows.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define PLAIN (ENABLE_PROCESSED_OUTPUT | ENABLE_WRAP_AT_EOL_OUTPUT)

static DWORD mode = PLAIN;
static BOOL is_console = TRUE, is_old;
static PHANDLER_ROUTINE handler;

static BOOL WINAPI get_mode(HANDLE h, LPDWORD out)
{
	(void)h;
	*out = mode;
	return is_console;
}

static BOOL WINAPI set_mode(HANDLE h, DWORD to)
{
	(void)h;
	if (is_old && (to & ENABLE_VIRTUAL_TERMINAL_PROCESSING))
		return FALSE;
	mode = to;
	return TRUE;
}

static BOOL WINAPI set_handler(PHANDLER_ROUTINE f, BOOL add)
{
	assert_true(add && !handler);
	handler = f;
	return TRUE;
}

#define TAKE(f, name) extern __typeof__(&f) __imp_##name; __typeof__(&f) __imp_##name = f
TAKE(get_mode, GetConsoleMode);
TAKE(set_mode, SetConsoleMode);
TAKE(set_handler, SetConsoleCtrlHandler);

TEST(no_console_and_one_that_is_too_old_stay_as_they_are)
{
	is_console = FALSE;
	assert_false(os_terminal_styles());
	is_console = TRUE;
	is_old = TRUE;
	assert_false(os_terminal_styles());
	os_terminal_restore();
	is_old = FALSE;
	assert_int_equal(mode, PLAIN);
	assert_null(handler);
}

TEST(one_that_obeys_already_is_left_so)
{
	mode = PLAIN | ENABLE_VIRTUAL_TERMINAL_PROCESSING;
	assert_true(os_terminal_styles());
	os_terminal_restore();
	assert_int_equal(mode, PLAIN | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
	mode = PLAIN;
}

TEST(ctrl_c_sets_it_back_and_goes_on_to_end_the_program)
{
	assert_true(os_terminal_styles());
	assert_int_equal(mode, PLAIN | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
	assert_true(os_terminal_styles());   /* asked twice: what was before is still known */
	assert_non_null(handler);
	assert_false(handler(CTRL_C_EVENT));
	assert_int_equal(mode, PLAIN);
	os_terminal_restore();
	assert_int_equal(mode, PLAIN);
}

/* Runs behind what the console has registered: the last one first. */
static void at_the_end(void)
{
	if (mode == PLAIN)
		return;
	printf("the console's mode was not set back at the end\n");
	_Exit(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_console_and_one_that_is_too_old_stay_as_they_are),
		cmocka_unit_test(one_that_obeys_already_is_left_so),
		cmocka_unit_test(ctrl_c_sets_it_back_and_goes_on_to_end_the_program),
	};
	int failed;

	atexit(at_the_end);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	os_terminal_styles();                /* left to atexit() */
	return failed;
}
