#include "base/os.h"

#include "base/array.h"
#include "base/os_windows.h"
#include "base/text.h"

#include <bcrypt.h>
#include <fcntl.h>
#include <inttypes.h>
#include <io.h>
#include <psapi.h>
#include <sddl.h>
#include <shellapi.h>
#include <shlobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1601-01-01, where FILETIME starts, to 1970-01-01, in its unit of 100 ns. */
#define FILETIME_TO_1970 116444736000000000ULL

/* Missing in mingw-w64 10's headers; before Windows 10 1803 CreateWaitableTimerExW() refuses it. */
#define TIMER_HIGH_RESOLUTION 0x00000002

/* Also missing there: winerror.h. */
#ifndef ERROR_ELEVATION_REQUIRED
#define ERROR_ELEVATION_REQUIRED 740L
#endif
#ifndef ERROR_DISK_QUOTA_EXCEEDED
#define ERROR_DISK_QUOTA_EXCEEDED 1295L
#endif

/* The C runtime must not expand wildcards in arguments: we read "Processor:*" ourselves. */
extern int _dowildcard;
int _dowildcard = 0;

/* ---- UTF-16 and rights (os_windows.h) -------------------------------------------------------- */

wchar_t *wide_text(const char *utf8)
{
	int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, NULL, 0);
	wchar_t *text;

	if (n <= 0)
		return NULL;
	text = malloc((size_t)n * sizeof(*text));
	if (!text) {
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
		return NULL;
	}
	MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, text, n);
	return text;
}

void wide_free(wchar_t *text)
{
	DWORD error = GetLastError();

	free(text);
	SetLastError(error);
}

/* A directory's path may have 248 characters less 12 for a name in it, a file's 260. */
#define SHORT_PATH_CHARS 236

static wchar_t *prefixed(const wchar_t *path, DWORD full_chars)
{
	static const wchar_t unc[] = L"\\\\?\\UNC", plain[] = L"\\\\?\\";
	wchar_t *out = malloc(((size_t)full_chars + 8) * sizeof(*out));
	wchar_t *at;
	DWORD n;

	if (!out) {
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
		return NULL;
	}
	at = out + 8;
	n = GetFullPathNameW(path, full_chars, at, NULL);
	if (n == 0 || n >= full_chars) {
		wide_free(out);
		return NULL;
	}
	if (wcsncmp(at, L"\\\\.\\", 4) == 0) {
		memmove(out, at, ((size_t)n + 1) * sizeof(*out));
	} else if (wcsncmp(at, L"\\\\", 2) == 0) {
		/* \\server\share -> \\?\UNC\server\share */
		memcpy(out, unc, sizeof(unc) - sizeof(*unc));
		memmove(out + 7, at + 1, (size_t)n * sizeof(*out));
	} else {
		memcpy(out, plain, sizeof(plain) - sizeof(*plain));
		memmove(out + 4, at, ((size_t)n + 1) * sizeof(*out));
	}
	return out;
}

wchar_t *wide_path(const char *path)
{
	wchar_t *text = wide_text(path);
	wchar_t *longer;
	DWORD full_chars;

	if (!text || wcsncmp(text, L"\\\\?\\", 4) == 0)
		return text;
	full_chars = GetFullPathNameW(text, 0, NULL, NULL);
	if (full_chars <= SHORT_PATH_CHARS)
		return text;
	longer = prefixed(text, full_chars);
	wide_free(text);
	return longer;
}

void wide_put(struct buf *out, const wchar_t *text)
{
	int n = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
	char *to = n > 0 ? buf_reserve(out, (size_t)n) : NULL;

	if (!to)
		return;
	WideCharToMultiByte(CP_UTF8, 0, text, -1, to, n, NULL, NULL);
	buf_advance(out, (size_t)n - 1);
}

bool private_open(enum private_kind kind, SECURITY_ATTRIBUTES *out)
{
	/* Protected; full access for the owner's rights, the system, the administrators. */
	static const wchar_t *const rights[] = {
		[PRIVATE_FILE] = L"D:P(A;;FA;;;OW)(A;;FA;;;SY)(A;;FA;;;BA)",
		[PRIVATE_DIRECTORY] = L"D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
		[PRIVATE_PIPE] = L"D:P(A;;GA;;;OW)(A;;GA;;;SY)(A;;GA;;;BA)",
	};

	memset(out, 0, sizeof(*out));
	out->nLength = sizeof(*out);
	return ConvertStringSecurityDescriptorToSecurityDescriptorW(
		       rights[kind], SDDL_REVISION_1, &out->lpSecurityDescriptor, NULL) != 0;
}

