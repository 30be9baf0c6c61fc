/*
 * The machine's sampling interval, borrowed and given back. The setting is this file's own: the
 * linker takes its functions for those of the system. The registry is real (Wine's).
 */
#include "source/etw/interval_windows.h"
#include "tests/support/alone_windows.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include <windows.h>
#include <evntrace.h>
#include <winternl.h>

#define KEY L"SOFTWARE\\recorder-sampling-interval"

static ULONG machine, least, refuses;        /* in 100 ns */
static BOOL knows;

static ULONG WINAPI set(TRACEHANDLE h, TRACE_INFO_CLASS class, PVOID info, ULONG n)
{
	ULONG *v = info;

	assert_true(h == 0 && class == TraceSampledProfileIntervalInfo && n == 8 && v[0] == 0);
	if (!refuses)
		machine = v[1] > least ? v[1] : least;
	return refuses;
}

static ULONG WINAPI query(TRACEHANDLE h, TRACE_INFO_CLASS class, PVOID info, ULONG n, PULONG out)
{
	assert_true(h == 0 && class == TraceSampledProfileIntervalInfo && n == 8);
	((ULONG *)info)[1] = machine;
	*out = n;
	return 0;
}

NTSTATUS NTAPI LdrGetProcedureAddress(HMODULE, ANSI_STRING *, ULONG, void **);

static FARPROC WINAPI find(HMODULE module, LPCSTR name)
{
	__typeof__(&query) own_query = query;
	ANSI_STRING text;
	void *at = NULL;
	FARPROC out;

	RtlInitAnsiString(&text, name);
	if (LdrGetProcedureAddress(module, &text, 0, &at) < 0)
		at = NULL;
	memcpy(&out, &at, sizeof(out));
	if (!strcmp(name, "TraceQueryInformation"))
		memcpy(&out, &own_query, sizeof(out));
	return knows ? out : NULL;
}

extern __typeof__(&set) __imp_TraceSetInformation;
extern __typeof__(&find) __imp_GetProcAddress;
__typeof__(&set) __imp_TraceSetInformation = set;
__typeof__(&find) __imp_GetProcAddress = find;

static int begin(void **state)
{
	(void)state;
	RegDeleteKeyW(HKEY_LOCAL_MACHINE, KEY);
	machine = 12345;
	least = 1221;
	refuses = 0;
	knows = TRUE;
	return 0;
}

static bool key_is_there(void)
{
	HKEY key;

	if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, KEY, 0, KEY_READ, &key))
		return false;
	RegCloseKey(key);
	return true;
}

/*
 * Owners that run: this process by its true name. Two of them: its name and one that nobody can
 * judge.
 */
static wchar_t own[ETW_OWNER_CHARS];
static const wchar_t other[] = L"other";
static const wchar_t killed[] = L"recorder-session-999999-1d0";

/* This process has wanted so much, and is one that was killed. */
static void want_and_be_killed(uint32_t interval_100ns)
{
	HKEY key;

	assert_int_equal(etw_interval_want(own, &interval_100ns), 0);
	assert_int_equal(RegOpenKeyExW(HKEY_LOCAL_MACHINE, KEY, 0, KEY_READ | KEY_WRITE, &key), 0);
	RegSetValueExW(key, killed, 0, REG_DWORD, (const BYTE *)&interval_100ns,
		       sizeof(interval_100ns));
	RegDeleteValueW(key, own);
	RegCloseKey(key);
}

TEST(what_was_before_is_set_again)
{
	uint32_t v = 101010;

	assert_int_equal(etw_interval_want(own, &v), 0);
	assert_true(machine == 101010 && v == 101010);
	v = 204081;                          /* a step down, and another */
	assert_int_equal(etw_interval_want(own, &v), 0);
	v = 526315;
	assert_int_equal(etw_interval_want(own, &v), 0);
	assert_int_equal(machine, 526315);
	etw_interval_leave(own);
	assert_int_equal(machine, 12345);
	assert_false(key_is_there());
	etw_interval_leave(own);
	etw_interval_leave(other);
	assert_int_equal(machine, 12345);
}

