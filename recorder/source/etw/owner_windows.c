#include "source/etw/owner_windows.h"

#include <stdint.h>
#include <stdio.h>
#include <windows.h>

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
