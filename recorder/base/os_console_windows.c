/*
 * The console: its width, and whether it obeys escape sequences. That is a mode of the window, not
 * of this program, so it is set back at the end, also after Ctrl-C or closing the window. In that
 * case the system calls a handler on a thread of its own, without a context, so the state is
 * static.
 */
#include "base/os.h"

#include "base/os_windows.h"

#include <stdlib.h>

static struct {
	SRWLOCK lock;                        /* guards the rest */
	bool changed, watched;
	DWORD before;
} console = {.lock = SRWLOCK_INIT};

unsigned os_terminal_columns(void)
{
	CONSOLE_SCREEN_BUFFER_INFO info;

	if (GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &info) &&
	    info.srWindow.Right >= info.srWindow.Left)
		return (unsigned)(info.srWindow.Right - info.srWindow.Left + 1);
	return 80;
}

void os_terminal_restore(void)
{
	AcquireSRWLockExclusive(&console.lock);
	if (console.changed)
		SetConsoleMode(GetStdHandle(STD_OUTPUT_HANDLE), console.before);
	console.changed = false;
	ReleaseSRWLockExclusive(&console.lock);
}

/* FALSE passes the event on, and the program ends; a recording one installed its handler later. */
static BOOL WINAPI on_console_event(DWORD event)
{
	(void)event;
	os_terminal_restore();
	return FALSE;
}

/* From Windows 10 1511 on. Source: learn.microsoft.com, "Console Virtual Terminal Sequences". */
bool os_terminal_styles(void)
{
	HANDLE out = GetStdHandle(STD_OUTPUT_HANDLE);
	bool obeys;
	DWORD mode;

	AcquireSRWLockExclusive(&console.lock);
	obeys = GetConsoleMode(out, &mode);
	if (obeys && !(mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING)) {
		obeys = SetConsoleMode(out, mode | ENABLE_PROCESSED_OUTPUT |
						    ENABLE_VIRTUAL_TERMINAL_PROCESSING);
		console.changed = obeys;
		console.before = mode;
	}
	if (console.changed && !console.watched) {
		console.watched = true;
		SetConsoleCtrlHandler(on_console_event, TRUE);
		atexit(os_terminal_restore);
	}
	ReleaseSRWLockExclusive(&console.lock);
	return obeys;
}
