#include "source/etw/interval_windows.h"

#include <windows.h>
#include <evntrace.h>
#include <stdio.h>
#include <string.h>

#define KEY L"SOFTWARE\\recorder-sampling-interval"
#define MUTEX L"Global\\recorder-sampling-interval"
#define BEFORE L"before"                     /* value before the first recorder; all in 100 ns */
#define OURS L"ours"                         /* the value after we set it last */
#define DEFAULT_100NS 10000u                 /* if Windows does not tell */
#define WAIT_MS 2000u
#define OWNERS_MAX 64u                       /* the limit of Windows' sessions */

struct setting {                             /* TRACE_PROFILE_INTERVAL; source 0 is the timer */
	ULONG source, interval_100ns;
};

/* ---- owners ---------------------------------------------------------------------------------- */

#define PREFIX L"recorder-session-"
#define PREFIX_CHARS (sizeof(PREFIX) / sizeof(wchar_t) - 1)

static uint64_t start_of(HANDLE process)
{
	FILETIME created, ended, kernel, user;

	if (!GetProcessTimes(process, &created, &ended, &kernel, &user))
		return 0;
	return (uint64_t)created.dwHighDateTime << 32 | created.dwLowDateTime;
}

void etw_owner_name(wchar_t out[ETW_OWNER_CHARS])
{
	_snwprintf(out, ETW_OWNER_CHARS - 1, PREFIX L"%lu-%I64x", GetCurrentProcessId(),
		   start_of(GetCurrentProcess()));
	out[ETW_OWNER_CHARS - 1] = L'\0';
}

bool etw_owner_is_gone(const wchar_t *name)
{
	unsigned long pid = 0;
	uint64_t started = 0;
	HANDLE process;
	bool runs;

	if (wcsncmp(name, PREFIX, PREFIX_CHARS) ||
	    swscanf(name + PREFIX_CHARS, L"%lu-%I64x", &pid, &started) != 2)
		return false;
	process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | SYNCHRONIZE, FALSE, pid);
	if (!process)
		return GetLastError() != ERROR_ACCESS_DENIED;
	runs = start_of(process) == started && WaitForSingleObject(process, 0) == WAIT_TIMEOUT;
	CloseHandle(process);
	return !runs;
}

/* ---- the setting ----------------------------------------------------------------------------- */

static ULONG set_interval(uint32_t interval_100ns)
{
	struct setting s = {0, interval_100ns};

	return TraceSetInformation(0, TraceSampledProfileIntervalInfo, &s, sizeof(s));
}

/* It is looked up, because an older Windows would not start a program that imports it. */
unsigned long etw_trace_query(uint64_t session, int class, void *out, uint32_t bytes, uint32_t *n)
{
	typedef ULONG WINAPI query_fn(TRACEHANDLE, TRACE_INFO_CLASS, PVOID, ULONG, PULONG);
	HMODULE advapi = GetModuleHandleW(L"advapi32.dll");
	FARPROC found = advapi ? GetProcAddress(advapi, "TraceQueryInformation") : NULL;
	query_fn *query;
	ULONG got = 0, error;

	if (!found)
		return ERROR_NOT_SUPPORTED;
	memcpy(&query, &found, sizeof(query));
	error = query(session, (TRACE_INFO_CLASS)class, out, bytes, &got);
	*n = got;
	return error;
}

/* 0 = unknown. */
static uint32_t get_interval(void)
{
	struct setting s = {0};
	uint32_t n;

	return etw_trace_query(0, TraceSampledProfileIntervalInfo, &s, sizeof(s), &n)
		       ? 0 : s.interval_100ns;
}

/* ---- the registry key ------------------------------------------------------------------------ */

static uint32_t read_value(HKEY key, const wchar_t *name)
{
	DWORD v = 0, n = sizeof(v);

	return RegGetValueW(key, NULL, name, RRF_RT_REG_DWORD, NULL, &v, &n) ? 0 : v;
}

static void write_value(HKEY key, const wchar_t *name, uint32_t v)
{
	RegSetValueExW(key, name, 0, REG_DWORD, (const BYTE *)&v, sizeof(v));
}

