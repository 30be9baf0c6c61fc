#include "base/os.h"

#include "base/os_windows.h"


/*
 * Console events, and how they reach the program.
 *
 * Windows calls the handler on a thread that it creates for the purpose and passes it no context,
 * so the state is static: counts of events not yet taken, under a lock shared with
 * os_signal_wait(). Ctrl-C and Ctrl-Break are over when the handler returns. After close, logoff
 * and shutdown the process ends when the handler returns, so the handler waits until the program
 * has saved and called os_signals_close(). Windows allows 5 s on close and logoff and 20 s on
 * shutdown (HandlerRoutine, learn.microsoft.com); a service gets its stop from the service control
 * handler. A process that has loaded user32.dll learns about logoff and shutdown through a window:
 * os_logoff_windows.c.
 */
#define SAVE_WAIT_NS (20 * NS_PER_SEC)
#define MOST_WAITING 16               /* of a kind; pressing Ctrl-C more often means the same */

static struct {
	SRWLOCK lock;                 /* guards the rest */
	CONDITION_VARIABLE changed;
	unsigned nstops, nsnapshots;
	HANDLE waiting;              /* set while events wait; from os_signals_open() to _close() */
	bool finished;
	bool ignores_logoff;          /* a service */
	bool raised;                  /* os_signal_raise() before os_signals_open() */
} signals = {.lock = SRWLOCK_INIT, .changed = CONDITION_VARIABLE_INIT};

/* Wait until `until_ns` at most; false when it has passed. With the lock held. */
static bool wait_changed(uint64_t until_ns)
{
	uint64_t now = os_now_ns();

	if (now >= until_ns)
		return false;
	SleepConditionVariableSRW(&signals.changed, &signals.lock,
				  until_ns == UINT64_MAX ? INFINITE : wait_ms(until_ns - now), 0);
	return true;
}

static void add_one(unsigned *count)
{
	if (*count < MOST_WAITING)
		(*count)++;
	if (signals.waiting)
		SetEvent(signals.waiting);
	WakeAllConditionVariable(&signals.changed);
}

/* With the lock held. */
static void wait_until_saved(void)
{
	uint64_t until_ns = os_now_ns() + SAVE_WAIT_NS;

	while (!signals.finished && wait_changed(until_ns))
		;
}

static BOOL WINAPI console_event(DWORD event)
{
	AcquireSRWLockExclusive(&signals.lock);
	if (signals.ignores_logoff && event == CTRL_LOGOFF_EVENT) {
		ReleaseSRWLockExclusive(&signals.lock);
		return TRUE;
	}
	add_one(event == CTRL_BREAK_EVENT ? &signals.nsnapshots : &signals.nstops);
	if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT)
		wait_until_saved();
	ReleaseSRWLockExclusive(&signals.lock);
	return TRUE;
}

int os_signals_open(struct err *err)
{
	HANDLE waiting = CreateEventW(NULL, TRUE, FALSE, NULL);

	if (!waiting)
		return err_os(err, "cannot listen to console events");
	AcquireSRWLockExclusive(&signals.lock);
	signals.nstops = signals.raised;
	signals.nsnapshots = 0;
	signals.finished = false;
	signals.waiting = waiting;
	if (signals.nstops)
		SetEvent(waiting);
	ReleaseSRWLockExclusive(&signals.lock);
	if (!SetConsoleCtrlHandler(console_event, TRUE))
		return err_os(err, "cannot listen to console events");
	if (!signals.ignores_logoff)
		os_logoff_watch();
	return 0;
}

void os_signals_close(void)
{
	SetConsoleCtrlHandler(console_event, FALSE);
	AcquireSRWLockExclusive(&signals.lock);
	signals.finished = true;
	if (signals.waiting)
		CloseHandle(signals.waiting);
	signals.waiting = NULL;
	WakeAllConditionVariable(&signals.changed);
	ReleaseSRWLockExclusive(&signals.lock);
	os_logoff_unwatch();
}

HANDLE os_signals_event(void)
{
	return signals.waiting;
}

void os_signal_session_ends(void)
{
	AcquireSRWLockExclusive(&signals.lock);
	add_one(&signals.nstops);
	wait_until_saved();
	ReleaseSRWLockExclusive(&signals.lock);
}

void os_signal_raise(int signal)
{
	AcquireSRWLockExclusive(&signals.lock);
	signals.raised |= signal == OS_SIGNAL_STOP;
	add_one(signal == OS_SIGNAL_SNAPSHOT ? &signals.nsnapshots : &signals.nstops);
	ReleaseSRWLockExclusive(&signals.lock);
}

void os_signals_ignore_logoff(void)
{
	AcquireSRWLockExclusive(&signals.lock);
	signals.ignores_logoff = true;
	ReleaseSRWLockExclusive(&signals.lock);
}

enum os_signal os_signal_wait(uint64_t timeout_ns)
{
	uint64_t until_ns = os_deadline_ns(timeout_ns);
	enum os_signal result = OS_SIGNAL_NONE;

	AcquireSRWLockExclusive(&signals.lock);
	while (!signals.nstops && !signals.nsnapshots && wait_changed(until_ns))
		;
	if (signals.nstops) {
		signals.nstops--;
		result = OS_SIGNAL_STOP;
	} else if (signals.nsnapshots) {
		signals.nsnapshots--;
		result = OS_SIGNAL_SNAPSHOT;
	}
	if (signals.waiting && !signals.nstops && !signals.nsnapshots)
		ResetEvent(signals.waiting);
	ReleaseSRWLockExclusive(&signals.lock);
	return result;
}
