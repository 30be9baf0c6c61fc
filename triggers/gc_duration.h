/*
 * Rules on garbage collections of .NET (Framework and .NET), from Microsoft-Windows-DotNETRuntime.
 *
 *	StopOnGCOverMsec:MS             GC/Start to GC/Stop of one collection; background ones are
 *	                                left out. ;Measure=pause: GC/SuspendEEStart to
 *	                                GC/RestartEEStop, which is how long the program stood still.
 *	StopOnGCSuspendOverMSec:MS      GC/SuspendEEStart to GC/SuspendEEStop of one thread: how long
 *	                                it took until the program stood still
 *	StopOnBGCFinalPauseOverMsec:MS  the pause that ends a background collection: GC/SuspendEEStart
 *	                                with reason 6 (GC prep) to GC/RestartEEStop of one thread
 *	StopOnGen2GC                    GC/Start of generation 2 and over, not background; at its start; its
 *	                                incident's window goes on until GC/Stop
 *
 * MS 0 switches a rule off. Keys: Measure, InFlight, Process and those of threshold.h. Pauses and
 * suspensions count when their reason is a collection (1, 6); others (debugger, shutdown) do not.
 *
 * Collections are told apart by process, CLR instance and count, so that runtimes side by side in one
 * process do not mix, and the two GC/Start of .NET Framework 4.5 (versions 1 and 2) are one: the
 * first counts. With InFlight (the default) one that is still open a grace after its limit fires then,
 * with its age: a hung collection has no stop.
 *
 * Java programs (provider "JVM", Linux), CPython and V8 (by their probes): the only measure is the pause, which is delivered as a collection
 * too, so that both values of Measure give it; a concurrent collector has none but its pauses. Depth is 2
 * for a full collection.
 *
 * Source: design pages triggers.md section 6, etl-format.md section 9.
 */
#ifndef TRIGGERS_GC_DURATION_H
#define TRIGGERS_GC_DURATION_H

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

#endif
