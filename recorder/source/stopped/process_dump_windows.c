#include "source/stopped/process_dump.h"

#include "base/os.h"
#include "base/os_windows.h"

#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <dbghelp.h>

#define EXCLUDED L"Software\\Microsoft\\Windows\\Windows Error Reporting\\ExcludedApplications"

const char process_dump_kind[] = PROCESS_DUMP_KIND_WINDOWS;
const char process_dump_suffix[] = ".dmp";

typedef BOOL WINAPI write_function(HANDLE process, DWORD pid, HANDLE to, MINIDUMP_TYPE type,
				   MINIDUMP_EXCEPTION_INFORMATION *why,
				   MINIDUMP_USER_STREAM_INFORMATION *streams,
				   MINIDUMP_CALLBACK_INFORMATION *callback);

struct process_dump {
	uint32_t pid;
	HANDLE process;
};

/* What WerAddExcludedApplication() leaves: a value of the program's name that is not 0. */
static bool opted_out(HANDLE process)
{
	static const HKEY roots[] = {HKEY_LOCAL_MACHINE, HKEY_CURRENT_USER};
	wchar_t path[1024];
	DWORD chars = 1024, value = 0, bytes;
	const wchar_t *name;
	unsigned i;

	if (!QueryFullProcessImageNameW(process, 0, path, &chars))
		return false;
	name = wcsrchr(path, L'\\') ? wcsrchr(path, L'\\') + 1 : path;
	for (i = 0; i < 2; i++) {
		bytes = sizeof(value);
		if (!RegGetValueW(roots[i], EXCLUDED, name, RRF_RT_REG_DWORD, NULL, &value,
				  &bytes) && value)
			return true;
	}
	return false;
}

int process_dump_open(uint32_t pid, struct process_dump **out, struct err *err)
{
	struct process_dump *d = calloc(1, sizeof(*d));

	if (!d)
		return err_memory(err, "for a dump");
	d->pid = pid;
	d->process = OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ | PROCESS_DUP_HANDLE,
				 FALSE, pid);
	if (!d->process) {
		int rc = err_os(err, "cannot open process %u", (unsigned)pid);

		process_dump_close(d);
		return rc;
	}
	if (opted_out(d->process)) {
		process_dump_close(d);
		return err_set(err, ERR_ACCESS,
			       "process %u opted out of dumps: it is excluded from Windows Error "
			       "Reporting", (unsigned)pid);
	}
	*out = d;
	return 0;
}

void process_dump_thread(struct process_dump *d, const struct thread_stack *stack)
{
	(void)d, (void)stack;
}

static write_function *get_writer(void)
{
	HMODULE dll = LoadLibraryExW(L"dbghelp.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
	FARPROC found = dll ? GetProcAddress(dll, "MiniDumpWriteDump") : NULL;
	write_function *write;

	memcpy(&write, &found, sizeof(write));
	return write;
}

/* All threads stand while dbghelp writes. */
int process_dump_write(struct process_dump *d, const char *path, uint64_t *nbytes,
		       struct err *err)
{
	const MINIDUMP_TYPE type = MiniDumpNormal | MiniDumpWithThreadInfo |
				   MiniDumpWithProcessThreadData;
	struct os_file *created = NULL;              /* for its owner alone */
	HANDLE file = INVALID_HANDLE_VALUE;
	LARGE_INTEGER size = {0};
	write_function *write = get_writer();
	wchar_t *wide = NULL;
	int rc = 0;

	if (!write)
		return err_set(err, ERR_UNSUPPORTED, "no dump: dbghelp.dll cannot write one");
	rc = os_open(path, OS_CREATE, &created, err);
	os_close(created);
	if (rc)
		return rc;
	wide = wide_path(path);
	if (wide)
		file = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0,
				   NULL);
	if (file == INVALID_HANDLE_VALUE)
		rc = err_os(err, "cannot open %s", path);
	else if (!write(d->process, d->pid, file, type, NULL, NULL, NULL))
		rc = err_os(err, "dbghelp cannot dump process %u", (unsigned)d->pid);
	else if (GetFileSizeEx(file, &size) && size.QuadPart > (LONGLONG)PROCESS_DUMP_MAX_BYTES)
		rc = err_set(err, ERR_LIMIT, "the dump of process %u is larger than %u MB",
			     (unsigned)d->pid, (unsigned)(PROCESS_DUMP_MAX_BYTES >> 20));
	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	wide_free(wide);
	if (rc)
		os_remove(path, NULL);
	*nbytes = (uint64_t)size.QuadPart;
	return rc;
}

void process_dump_close(struct process_dump *d)
{
	if (d && d->process)
		CloseHandle(d->process);
	free(d);
}