void private_free(SECURITY_ATTRIBUTES *attributes)
{
	DWORD error = GetLastError();

	LocalFree(attributes->lpSecurityDescriptor);
	SetLastError(error);
}

DWORD wait_ms(uint64_t timeout_ns)
{
	uint64_t ms = timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS != 0);

	if (timeout_ns == UINT64_MAX)
		return INFINITE;
	return ms < INFINITE ? (DWORD)ms : INFINITE - 1;
}

/* ---- errors ---------------------------------------------------------------------------------- */

int os_error_last(void)
{
	return (int)GetLastError();
}

enum err_code os_error_code(int os_error)
{
	switch ((DWORD)os_error) {
	case ERROR_FILE_NOT_FOUND:
	case ERROR_PATH_NOT_FOUND:
	case ERROR_INVALID_DRIVE:
	case ERROR_BAD_NETPATH:
	case ERROR_BAD_NET_NAME:
	case ERROR_DIRECTORY:
	case ERROR_MOD_NOT_FOUND:
	case ERROR_PROC_NOT_FOUND:
	case ERROR_ENVVAR_NOT_FOUND:
	case ERROR_NOT_FOUND:
		return ERR_NOT_FOUND;
	case ERROR_FILE_EXISTS:
	case ERROR_ALREADY_EXISTS:
		return ERR_EXISTS;
	case ERROR_ACCESS_DENIED:
	case ERROR_WRITE_PROTECT:
	case ERROR_PRIVILEGE_NOT_HELD:
	case ERROR_ELEVATION_REQUIRED:
	case ERROR_NETWORK_ACCESS_DENIED:
		return ERR_ACCESS;
	case ERROR_NOT_ENOUGH_MEMORY:
	case ERROR_OUTOFMEMORY:
	case ERROR_COMMITMENT_LIMIT:
	case ERROR_NO_SYSTEM_RESOURCES:
		return ERR_MEMORY;
	case ERROR_DISK_FULL:
	case ERROR_HANDLE_DISK_FULL:
	case ERROR_DISK_QUOTA_EXCEEDED:
		return ERR_FULL;
	case ERROR_SHARING_VIOLATION:
	case ERROR_LOCK_VIOLATION:
	case ERROR_PIPE_BUSY:
	case ERROR_BUSY:
		return ERR_BUSY;
	case ERROR_BROKEN_PIPE:
	case ERROR_NO_DATA:
		return ERR_STOPPED;          /* the reader of our output has closed it */
	case ERROR_TOO_MANY_OPEN_FILES:
		return ERR_LIMIT;
	case ERROR_INVALID_NAME:
	case ERROR_BAD_PATHNAME:
	case ERROR_FILENAME_EXCED_RANGE:
	case ERROR_NO_UNICODE_TRANSLATION:
		return ERR_USAGE;
	case ERROR_NOT_SUPPORTED:
	case ERROR_CALL_NOT_IMPLEMENTED:
		return ERR_UNSUPPORTED;
	default:
		return ERR_IO;
	}
}

/* One line without the full stop: it follows "cannot open x: ", and more may follow it. */
static void trim_sentence(char *text)
{
	size_t n = strlen(text);
	char *at;

	while (n && strchr("\r\n .", text[n - 1]))
		n--;
	text[n] = '\0';
	for (at = text; *at; at++) {
		if (*at == '\r' || *at == '\n')
			*at = ' ';
	}
}

void os_error_text(int os_error, char *out, size_t n)
{
	wchar_t wide[256];
	char text[COUNT_OF(wide) * 3];
	DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS,
				      NULL, (DWORD)os_error, 0, wide, 256, NULL);
	int bytes = 0;

	if (length)
		bytes = WideCharToMultiByte(CP_UTF8, 0, wide, (int)length, text,
					    (int)sizeof(text) - 1, NULL, NULL);
	text[bytes] = '\0';
	trim_sentence(text);
	if (text[0])
		snprintf(out, n, "%s", text);
	else
		snprintf(out, n, os_error > 0 && os_error < 0x10000 ? "error %d" : "error 0x%08X",
			 (unsigned)os_error);
}

