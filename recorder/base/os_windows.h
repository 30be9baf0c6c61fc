/*
 * What the os_*_windows.c files share: UTF-16 texts and paths, and rights for the owner alone.
 * Nobody else includes this: above os.h there is neither UTF-16 nor a HANDLE. Any thread.
 */
#pragma once

#include "base/buf.h"

#include <windows.h>

/*
 * A copy as UTF-16, for wide_free(). NULL leaves ERROR_NOT_ENOUGH_MEMORY or, for invalid UTF-8,
 * ERROR_NO_UNICODE_TRANSLATION in GetLastError(), for the caller's err_os().
 */
wchar_t *wide_text(const char *utf8);

/* The same for a file name; a long one becomes absolute and gets the prefix that lifts MAX_PATH. */
wchar_t *wide_path(const char *path);

/* Frees without changing GetLastError(), so it may stand between a call and its err_os(). */
void wide_free(wchar_t *text);

/* Append as UTF-8; invalid UTF-16 becomes U+FFFD. */
void wide_put(struct buf *out, const wchar_t *text);

enum private_kind { PRIVATE_FILE, PRIVATE_DIRECTORY, PRIVATE_PIPE };

/*
 * Rights for the owner, the system and administrators; nothing is inherited from above, and a
 * directory passes them on. Free with private_free(). On false GetLastError() says why; then create
 * nothing.
 */
bool private_open(enum private_kind kind, SECURITY_ATTRIBUTES *out);
void private_free(SECURITY_ATTRIBUTES *attributes);   /* keeps GetLastError() */

/* Undo os_terminal_styles(), at the end of the program; Ctrl-C does so by itself. */
void os_terminal_restore(void);

/* An event, set while a signal waits for os_signal_wait(); NULL before os_signals_open(). */
HANDLE os_signals_event(void);
/* Raise a signal from within: the service manager's stop. Any thread. os_signal_windows.c */
void os_signal_raise(int signal);            /* enum os_signal */
/* The session or machine is ending: raise a stop and wait until the program has saved. */
void os_signal_session_ends(void);
/* Watch for that on a thread of its own; from os_signals_open() to _close(). os_logoff_windows.c */
void os_logoff_watch(void);
void os_logoff_unwatch(void);
/* A service hears about every user's logoff and must ignore it. */
void os_signals_ignore_logoff(void);

/*
 * Append one argument, quoted as the other program's C runtime will read it back: backslashes
 * before a quote are doubled. Source: Microsoft, "Parsing C command-line arguments".
 */
void windows_put_argument(struct buf *line, const char *text);

/* A wait in milliseconds, rounded up; UINT64_MAX = INFINITE. */
DWORD wait_ms(uint64_t timeout_ns);
