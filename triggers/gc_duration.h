/*
 * Rules on garbage collections of .NET and .NET Framework (Microsoft-Windows-DotNETRuntime).
 *
 *	StopOnGCOverMsec:MS             GC/Start to GC/Stop of one collection, but not a background
 *	                                one. ;Measure=pause: GC/SuspendEEStart to
 *	                                GC/RestartEEStop, while the program stands still.
 *	StopOnGCSuspendOverMSec:MS      GC/SuspendEEStart to GC/SuspendEEStop of one thread: the
 *	                                time until the program stands still
 *	StopOnBGCFinalPauseOverMsec:MS  the pause that ends a background collection:
 *	                                GC/SuspendEEStart with reason 6 (GC prep) to
 *	                                GC/RestartEEStop of one thread
 *	StopOnGen2GC                    GC/Start of generation 2 or above, but not background; the
 *	                                window of its incident goes on until GC/Stop
 *
 * MS 0 switches a rule off. Keys: Measure, InFlight, Process and those of threshold.h. Pauses and
 * suspensions count when their reason is a collection (1, 6), not a debugger or a shutdown.
 *
 * Process, CLR instance and count identify a collection, so runtimes side by side in one process do
 * not mix. The two GC/Start of .NET Framework 4.5 (versions 1 and 2) are one; the first counts.
 * With InFlight (the default) a collection that is still open some time after its limit fires with
 * its age: a hung collection has no stop.
 *
 * Java (provider "JVM", Linux), CPython and V8 (by their probes) have pauses only. These are
 * delivered as collections too, so that both values of Measure give them; a concurrent collector
 * has nothing but its pauses. Depth is 2 for a full collection.
 */
#pragma once

#include "triggers/trigger.h"

extern const struct trigger_ops gc_over_trigger;
extern const struct trigger_ops gc_suspend_over_trigger;
extern const struct trigger_ops bgc_final_pause_over_trigger;
extern const struct trigger_ops gen2_gc_trigger;

#define CLR_PROVIDER "Microsoft-Windows-DotNETRuntime"
#define JVM_PROVIDER "JVM"
#define CPYTHON_PROVIDER "CPython"
#define V8_PROVIDER "V8"
#define CLR_KEYWORD_GC 0x1u
