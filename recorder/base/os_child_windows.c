#include "base/os.h"
#include "base/os_windows.h"

#include <stdlib.h>

struct os_child {
	PROCESS_INFORMATION process;
	const char *name;
	bool gone;
};

int os_child_start(char *const *argv, char *const *variables, struct os_child **out,
		   struct err *err)
{
	struct os_child *child = calloc(1, sizeof(*child));
	STARTUPINFOW how = {.cb = sizeof(how)};
	struct buf line = {0};
	wchar_t *wide = NULL;
	int rc;
	size_t i;

	(void)variables;
	if (!child)
		return err_memory(err, "to start %.200s", argv[0]);
	child->name = argv[0];
	for (i = 0; argv[i]; i++)
		windows_put_argument(&line, argv[i]);
	rc = buf_check(&line, "a command line", err);
	if (!rc && !(wide = wide_text(buf_text(&line))))
		rc = err_memory(err, "to start %.200s", argv[0]);
	if (!rc && !CreateProcessW(NULL, wide, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL,
				   &how, &child->process))
		rc = err_os(err, "%.200s cannot be started", argv[0]);
	wide_free(wide);
	buf_free(&line);
	if (rc) {
		free(child);
		return rc;
	}
	*out = child;
	return 0;
}

uint32_t os_child_pid(const struct os_child *child)
{
	return child->process.dwProcessId;
}

int os_child_go(struct os_child *child, struct err *err)
{
	child->gone = true;
	if (ResumeThread(child->process.hThread) == (DWORD)-1)
		return err_os(err, "%.200s cannot be started", child->name);
	return 0;
}

bool os_child_ended(struct os_child *child, int *code)
{
	DWORD exit_code = 0;

	*code = 0;
	if (WaitForSingleObject(child->process.hProcess, 0) != WAIT_OBJECT_0)
		return false;
	GetExitCodeProcess(child->process.hProcess, &exit_code);
	*code = (int)exit_code;
	return true;
}

/* Ctrl-C has reached every program of the console. */
void os_child_stop(struct os_child *child)
{
	(void)child;
}

void os_child_free(struct os_child *child)
{
	if (!child)
		return;
	if (!child->gone)
		TerminateProcess(child->process.hProcess, 1);
	CloseHandle(child->process.hThread);
	CloseHandle(child->process.hProcess);
	free(child);
}

int os_background(struct os_background *out, struct err *err)
{
	memset(out, 0, sizeof(*out));
	return err_set(err, ERR_UNSUPPORTED,
		       "on Windows a recorder in the background is a service: 'recorder service "
		       "install --config FILE', then 'recorder service start'");
}

void os_background_ready(struct os_background *b)
{
	(void)b;
}

void os_notify(const char *state)
{
	(void)state;
}

void os_system_log(const struct os_log_field *fields, unsigned n)
{
	HANDLE source = RegisterEventSourceW(NULL, L"recorder");
	struct buf text = {0};
	const wchar_t *line;
	wchar_t *wide;
	unsigned i;

	buf_puts(&text, fields[0].value);
	for (i = 1; i < n; i++)
		buf_printf(&text, "\r\n%s=%s", fields[i].name, fields[i].value);
	line = wide = wide_text(buf_text(&text));
	if (source && wide)
		ReportEventW(source, EVENTLOG_INFORMATION_TYPE, 0, 1, NULL, 1, 0, &line, NULL);
	if (source)
		DeregisterEventSource(source);
	wide_free(wide);
	buf_free(&text);
}
