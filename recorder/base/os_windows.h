/*
 * What the os_*_windows.c files share: UTF-16 texts and paths, and rights of the owner alone.
 * Nobody else includes this: above os.h there is neither UTF-16 nor a HANDLE. Any thread.
 */
#ifndef BASE_OS_WINDOWS_H
#define BASE_OS_WINDOWS_H

#include "base/buf.h"

#include <windows.h>

/*
 * A copy as UTF-16, for wide_free(). NULL leaves GetLastError() at ERROR_NOT_ENOUGH_MEMORY or, for
 * invalid UTF-8, ERROR_NO_UNICODE_TRANSLATION, so that the caller's err_os() says it.
 */
wchar_t *wide_text(const char *utf8);

/* The same for a file name; a long one becomes absolute and gets the prefix that lifts MAX_PATH. */
wchar_t *wide_path(const char *path);

/* Frees and keeps GetLastError(), so it may stand between a call and its err_os(). */
void wide_free(wchar_t *text);

/* Append as UTF-8; what is no UTF-16 becomes U+FFFD. */
void wide_put(struct buf *out, const wchar_t *text);

enum private_kind { PRIVATE_FILE, PRIVATE_DIRECTORY, PRIVATE_PIPE };

/*
 * Rights for the owner, the system and administrators, nothing inherited from above; a directory
 * hands them on. For private_free(). False: GetLastError() says why, and nothing may be created.
 */
bool private_open(enum private_kind kind, SECURITY_ATTRIBUTES *out);
void private_free(SECURITY_ATTRIBUTES *attributes);   /* keeps GetLastError() */

/* What os_terminal_styles() has changed is set back; at the end of the program, and on Ctrl-C, by itself. */
void os_terminal_restore(void);

/* An event that is set while a signal waits for os_signal_wait(); NULL = os_signals_open() was not called. */
HANDLE os_signals_event(void);
/* What a signal does, from within: the service manager's stop. Any thread. os_signal_windows.c */
void os_signal_raise(int signal);            /* enum os_signal */
/* The session or machine ends: raises a stop and waits until the program has saved. */
void os_signal_session_ends(void);
/* Watch for that in a thread of its own; from os_signals_open() to _close(). os_logoff_windows.c */
void os_logoff_watch(void);
void os_logoff_unwatch(void);
/* A service is told of every user's logoff; it is none of its business. */
void os_signals_ignore_logoff(void);

/* Milliseconds for a wait, rounded up; UINT64_MAX = INFINITE. */
DWORD wait_ms(uint64_t timeout_ns);

#endif
