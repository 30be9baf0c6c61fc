/*
 * Borrows the sampling interval of Windows, one setting for the whole machine, and restores it.
 *
 * Each recorder registers the interval that it wants; the shortest one is set. When the last
 * recorder ends, the interval from before the first is restored, unless another program changed
 * it meanwhile. All of this is kept in a volatile key of the registry, which ends with a restart,
 * as the setting does. So the next recorder finds what a killed one has left. Any thread;
 * recorders exclude each other by a mutex.
 *
 * Sources: docs, TraceSetInformation() and TraceQueryInformation() with
 * TraceSampledProfileIntervalInfo; the default of 1 ms: "Notes on WPA Sampling";
 * REG_OPTION_VOLATILE: docs, RegCreateKeyEx().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

/* An owner is a recorder. Its name is that of its session too, and tells its pid and start time. */
#define ETW_OWNER_CHARS 64u

/* The name for this process: "recorder-session-PID-START", 41 characters at most. */
void etw_owner_name(wchar_t out[ETW_OWNER_CHARS]);
/* Whether this is the name of a recorder that has ended, or begins so; false when unknown. */
bool etw_owner_is_gone(const wchar_t *name);

/* Keep other recorders from a setting of the machine, for 2 s at most. name: of a mutex */
void *etw_setting_lock(const wchar_t *name);
void etw_setting_unlock(void *lock);

/*
 * Like TraceQueryInformation(), which Windows has from version 8 on.
 * returns  0 and in *n how many bytes; an error of Windows
 */
unsigned long etw_trace_query(uint64_t session, int class, void *out, uint32_t bytes, uint32_t *n);

/*
 * Register or change the interval that this owner (etw_owner_name()) wants.
 *
 * interval_100ns  becomes the interval that is set: another recorder may want a shorter one, and
 *                 Windows may round
 * returns         0, or the error of Windows, which then changes nothing; leave() is not needed
 */
unsigned long etw_interval_want(const wchar_t *owner, uint32_t *interval_100ns);
/* Withdraw the interval of an owner, or NULL: of all that have ended. Harmless if there is none. */
void etw_interval_leave(const wchar_t *owner);