/* ---- clock ----------------------------------------------------------------------------------- */

uint64_t os_now_ns(void)
{
	LARGE_INTEGER count, frequency;
	uint64_t ticks, per_s;

	/* Neither call can fail since Windows XP. The parts keep the product within 64 bits. */
	QueryPerformanceFrequency(&frequency);
	QueryPerformanceCounter(&count);
	ticks = (uint64_t)count.QuadPart;
	per_s = (uint64_t)frequency.QuadPart;
	return ticks / per_s * NS_PER_SEC + ticks % per_s * NS_PER_SEC / per_s;
}

uint64_t os_wall_ns(void)
{
	ULARGE_INTEGER t;
	FILETIME now;

	GetSystemTimePreciseAsFileTime(&now);
	t.LowPart = now.dwLowDateTime;
	t.HighPart = now.dwHighDateTime;
	return (t.QuadPart - FILETIME_TO_1970) * 100;
}

/* The performance counter goes on while the machine sleeps. */
uint64_t os_asleep_ns(void)
{
	return 0;
}

/* Sleep() counts in timer interrupts of up to 15.6 ms; this timer keeps short sleeps short. */
void os_sleep_ns(uint64_t ns)
{
	LARGE_INTEGER due;
	HANDLE timer = CreateWaitableTimerExW(NULL, NULL, TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);

	due.QuadPart = ns / 100 < INT64_MAX ? -(int64_t)(ns / 100) : -INT64_MAX;
	if (timer && due.QuadPart && SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE))
		WaitForSingleObject(timer, INFINITE);
	else
		Sleep(wait_ms(ns));
	if (timer)
		CloseHandle(timer);
}

void os_time_text(uint64_t wall_ns, char out[OS_TIME_TEXT_BYTES])
{
	ULARGE_INTEGER t;
	FILETIME file_time;
	SYSTEMTIME s;

	t.QuadPart = wall_ns / 100 + FILETIME_TO_1970;
	file_time.dwLowDateTime = t.LowPart;
	file_time.dwHighDateTime = t.HighPart;
	FileTimeToSystemTime(&file_time, &s);
	snprintf(out, OS_TIME_TEXT_BYTES, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", s.wYear % 10000u,
		 s.wMonth % 100u, s.wDay % 100u, s.wHour % 100u, s.wMinute % 100u, s.wSecond % 100u,
		 s.wMilliseconds % 1000u);
}

/* ---- where things are ------------------------------------------------------------------------ */

static bool is_separator(char c)
{
	return c == '/' || c == '\\';
}

void os_dirname(const char *path, struct buf *out)
{
	size_t root = path[0] && path[1] == ':' ? 2 : 0;
	size_t n = strlen(path);

	while (n > root && !is_separator(path[n - 1]))
		n--;
	if (n == root) {
		/* "name" and "C:name": the current directory of that drive. */
		buf_put(out, path, root);
		buf_puts(out, ".");
		return;
	}
	/* "C:\" and "\" keep their separator: without it they mean other places. */
	buf_put(out, path, n == root + 1 ? n : n - 1);
}

/* Not %ProgramData%: users may set that variable for programs that then run elevated. */
static void put_folder(struct buf *out, int folder)
{
	wchar_t path[MAX_PATH];

	if (SHGetFolderPathW(NULL, folder, NULL, SHGFP_TYPE_CURRENT, path) == S_OK)
		wide_put(out, path);
}

const char *os_base_name(const char *path)
{
	return text_last_part(path, "/\\");
}

void os_system_store(struct buf *out)
{
	size_t before = out->len;

	put_folder(out, CSIDL_COMMON_APPDATA);
	if (out->len == before)
		buf_puts(out, "C:\\ProgramData");
	buf_puts(out, "\\recorder\\incidents.db");
}

