#include "base/os_service.h"

#include "base/os.h"
#include "base/os_windows.h"

#include <stdlib.h>
#include <string.h>

#define STOP_WAIT_NS (60 * NS_PER_SEC)
#define START_WAIT_NS (20 * NS_PER_SEC)
#define LOOK_NS (50 * NS_PER_MS)
#define PENDING_MS 30000u                    /* the service manager expects news within this time */
#define SHUTDOWN_MS 30000u                   /* for saving when the machine shuts down */
#define RESTART_MS 60000u
#define FORGET_SEC 86400u                    /* after a day without a crash */

/* ---- the service manager --------------------------------------------------------------------- */

struct control {
	SC_HANDLE manager, service;
};

static void control_close(struct control *c)
{
	if (c->service)
		CloseServiceHandle(c->service);
	if (c->manager)
		CloseServiceHandle(c->manager);
}

static int manager_open(struct control *c, DWORD rights, struct err *err)
{
	c->service = NULL;
	c->manager = OpenSCManagerW(NULL, NULL, rights);
	if (c->manager)
		return 0;
	if (GetLastError() == ERROR_ACCESS_DENIED)
		return err_set(err, ERR_ACCESS, "only administrators may change services: run "
			       "this as administrator");
	return err_os(err, "cannot reach the service manager");
}

static int service_open(struct control *c, const char *name, DWORD rights, struct err *err)
{
	wchar_t *wide = wide_text(name);
	int rc = manager_open(c, SC_MANAGER_CONNECT, err);

	if (!rc && wide)
		c->service = OpenServiceW(c->manager, wide, rights | SERVICE_QUERY_STATUS);
	wide_free(wide);
	if (rc || c->service)
		return rc;
	if (GetLastError() == ERROR_SERVICE_DOES_NOT_EXIST)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no service '%s'; 'recorder service install' installs it",
			       name);
	if (GetLastError() == ERROR_ACCESS_DENIED)
		return err_set(err, ERR_ACCESS, "only administrators may change the service '%s': "
			       "run this as administrator", name);
	return err_os(err, "cannot open the service '%s'", name);
}

/* Wait until it has left this state and the pending one; returns the new state, 0 = unknown. */
static DWORD wait_while(SC_HANDLE service, DWORD state, DWORD pending, uint64_t timeout_ns)
{
	uint64_t until_ns = os_now_ns() + timeout_ns;
	SERVICE_STATUS status;

	for (;;) {
		if (!QueryServiceStatus(service, &status))
			return 0;
		if ((status.dwCurrentState != state && status.dwCurrentState != pending) ||
		    os_now_ns() >= until_ns)
			return status.dwCurrentState;
		os_sleep_ns(LOOK_NS);
	}
}

/* ---- installing ------------------------------------------------------------------------------ */

/* "C:\Program Files\recorder.exe" service run ...; none of our arguments ends in a backslash. */
static wchar_t *command_line(char *const *argv)
{
	wchar_t program[4096];
	struct buf line = {0};
	wchar_t *wide;
	DWORD n = GetModuleFileNameW(NULL, program, 4096);

	if (n == 0 || n >= 4096)
		return NULL;
	buf_putc(&line, '"');
	wide_put(&line, program);
	buf_putc(&line, '"');
	for (; *argv; argv++)
		buf_printf(&line, " \"%s\"", *argv);
	wide = line.failed ? NULL : wide_text(buf_text(&line));
	buf_free(&line);
	return wide;
}

/* What Windows does after a crash, and how long it waits when the machine shuts down. */
static void configure(SC_HANDLE service, wchar_t *description)
{
	SC_ACTION restart[3] = {{SC_ACTION_RESTART, RESTART_MS}, {SC_ACTION_RESTART, RESTART_MS},
				{SC_ACTION_RESTART, RESTART_MS}};
	SERVICE_FAILURE_ACTIONSW failure = {
		.dwResetPeriod = FORGET_SEC, .cActions = 3, .lpsaActions = restart};
	SERVICE_PRESHUTDOWN_INFO shutdown = {.dwPreshutdownTimeout = SHUTDOWN_MS};
	SERVICE_DESCRIPTIONW text = {.lpDescription = description};

	ChangeServiceConfig2W(service, SERVICE_CONFIG_DESCRIPTION, &text);
	ChangeServiceConfig2W(service, SERVICE_CONFIG_FAILURE_ACTIONS, &failure);
	ChangeServiceConfig2W(service, SERVICE_CONFIG_PRESHUTDOWN_INFO, &shutdown);
}

