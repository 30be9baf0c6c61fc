/* Running a program: see os.h. */
#include "base/os.h"
#include "base/os_windows.h"

#include <stdlib.h>
#include <string.h>

#define STEP_MS 50u

void windows_put_argument(struct buf *line, const char *text)
{
	size_t slashes = 0;

	buf_puts(line, line->len ? " \"" : "\"");
	for (; *text; text++) {
		if (*text == '\\') {
			slashes++;
		} else {
			if (*text == '"')
				for (slashes++; slashes; slashes--)
					buf_putc(line, '\\');
			slashes = 0;
		}
		buf_putc(line, *text);
	}
	for (; slashes; slashes--)
		buf_putc(line, '\\');
	buf_putc(line, '"');
}

/* A job: whatever the program starts ends with it. */
static HANDLE job_open(void)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;
	HANDLE job = CreateJobObjectW(NULL, NULL);

	memset(&limits, 0, sizeof(limits));
	limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_BREAKAWAY_OK;
	if (job)
		SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits,
					sizeof(limits));
	return job;
}

static void take_output(HANDLE pipe, struct buf *output, size_t max_bytes)
{
	DWORD there = 0, n = 0;
	char bytes[4096];

	while (PeekNamedPipe(pipe, NULL, 0, NULL, &there, NULL) && there) {
		if (!ReadFile(pipe, bytes, sizeof(bytes), &n, NULL) || !n)
			return;
		if (output->len < max_bytes)
			buf_put(output, bytes,
				n < max_bytes - output->len ? n : max_bytes - output->len);
	}
}

/* Is "NAME=value" of the environment replaced by one of `more`? Their names are ASCII. */
static bool is_replaced(const wchar_t *at, char *const *more)
{
	size_t i, n;

	for (i = 0; more[i]; i++) {
		for (n = 0; more[i][n] != '=' && at[n] == (wchar_t)more[i][n]; n++)
			;
		if (more[i][n] == '=' && at[n] == L'=')
			return true;
	}
	return false;
}

/*
 * `more` and this process's environment without the names in it, as CreateProcessW() wants them:
 * each text with its NUL, and one more NUL at the end. NULL = no memory.
 */
static wchar_t *join_environment(char *const *more)
{
	wchar_t *own = GetEnvironmentStringsW(), *all, *to, *wide;
	const wchar_t *at;
	size_t n = 1, i;

	for (at = own; at && *at; at += wcslen(at) + 1)
		n += wcslen(at) + 1;
	for (i = 0; more[i]; i++)
		n += strlen(more[i]) + 1;
	to = all = calloc(n + 1, sizeof(*all));
	for (i = 0; all && more[i]; i++) {
		wide = wide_text(more[i]);
		if (wide)
			to = wcscpy(to, wide) + wcslen(wide) + 1;
		wide_free(wide);
	}
	for (at = own; all && at && *at; at += wcslen(at) + 1) {
		if (!is_replaced(at, more))
			to = wcscpy(to, at) + wcslen(at) + 1;
	}
	if (own)
		FreeEnvironmentStringsW(own);
	return all;
}

static bool start(const struct buf *line, char *const *more, HANDLE output,
		  PROCESS_INFORMATION *process)
{
	wchar_t *wide = wide_text(buf_text(line)), *environment = join_environment(more);
	STARTUPINFOW how = {.cb = sizeof(how), .dwFlags = STARTF_USESTDHANDLES};
	bool started;

	how.hStdOutput = how.hStdError = output;
	started = wide && environment &&
		  CreateProcessW(NULL, wide, NULL, NULL, TRUE, CREATE_NO_WINDOW | CREATE_SUSPENDED |
				 CREATE_UNICODE_ENVIRONMENT, environment, NULL, &how, process);
	free(environment);
	wide_free(wide);
	return started;
}

static int wait_for(const PROCESS_INFORMATION *process, HANDLE job, HANDLE pipe,
		    uint64_t timeout_ns, struct buf *output, size_t max_bytes, const char *name,
		    struct err *err)
{
	uint64_t end_ns = os_now_ns() + timeout_ns;

	while (WaitForSingleObject(process->hProcess, STEP_MS) == WAIT_TIMEOUT) {
		take_output(pipe, output, max_bytes);
		if (os_now_ns() < end_ns)
			continue;
		if (!job || !TerminateJobObject(job, 1))
			TerminateProcess(process->hProcess, 1);
		WaitForSingleObject(process->hProcess, 5000);
		return err_set(err, ERR_LIMIT, "%.200s was ended: it ran for over %.0f s", name,
			       (double)timeout_ns / 1e9);
	}
	take_output(pipe, output, max_bytes);
	return 0;
}

bool os_finds_program(const char *name)
{
	wchar_t *wide = wide_text(name), path[MAX_PATH];
	/* The result is the length that is needed: beyond MAX_PATH the program was found too. */
	bool found = wide && SearchPathW(NULL, wide, L".exe", MAX_PATH, path, NULL) > 0;

	wide_free(wide);
	return found;
}

int os_run(char *const *argv, char *const *more, uint64_t timeout_ns, struct buf *output,
	   size_t max_bytes, int *code, struct err *err)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};
	PROCESS_INFORMATION process;
	HANDLE from = NULL, to = NULL, job;
	struct buf line = {0};
	DWORD exit_code = 0;
	size_t i;
	int rc;

	for (i = 0; argv[i]; i++)
		windows_put_argument(&line, argv[i]);
	rc = buf_check(&line, "a command line", err);
	if (!rc && !CreatePipe(&from, &to, &inherit, 0))
		rc = err_os(err, "%.200s was not started: no pipe", argv[0]);
	if (!rc)
		SetHandleInformation(from, HANDLE_FLAG_INHERIT, 0);
	if (!rc && !start(&line, more, to, &process)) {
		rc = err_os(err, "%.200s cannot be started", argv[0]);
		CloseHandle(from);
	} else if (!rc) {
		job = job_open();
		if (job)
			AssignProcessToJobObject(job, process.hProcess);
		ResumeThread(process.hThread);
		rc = wait_for(&process, job, from, timeout_ns, output, max_bytes, argv[0], err);
		GetExitCodeProcess(process.hProcess, &exit_code);
		*code = (int)exit_code;
		CloseHandle(process.hThread);
		CloseHandle(process.hProcess);
		CloseHandle(from);
		if (job)
			CloseHandle(job);
	}
	if (to)
		CloseHandle(to);
	buf_free(&line);
	return rc;
}

bool os_show_in_pager(const char *text, size_t n)
{
	(void)text, (void)n;
	return false;
}
