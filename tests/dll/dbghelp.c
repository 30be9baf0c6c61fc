/*
 * A stand-in for dbghelp.dll, for tests under Wine, whose own knows no symbol servers:
 * SymFindFileInPathW answers as one that has a store for its server. It names nothing.
 *
 *	STANDIN_SERVER   the store: DIR\NAME\IDENTITY\NAME
 *	STANDIN_ASKED    a file to which each question is added: path, a blank, NAME\IDENTITY
 *	STANDIN_SLOW     milliseconds that an answer takes
 */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __declspec(dllexport)
#define SSRVOPT_GUIDPTR 8               /* dbghelp.h declares these functions as imported */

static void identity(const GUID *g, DWORD age, char out[64])
{
	int n = snprintf(out, 64, "%08lX%04X%04X", g->Data1, g->Data2, g->Data3);
	int i;

	for (i = 0; i < 8; i++)
		n += snprintf(out + n, 64 - (size_t)n, "%02X", g->Data4[i]);
	snprintf(out + n, 64 - (size_t)n, "%lX", age);
}

EXPORT BOOL WINAPI SymFindFileInPathW(HANDLE h, PCWSTR path, PCWSTR name, PVOID id, DWORD two,
				      DWORD three, DWORD flags, PWSTR found, void *callback,
				      PVOID ctx)
{
	const char *server = getenv("STANDIN_SERVER"), *asked = getenv("STANDIN_ASKED"),
		   *slow = getenv("STANDIN_SLOW");
	FILE *log = asked ? fopen(asked, "a") : NULL;
	char key[64] = "image";

	(void)h;
	(void)three;
	(void)callback;
	(void)ctx;
	if (flags == SSRVOPT_GUIDPTR)
		identity(id, two, key);
	if (log) {
		fprintf(log, "%ls %ls\\%s\n", path, name, key);
		fclose(log);
	}
	if (slow)
		Sleep((DWORD)atoi(slow));
	_snwprintf(found, MAX_PATH, L"%hs\\%ls\\%hs\\%ls", server ? server : ".", name, key, name);
	return GetFileAttributesW(found) != INVALID_FILE_ATTRIBUTES;
}

EXPORT BOOL WINAPI SymInitializeW(HANDLE h, PCWSTR path, BOOL invade)
{
	(void)h;
	return path && !*path && !invade;
}

EXPORT BOOL WINAPI SymCleanup(HANDLE h)
{
	(void)h;
	return TRUE;
}

EXPORT DWORD WINAPI SymSetOptions(DWORD options)
{
	return options;
}

EXPORT DWORD64 WINAPI SymLoadModuleExW(HANDLE h, HANDLE file, PCWSTR image, PCWSTR name,
				       DWORD64 base, DWORD size, void *data, DWORD flags)
{
	(void)h, (void)file, (void)image, (void)name, (void)base, (void)size, (void)data,
		(void)flags;
	return 0;
}

EXPORT BOOL WINAPI SymUnloadModule64(HANDLE h, DWORD64 base)
{
	(void)h, (void)base;
	return TRUE;
}

EXPORT BOOL WINAPI SymGetModuleInfoW64(HANDLE h, DWORD64 address, void *out)
{
	(void)h, (void)address, (void)out;
	return FALSE;
}

EXPORT BOOL WINAPI SymFromAddrW(HANDLE h, DWORD64 address, void *displacement, void *out)
{
	(void)h, (void)address, (void)displacement, (void)out;
	return FALSE;
}