/*
 * Without a source that is registered, the event viewer wraps each line of os_system_log() in an
 * apology. Windows' own file has a message for ids up to 1000 that is just the first string.
 * Sources: "Adding a Source to the Registry"; eventcreate.
 */
static const wchar_t event_source[] =
	L"SYSTEM\\CurrentControlSet\\Services\\EventLog\\Application\\recorder";

static void register_event_source(void)
{
	static const wchar_t file[] = L"%SystemRoot%\\System32\\EventCreate.exe";
	DWORD types = EVENTLOG_ERROR_TYPE | EVENTLOG_WARNING_TYPE | EVENTLOG_INFORMATION_TYPE;
	HKEY key;

	if (RegCreateKeyExW(HKEY_LOCAL_MACHINE, event_source, 0, NULL, 0, KEY_SET_VALUE, NULL,
			    &key, NULL))
		return;
	RegSetValueExW(key, L"EventMessageFile", 0, REG_EXPAND_SZ, (const BYTE *)file,
		       sizeof(file));
	RegSetValueExW(key, L"TypesSupported", 0, REG_DWORD, (const BYTE *)&types, sizeof(types));
	RegCloseKey(key);
}

int os_service_install(const char *name, const char *description, char *const *argv,
		       struct err *err)
{
	wchar_t *wide = wide_text(name), *text = wide_text(description), *line = command_line(argv);
	struct control c = {0};
	int rc = manager_open(&c, SC_MANAGER_CONNECT | SC_MANAGER_CREATE_SERVICE, err);

	if (!rc && (!wide || !text || !line))
		rc = err_os(err, "cannot install the service '%s'", name);
	if (!rc) {
		c.service =
			CreateServiceW(c.manager, wide, wide, SERVICE_ALL_ACCESS,
				       SERVICE_WIN32_OWN_PROCESS, SERVICE_AUTO_START,
				       SERVICE_ERROR_NORMAL, line, NULL, NULL, NULL, NULL, NULL);
		if (!c.service && GetLastError() == ERROR_SERVICE_EXISTS)
			rc = err_set(err, ERR_EXISTS, "the service '%s' is installed already; "
				     "'recorder service uninstall' removes it", name);
		else if (!c.service)
			rc = err_os(err, "cannot install the service '%s'", name);
		else
			configure(c.service, text);
		if (!rc)
			register_event_source();
	}
	control_close(&c);
	wide_free(wide);
	wide_free(text);
	wide_free(line);
	return rc;
}

static int stop(SC_HANDLE service, const char *name, struct err *err)
{
	SERVICE_STATUS status;

	if (!ControlService(service, SERVICE_CONTROL_STOP, &status) &&
	    GetLastError() != ERROR_SERVICE_NOT_ACTIVE)
		return err_os(err, "cannot stop the service '%s'", name);
	if (wait_while(service, SERVICE_RUNNING, SERVICE_STOP_PENDING, STOP_WAIT_NS) !=
	    SERVICE_STOPPED)
		return err_set(err, ERR_BUSY, "the service '%s' has not stopped within a minute",
			       name);
	return 0;
}

int os_service_uninstall(const char *name, struct err *err)
{
	struct control c = {0};
	int rc = service_open(&c, name, SERVICE_STOP | DELETE, err);

	/* A service that cannot be stopped now is removed when it ends. */
	if (!rc)
		stop(c.service, name, NULL);
	if (!rc && !DeleteService(c.service))
		rc = err_os(err, "cannot remove the service '%s'", name);
	if (!rc)
		RegDeleteKeyW(HKEY_LOCAL_MACHINE, event_source);
	control_close(&c);
	return rc;
}

