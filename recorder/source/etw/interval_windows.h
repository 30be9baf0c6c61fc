/*
 * How often Windows samples its CPUs: one setting for the whole machine, borrowed and given back.
 *
 * Each recorder writes what it wants beside its name; the shortest of these holds, and what held before the
 * first one is set again when the last one has ended, unless somebody else has changed it meanwhile. All
 * of it stands in a key of the registry that is gone after a restart, as the setting is; so what a killed
 * recorder has left is found by the next one. Any thread; recorders exclude each other by a mutex.
 *
 * Sources: docs, TraceSetInformation() and TraceQueryInformation() with TraceSampledProfileIntervalInfo;
 * the default of 1 ms: "Notes on WPA Sampling"; REG_OPTION_VOLATILE: docs, RegCreateKeyEx().
 */
#ifndef SOURCE_ETW_INTERVAL_WINDOWS_H
#define SOURCE_ETW_INTERVAL_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

/*
 * Have samples taken every *interval_100ns for this owner (etw_owner_name()), or at once another one.
 *
 * interval_100ns  becomes the one that holds: another recorder may want a shorter one, Windows may round
 * returns         0, or the error of Windows, which keeps what it has; then nothing is to be given back
 */
unsigned long etw_interval_want(const wchar_t *owner, uint32_t *interval_100ns);
/* This owner wants nothing any more. Harmless when it never did. */
void etw_interval_leave(const wchar_t *owner);
/* The same for all owners that are gone. */
void etw_interval_clear(void);

#endif