TEST(the_shortest_of_two_holds_and_the_last_one_gives_back)
{
	uint32_t v = 101010, w = 10000;

	etw_interval_want(own, &v);
	assert_int_equal(etw_interval_want(other, &w), 0);
	assert_int_equal(machine, 10000);
	v = 526315;
	assert_int_equal(etw_interval_want(own, &v), 0);
	assert_int_equal(v, 10000);          /* what holds is told */
	etw_interval_leave(other);
	assert_int_equal(machine, 526315);
	etw_interval_leave(own);
	assert_int_equal(machine, 12345);
}

TEST(what_a_killed_recorder_left_is_given_back)
{
	want_and_be_killed(101010);
	assert_int_equal(machine, 101010);
	etw_interval_leave(NULL);
	assert_int_equal(machine, 12345);
	assert_false(key_is_there());
	etw_interval_leave(NULL);
}

TEST(the_next_recorder_inherits_what_was_before_a_killed_one)
{
	uint32_t v = 101010;

	want_and_be_killed(10000);
	assert_int_equal(etw_interval_want(own, &v), 0);
	assert_int_equal(machine, 101010);   /* the killed one's wish is gone */
	etw_interval_leave(own);
	assert_int_equal(machine, 12345);
}

TEST(what_somebody_else_has_set_meanwhile_stays)
{
	uint32_t v = 101010;

	etw_interval_want(own, &v);
	machine = 5000;
	etw_interval_leave(own);
	assert_int_equal(machine, 5000);
}

TEST(what_windows_rounds_is_told_and_is_ours)
{
	uint32_t v = 1000;

	assert_int_equal(etw_interval_want(own, &v), 0);
	assert_int_equal(v, 1221);
	etw_interval_leave(own);
	assert_int_equal(machine, 12345);
}

TEST(where_windows_does_not_say_it_the_default_is_set_again)
{
	uint32_t v = 101010;

	knows = FALSE;
	assert_int_equal(etw_interval_want(own, &v), 0);
	assert_true(machine == 101010 && v == 101010);
	etw_interval_leave(own);
	assert_int_equal(machine, 10000);
}

TEST(a_refusal_leaves_nothing_behind)
{
	uint32_t v = 101010;

	refuses = 5;
	assert_int_equal(etw_interval_want(own, &v), 5);
	refuses = 0;
	etw_interval_leave(own);
	assert_int_equal(machine, 12345);
	assert_false(key_is_there());
}

TEST(a_refused_step_leaves_what_was_wanted_before)
{
	uint32_t v = 101010;

	assert_int_equal(etw_interval_want(own, &v), 0);
	v = 202020;
	refuses = 5;
	assert_int_equal(etw_interval_want(own, &v), 5);
	refuses = 0;
	assert_int_equal(machine, 101010);
	assert_true(key_is_there());
	etw_interval_leave(own);
	assert_int_equal(machine, 12345);
	assert_false(key_is_there());
}

int main(void)
{
#define IN_LAB(f) cmocka_unit_test_setup(f, begin)
	const struct CMUnitTest tests[] = {
		IN_LAB(what_was_before_is_set_again),
		IN_LAB(the_shortest_of_two_holds_and_the_last_one_gives_back),
		IN_LAB(what_a_killed_recorder_left_is_given_back),
		IN_LAB(the_next_recorder_inherits_what_was_before_a_killed_one),
		IN_LAB(what_somebody_else_has_set_meanwhile_stays),
		IN_LAB(what_windows_rounds_is_told_and_is_ours),
		IN_LAB(where_windows_does_not_say_it_the_default_is_set_again),
		IN_LAB(a_refusal_leaves_nothing_behind),
		IN_LAB(a_refused_step_leaves_what_was_wanted_before),
	};

	alone_on_this_machine();
	etw_owner_name(own);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