int os_service_start(const char *name, struct err *err)
{
	struct control c = {0};
	int rc = service_open(&c, name, SERVICE_START, err);

	if (!rc && !StartServiceW(c.service, 0, NULL) &&
	    GetLastError() != ERROR_SERVICE_ALREADY_RUNNING)
		rc = err_os(err, "cannot start the service '%s'", name);
	if (!rc && wait_while(c.service, SERVICE_STOPPED + 100, SERVICE_START_PENDING,
			      START_WAIT_NS) != SERVICE_RUNNING)
		rc = err_set(err, ERR_IO, "the service '%s' has ended at once; its log says why",
			     name);
	control_close(&c);
	return rc;
}

int os_service_stop(const char *name, struct err *err)
{
	struct control c = {0};
	int rc = service_open(&c, name, SERVICE_STOP, err);

	if (!rc)
		rc = stop(c.service, name, err);
	control_close(&c);
	return rc;
}

/* ---- being the service ----------------------------------------------------------------------- */

/*
 * The service manager calls back without a context for the main function, so the state is static.
 */
static struct {
	os_service_main *run;
	void *ctx;
	struct err *err;
	SERVICE_STATUS_HANDLE handle;
	SRWLOCK lock;                        /* guards state */
	DWORD state, checkpoint;
	int rc;
} being = {.lock = SRWLOCK_INIT};

static void tell_state(DWORD state)
{
	SERVICE_STATUS status = {.dwServiceType = SERVICE_WIN32_OWN_PROCESS};

	AcquireSRWLockExclusive(&being.lock);
	if (being.state != SERVICE_STOP_PENDING || state == SERVICE_STOPPED)
		being.state = state;         /* stopping never goes back */
	status.dwCurrentState = being.state;
	if (being.state == SERVICE_RUNNING)
		status.dwControlsAccepted = SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_PRESHUTDOWN;
	if (being.state == SERVICE_START_PENDING || being.state == SERVICE_STOP_PENDING) {
		status.dwCheckPoint = ++being.checkpoint;
		status.dwWaitHint = PENDING_MS;
	}
	if (being.state == SERVICE_STOPPED && being.rc) {
		status.dwWin32ExitCode = ERROR_SERVICE_SPECIFIC_ERROR;
		status.dwServiceSpecificExitCode = 1;
	}
	SetServiceStatus(being.handle, &status);
	ReleaseSRWLockExclusive(&being.lock);
}

static DWORD WINAPI on_control(DWORD control, DWORD type, LPVOID data, LPVOID ctx)
{
	(void)type;
	(void)data;
	(void)ctx;
	switch (control) {
	case SERVICE_CONTROL_STOP:
	case SERVICE_CONTROL_PRESHUTDOWN:
	case SERVICE_CONTROL_SHUTDOWN:
		tell_state(SERVICE_STOP_PENDING);
		os_signal_raise(OS_SIGNAL_STOP);
		return NO_ERROR;
	case SERVICE_CONTROL_INTERROGATE:
		return NO_ERROR;
	default:
		return ERROR_CALL_NOT_IMPLEMENTED;
	}
}

static VOID WINAPI service_main(DWORD argc, LPWSTR *argv)
{
	being.handle = RegisterServiceCtrlHandlerExW(argc ? argv[0] : L"", on_control, NULL);
	if (!being.handle) {
		being.rc = err_os(being.err, "the service manager refuses this service");
		return;
	}
	tell_state(SERVICE_RUNNING);
	being.rc = being.run(being.ctx, being.err);
	tell_state(SERVICE_STOPPED);
}

int os_service_run(const char *name, os_service_main *run, void *ctx, struct err *err)
{
	wchar_t *wide = wide_text(name);
	SERVICE_TABLE_ENTRYW table[2] = {{wide, service_main}, {NULL, NULL}};
	int rc = 0;

	being.run = run;
	being.ctx = ctx;
	being.err = err;
	os_signals_ignore_logoff();
	if (!wide || !StartServiceCtrlDispatcherW(table))
		rc = GetLastError() == ERROR_FAILED_SERVICE_CONTROLLER_CONNECT
			     ? err_set(err, ERR_USAGE,
				       "only the service manager calls 'service run'; 'recorder "
				       "service start' asks it to, 'recorder collect' records "
				       "without it")
			     : err_os(err, "cannot be the service '%s'", name);
	wide_free(wide);
	return rc ? rc : being.rc;
}