/* Remove owners that have ended; returns whether there were any. */
static bool forget_gone(HKEY key)
{
	wchar_t gone[OWNERS_MAX][ETW_OWNER_CHARS], name[ETW_OWNER_CHARS];
	DWORD chars = ETW_OWNER_CHARS, i, n = 0;

	for (i = 0; !RegEnumValueW(key, i, name, &chars, NULL, NULL, NULL, NULL); i++) {
		if (n < OWNERS_MAX && etw_owner_is_gone(name))
			wcscpy(gone[n++], name);
		chars = ETW_OWNER_CHARS;
	}
	for (i = 0; i < n; i++)
		RegDeleteValueW(key, gone[i]);
	return n > 0;
}

/* The shortest interval that a recorder wants; 0 = none. */
static uint32_t shortest_wanted(HKEY key)
{
	wchar_t name[ETW_OWNER_CHARS];
	DWORD chars = ETW_OWNER_CHARS, i;
	uint32_t best = 0, wanted;

	for (i = 0; !RegEnumValueW(key, i, name, &chars, NULL, NULL, NULL, NULL); i++) {
		wanted = wcscmp(name, BEFORE) && wcscmp(name, OURS) ? read_value(key, name) : 0;
		if (wanted && (!best || wanted < best))
			best = wanted;
		chars = ETW_OWNER_CHARS;
	}
	return best;
}

/* ---- borrowing and giving back --------------------------------------------------------------- */

/* The old value is written down first, in case the recorder is killed in between. */
static ULONG borrow_interval(HKEY key, uint32_t wanted)
{
	uint32_t held = get_interval();
	ULONG error;

	if (!read_value(key, BEFORE))
		write_value(key, BEFORE, held ? held : DEFAULT_100NS);
	error = set_interval(wanted);
	if (error)
		return error;
	held = get_interval();
	write_value(key, OURS, held ? held : wanted);
	return 0;
}

static void restore_interval(HKEY key)
{
	uint32_t held = get_interval(), ours = read_value(key, OURS);
	uint32_t before = read_value(key, BEFORE);

	if (before && (!ours || !held || held == ours))
		set_interval(before);
	RegDeleteValueW(key, BEFORE);
	RegDeleteValueW(key, OURS);
}

void *etw_setting_lock(const wchar_t *name)
{
	HANDLE mutex = CreateMutexW(NULL, FALSE, name);

	if (mutex)
		WaitForSingleObject(mutex, WAIT_MS);
	return mutex;
}

void etw_setting_unlock(void *lock)
{
	if (!lock)
		return;
	ReleaseMutex(lock);
	CloseHandle(lock);
}

unsigned long etw_interval_want(const wchar_t *owner, uint32_t *interval_100ns)
{
	void *lock = etw_setting_lock(MUTEX);
	HKEY key = NULL;
	uint32_t before = 0;
	ULONG error;

	error = (ULONG)RegCreateKeyExW(HKEY_LOCAL_MACHINE, KEY, 0, NULL, REG_OPTION_VOLATILE,
				       KEY_READ | KEY_WRITE, NULL, &key, NULL);
	if (!error) {
		before = read_value(key, owner);
		write_value(key, owner, *interval_100ns);
		forget_gone(key);
		error = borrow_interval(key, shortest_wanted(key));
		if (!error)
			*interval_100ns = read_value(key, OURS);
		else if (before)
			write_value(key, owner, before);
		RegCloseKey(key);
	}
	etw_setting_unlock(lock);
	if (error && !before)
		etw_interval_leave(owner);
	return error;
}

void etw_interval_leave(const wchar_t *owner)
{
	void *lock = etw_setting_lock(MUTEX);
	bool dropped, wanted = true;
	HKEY key;

	if (!RegOpenKeyExW(HKEY_LOCAL_MACHINE, KEY, 0, KEY_READ | KEY_WRITE, &key)) {
		dropped = owner && !RegDeleteValueW(key, owner);
		dropped |= forget_gone(key);
		wanted = shortest_wanted(key) != 0;
		if (dropped && wanted)
			borrow_interval(key, shortest_wanted(key));
		else if (!wanted)
			restore_interval(key);
		RegCloseKey(key);
	}
	if (!wanted)
		RegDeleteKeyW(HKEY_LOCAL_MACHINE, KEY);
	etw_setting_unlock(lock);
}
