/*
 * Names of ETW sessions that tell their owner: they contain the pid and the start time of a
 * recorder. So sessions that a killed recorder left can be told from all others. Windows only, no
 * state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

#define ETW_OWNER_CHARS 64u

/* The name for this process: "recorder-session-PID-START". */
void etw_owner_name(wchar_t out[ETW_OWNER_CHARS]);
/* Whether this is the name of a recorder that has ended; false when unknown. */
bool etw_owner_is_gone(const wchar_t *name);
