/*
 * Whose an ETW session is: its name holds the number and the start of the recorder that made it, so that
 * what a killed one has left is known as such, and nothing else is ever touched. Windows only, no state.
 */
#ifndef SOURCE_ETW_OWNER_WINDOWS_H
#define SOURCE_ETW_OWNER_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

#define ETW_OWNER_CHARS 64u

/* This process's own name, "recorder-session-PID-START". */
void etw_owner_name(wchar_t out[ETW_OWNER_CHARS]);
/* Whether a recorder made this name that does not run any more; false also when nobody can tell. */
bool etw_owner_is_gone(const wchar_t *name);

#endif
