/*
 * Writes a minidump, by dbghelp's MiniDumpWriteDump.
 *
 *	minidump FILE.dmp PID [full]    of another process
 *	minidump FILE.dmp PID own       by a writer of its own, as Wine's dbghelp dumps no 32-bit
 *	                                programs: registers of this program's kind, stacks, TEBs
 *	minidump FILE.dmp crash         of itself: it reads address 0x10 three calls deep
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <tlhelp32.h>
#include <psapi.h>
#include <dbghelp.h>
#include <winternl.h>

#define KEPT __attribute__((noinline))

static const char *file;
static volatile int sink;
static volatile int *volatile nothing = (volatile int *)0x10;

typedef BOOL WINAPI write_function(HANDLE process, DWORD pid, HANDLE to, MINIDUMP_TYPE type,
				   MINIDUMP_EXCEPTION_INFORMATION *why,
				   MINIDUMP_USER_STREAM_INFORMATION *streams,
				   MINIDUMP_CALLBACK_INFORMATION *callback);

static int write_dump(HANDLE process, DWORD pid, MINIDUMP_TYPE type, EXCEPTION_POINTERS *why)
{
	MINIDUMP_EXCEPTION_INFORMATION info = {GetCurrentThreadId(), why, FALSE};
	HANDLE to = CreateFileA(file, GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0,
				NULL);
	FARPROC found = GetProcAddress(LoadLibraryA("dbghelp.dll"), "MiniDumpWriteDump");
	write_function *write;
	BOOL done;

	memcpy(&write, &found, sizeof(write));
	done = process && to != INVALID_HANDLE_VALUE && write &&
	       write(process, pid, to, type, why ? &info : NULL, NULL, NULL);
	if (!done)
		fprintf(stderr, "no minidump: error %lu\n", GetLastError());
	return done ? 0 : 1;
}

static LONG WINAPI on_crash(EXCEPTION_POINTERS *why)
{
	exit(write_dump(GetCurrentProcess(), GetCurrentProcessId(), MiniDumpNormal, why));
}

KEPT static int crash_here(void)
{
	return *nothing + sink;
}

KEPT static int crash_below(int depth)
{
	volatile int kept = depth;

	return (depth ? crash_below(depth - 1) : crash_here()) + kept;
}

/* ---- a writer of its own --------------------------------------------------------------------- */

enum { MANY = 512, STREAMS = 4, MEMORY_MAX = 1 << 20 };

#define KNOWS_BOTH (sizeof(void *) == 8)

struct basic {                               /* ThreadBasicInformation */
	NTSTATUS status;
	void *teb;
	HANDLE process, thread;
	ULONG_PTR affinity;
	LONG priority, base_priority;
};

static HANDLE target;
static FILE *out;
static MINIDUMP_MEMORY_DESCRIPTOR pieces[2 * MANY];
static ULONG npieces;

/* Write from an address to the end of its region, at most n bytes, as one piece of memory. */
static MINIDUMP_MEMORY_DESCRIPTOR put_memory(ULONG64 address, size_t n)
{
	static char bytes[MEMORY_MAX];
	MINIDUMP_MEMORY_DESCRIPTOR piece = {0};
	MEMORY_BASIC_INFORMATION m;
	SIZE_T got = 0;

	if (!VirtualQueryEx(target, (void *)(ULONG_PTR)address, &m, sizeof(m)))
		return piece;
	if (n > (ULONG_PTR)m.BaseAddress + m.RegionSize - address)
		n = (ULONG_PTR)m.BaseAddress + m.RegionSize - address;
	if (n > sizeof(bytes) ||
	    !ReadProcessMemory(target, (void *)(ULONG_PTR)address, bytes, n, &got))
		return piece;
	piece.StartOfMemoryRange = address;
	piece.Memory.Rva = (RVA)ftell(out);
	piece.Memory.DataSize = (ULONG)got;
	fwrite(bytes, 1, got, out);
	if (npieces < 2 * MANY)
		pieces[npieces++] = piece;
	return piece;
}

static void put_thread(DWORD tid, MINIDUMP_THREAD *t)
{
	HANDLE thread = OpenThread(THREAD_ALL_ACCESS, FALSE, tid);
	CONTEXT context __attribute__((aligned(16))) = {.ContextFlags = CONTEXT_ALL};
	struct basic basic = {0};

	SuspendThread(thread);
	GetThreadContext(thread, &context);
	NtQueryInformationThread(thread, (THREADINFOCLASS)0, &basic, sizeof(basic), NULL);
	t->ThreadId = tid;
	t->Teb = (ULONG_PTR)basic.teb;
	t->ThreadContext.Rva = (RVA)ftell(out);
	t->ThreadContext.DataSize = sizeof(context);
	fwrite(&context, sizeof(context), 1, out);
#ifdef _WIN64
	WOW64_CONTEXT other = {.ContextFlags = WOW64_CONTEXT_FULL};

	t->Stack = put_memory(context.Rsp, MEMORY_MAX);
	if (Wow64GetThreadContext(thread, &other))
		put_memory(other.Esp, MEMORY_MAX);
	put_memory(t->Teb, 0x2000);
#else
	t->Stack = put_memory(context.Esp, MEMORY_MAX);
#endif
	ResumeThread(thread);
}