int os_default_store(struct buf *out, struct err *err)
{
	const char *local = os_env("LOCALAPPDATA");
	size_t before = out->len;

	if (os_is_admin()) {
		os_system_store(out);
		return buf_check(out, "the store's path", err);
	}
	if (local && local[0])
		buf_puts(out, local);
	else
		put_folder(out, CSIDL_LOCAL_APPDATA);
	if (out->len == before && !out->failed)
		return err_set(err, ERR_USAGE, "LOCALAPPDATA is not set; say where incidents go "
					       "with --store FILE");
	buf_puts(out, "\\recorder\\incidents.db");
	return buf_check(out, "the store's path", err);
}

/* ---- the machine and this process ------------------------------------------------------------ */

bool os_is_admin(void)
{
	TOKEN_ELEVATION elevation = {0};
	HANDLE token;
	DWORD n;
	bool ok;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
		return false;
	ok = GetTokenInformation(token, TokenElevation, &elevation, sizeof(elevation), &n);
	CloseHandle(token);
	return ok && elevation.TokenIsElevated;
}

uint32_t os_uid(void)
{
	return 0;
}

uint32_t os_pid(void)
{
	return GetCurrentProcessId();
}

bool os_process_exists(uint32_t pid)
{
	HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, pid);
	bool ended;

	if (!process)
		return GetLastError() == ERROR_ACCESS_DENIED;
	/* A process that has ended still exists as long as somebody holds a handle. */
	ended = WaitForSingleObject(process, 0) == WAIT_OBJECT_0;
	CloseHandle(process);
	return !ended;
}

int os_process_arguments(uint32_t pid, struct buf *out, struct err *err)
{
	(void)pid;
	(void)out;
	return err_set(err, ERR_UNSUPPORTED, "command lines come with the events on Windows");
}

void os_host_name(char *out, size_t n)
{
	wchar_t name[256];
	DWORD chars = 256;
	struct buf text = {0};

	if (GetComputerNameExW(ComputerNameDnsHostname, name, &chars))
		wide_put(&text, name);
	snprintf(out, n, "%s", text.len ? text.data : "localhost");
	buf_free(&text);
}

/* GetVersionEx() answers what the program's manifest claims to support; this tells the truth. */
typedef LONG WINAPI rtl_get_version(OSVERSIONINFOW *version);

void os_host_text(char *out, size_t n)
{
	OSVERSIONINFOW version = {.dwOSVersionInfoSize = sizeof(version)};
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	rtl_get_version *get = NULL;
	SYSTEM_INFO system;
	const char *cpu = "unknown";

	if (ntdll)
		get = (rtl_get_version *)(void (*)(void))GetProcAddress(ntdll, "RtlGetVersion");
	if (get)
		get(&version);
	GetNativeSystemInfo(&system);
	if (system.wProcessorArchitecture == PROCESSOR_ARCHITECTURE_AMD64)
		cpu = "x86_64";
	else if (system.wProcessorArchitecture == PROCESSOR_ARCHITECTURE_ARM64)
		cpu = "arm64";
	snprintf(out, n, "Windows %lu.%lu.%lu %s", version.dwMajorVersion, version.dwMinorVersion,
		 version.dwBuildNumber, cpu);
}

unsigned os_cpu_count(void)
{
	DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);

	return n ? n : 1;
}

int os_random(void *to, size_t n, struct err *err)
{
	UCHAR *at = to;

	while (n) {
		ULONG part = n < (1u << 20) ? (ULONG)n : 1u << 20;

		if (BCryptGenRandom(NULL, at, part, BCRYPT_USE_SYSTEM_PREFERRED_RNG) != 0)
			return err_set(err, ERR_IO, "cannot get random bytes");
		at += part;
		n -= part;
	}
	return 0;
}

static uint64_t filetime_ns(const FILETIME *t)
{
	return ((uint64_t)t->dwHighDateTime << 32 | t->dwLowDateTime) * 100;
}

void os_raise_file_limit(void)
{
}

/* The Windows heap does so from 508 KB on, and cannot be told otherwise. */
void os_keep_memory_tight(void)
{
}

void os_give_memory_back(void)
{
	HeapCompact(GetProcessHeap(), 0);
}

/* Unlocking what is not locked takes it out of the working set, as the function's manual says. */
void os_give_pages_back(void *at, size_t n)
{
	const uintptr_t page = 4096;
	uintptr_t from = ((uintptr_t)at + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)at + n) & ~(page - 1);

	if (from < to && VirtualAlloc((void *)from, to - from, MEM_RESET, PAGE_READWRITE))
		VirtualUnlock((void *)from, to - from);
}

/* Large pages need a right that few have. */
void os_use_large_pages(void *at, size_t n)
{
	(void)at;
	(void)n;
}

void os_self_usage(uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof(memory)};
	FILETIME created, exited, kernel, user;

	*cpu_ns = 0;
	*rss_bytes = 0;
	if (GetProcessTimes(GetCurrentProcess(), &created, &exited, &kernel, &user))
		*cpu_ns = filetime_ns(&kernel) + filetime_ns(&user);
	if (GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof(memory)))
		*rss_bytes = memory.WorkingSetSize;
}

/* ---- environment and arguments --------------------------------------------------------------- */

/*
 * Windows keeps the environment in UTF-16 and os_env() lends UTF-8, so the texts it returned live
 * here until the variable changes: at most one per name in our source.
 */
struct variable {
	struct variable *next;
	struct buf value;
	char name[];
};

static struct {
	SRWLOCK lock;
	struct variable *first;
} environment = {.lock = SRWLOCK_INIT};

static struct variable *variable_of(const char *name)
{
	size_t n = strlen(name) + 1;
	struct variable *v;

	for (v = environment.first; v; v = v->next) {
		if (strcmp(v->name, name) == 0)
			return v;
	}
	v = calloc(1, sizeof(*v) + n);
	if (!v)
		return NULL;
	memcpy(v->name, name, n);
	v->next = environment.first;
	environment.first = v;
	return v;
}

/* The variable's value now; false when there is none. */
static bool read_variable(const char *name, struct buf *out)
{
	wchar_t *wide_name = wide_text(name);
	wchar_t *value = NULL;
	DWORD room = wide_name ? GetEnvironmentVariableW(wide_name, NULL, 0) : 0;
	DWORD n = 0;

	if (room)
		value = malloc(room * sizeof(*value));
	if (value) {
		value[0] = L'\0';
		n = GetEnvironmentVariableW(wide_name, value, room);
	}
	if (value && n < room)
		wide_put(out, value);
	free(value);
	free(wide_name);
	return out->data && !out->failed;
}

const char *os_env(const char *name)
{
	struct buf now = {0};
	struct variable *v;
	const char *value = NULL;

	AcquireSRWLockExclusive(&environment.lock);
	v = variable_of(name);
	if (v && read_variable(name, &now)) {
		if (!v->value.data || strcmp(v->value.data, now.data) != 0) {
			buf_free(&v->value);
			v->value = now;
			memset(&now, 0, sizeof(now));
		}
		value = v->value.data;
	}
	ReleaseSRWLockExclusive(&environment.lock);
	buf_free(&now);
	return value;
}

bool os_env_hidden(const char *name)
{
	(void)name;
	return false;
}

/* One block: the pointers, then the texts. Padded to argc, which the C runtime counted. */
static char **args_utf8(wchar_t **wide, int nwide, int argc)
{
	size_t count = (size_t)(nwide > argc ? nwide : argc);
	struct buf text = {0};
	size_t *at = calloc(count + 1, sizeof(*at));
	char **args = NULL;
	size_t i;

	for (i = 0; at && i < count; i++) {
		at[i] = text.len;
		wide_put(&text, i < (size_t)nwide ? wide[i] : L"");
		buf_putc(&text, '\0');
	}
	if (at && !text.failed)
		args = malloc((count + 1) * sizeof(*args) + text.len);
	if (args) {
		memcpy(args + count + 1, buf_text(&text), text.len);
		for (i = 0; i < count; i++)
			args[i] = (char *)(args + count + 1) + at[i];
		args[count] = NULL;
	}
	free(at);
	buf_free(&text);
	return args;
}

void os_guard_streams(void)
{
}

char **os_args(int argc, char **argv)
{
	static char **args;           /* for the life of the process, as os.h says */
	wchar_t **wide;
	int n = 0;

	/* Called first in main(): stdio shall end its lines the way os_write() does. */
	_setmode(1, _O_BINARY);
	_setmode(2, _O_BINARY);
	if (args)
		return args;
	wide = CommandLineToArgvW(GetCommandLineW(), &n);
	if (wide)
		args = args_utf8(wide, n, argc);
	LocalFree(wide);
	return args ? args : argv;
}