static RVA put_text(const WCHAR *text)
{
	RVA at = (RVA)ftell(out);
	ULONG n = (ULONG)(wcslen(text) * sizeof(*text));

	fwrite(&n, sizeof(n), 1, out);
	fwrite(text, sizeof(*text), wcslen(text) + 1, out);
	return at;
}

static void put_module(const void *base, ULONG size, const WCHAR *path, MINIDUMP_MODULE *m)
{
	IMAGE_NT_HEADERS headers;
	IMAGE_DOS_HEADER dos;

	ReadProcessMemory(target, base, &dos, sizeof(dos), NULL);
	ReadProcessMemory(target, (const char *)base + dos.e_lfanew, &headers, sizeof(headers),
			  NULL);
	m->BaseOfImage = (ULONG_PTR)base;
	m->SizeOfImage = size;
	m->TimeDateStamp = headers.FileHeader.TimeDateStamp;
	m->ModuleNameRva = put_text(path);
}

/* Those of a 32-bit program are another list. */
static ULONG put_modules_32(MINIDUMP_MODULE *m, ULONG max)
{
	HMODULE bases[MANY];
	DWORD got = 0, i;

	if (!EnumProcessModulesEx(target, bases, sizeof(bases), &got, LIST_MODULES_32BIT))
		return 0;
	for (i = 0; i < got / sizeof(*bases) && i < max; i++) {
		WCHAR path[MAX_PATH] = L"?";
		MODULEINFO info = {0};

		GetModuleInformation(target, bases[i], &info, sizeof(info));
		GetModuleFileNameExW(target, bases[i], path, MAX_PATH);
		put_module(bases[i], info.SizeOfImage, path, &m[i]);
	}
	return i;
}

static MINIDUMP_DIRECTORY put_list(ULONG type, ULONG n, const void *entries, size_t bytes)
{
	MINIDUMP_DIRECTORY d = {type, {(ULONG)(sizeof(n) + n * bytes), (RVA)ftell(out)}};

	fwrite(&n, sizeof(n), 1, out);
	fwrite(entries, bytes, n, out);
	return d;
}

static int write_own(DWORD pid)
{
	static MINIDUMP_THREAD threads[MANY];
	static MINIDUMP_MODULE modules[MANY];
	MINIDUMP_HEADER head = {.Signature = 0x504d444d /* MDMP */, .Version = MINIDUMP_VERSION,
				.NumberOfStreams = STREAMS, .StreamDirectoryRva = sizeof(head)};
	MINIDUMP_SYSTEM_INFO system = {.ProcessorArchitecture = KNOWS_BOTH ? 9 : 0,
				       .PlatformId = VER_PLATFORM_WIN32_NT};
	MINIDUMP_DIRECTORY d[STREAMS] = {0};
	HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
	THREADENTRY32 entry = {.dwSize = sizeof(entry)};
	MODULEENTRY32W module = {.dwSize = sizeof(module)};
	ULONG nthreads = 0, nmodules = 0;
	BOOL more;

	target = OpenProcess(PROCESS_ALL_ACCESS, FALSE, pid);
	out = fopen(file, "wb");
	if (!target || !out)
		return 1;
	fwrite(&head, sizeof(head), 1, out);
	fwrite(d, sizeof(d), 1, out);
	for (more = Thread32First(list, &entry); more; more = Thread32Next(list, &entry))
		if (entry.th32OwnerProcessID == pid && nthreads < MANY)
			put_thread(entry.th32ThreadID, &threads[nthreads++]);
	CloseHandle(list);
	list = CreateToolhelp32Snapshot(TH32CS_SNAPMODULE, pid);
	for (more = Module32FirstW(list, &module); more; more = Module32NextW(list, &module))
		if (nmodules < MANY)
			put_module(module.modBaseAddr, module.modBaseSize, module.szExePath,
				   &modules[nmodules++]);
	CloseHandle(list);
	if (KNOWS_BOTH)
		nmodules += put_modules_32(&modules[nmodules], MANY - nmodules);
	d[0] = put_list(ThreadListStream, nthreads, threads, sizeof(*threads));
	d[1] = put_list(ModuleListStream, nmodules, modules, sizeof(*modules));
	d[2] = put_list(MemoryListStream, npieces, pieces, sizeof(*pieces));
	d[3] = (MINIDUMP_DIRECTORY){SystemInfoStream, {sizeof(system), (RVA)ftell(out)}};
	fwrite(&system, sizeof(system), 1, out);
	fseek(out, sizeof(head), SEEK_SET);
	fwrite(d, sizeof(d), 1, out);
	return fclose(out) ? 1 : 0;
}

int main(int argc, char **argv)
{
	DWORD pid = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	MINIDUMP_TYPE type = argc > 3 ? MiniDumpWithFullMemory : MiniDumpNormal;

	if (argc < 3)
		return 2;
	file = argv[1];
	if (pid && argc > 3 && !strcmp(argv[3], "own"))
		return write_own(pid);
	if (pid)
		return write_dump(OpenProcess(PROCESS_ALL_ACCESS, FALSE, pid), pid, type, NULL);
	SetUnhandledExceptionFilter(on_crash);
	return crash_below(3);
}
