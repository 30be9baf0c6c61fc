/*
 * Counters of managed programs, computed from the events of their collections:
 *
 *	.NET CLR Memory:% Time in GC:_Global_	JVM Memory:% Time in GC:java
 *
 * % Time in GC is the share of the last period in which the program was paused for a collection (in
 * .NET Framework the same name meant the share since the previous collection). Collections count
 * from the start of the recording, in a JVM from its own start. An instance is a program's name
 * (all programs of that name together), pid=N, or _Global_ for all programs; _Global_ of % Time in
 * GC is the highest value of any program. Portable; one thread.
 */
#pragma once

#include "base/out.h"
#include "model/event.h"
#include "model/needs.h"

enum gc_runtime { GC_DOTNET, GC_JVM };

/*
 * Whether the name is in one of the two categories, or one that JVMs keep themselves
 * or an EventCounter (counter_name.h). The check gives 0, or ERR_USAGE with the nearest name.
 */
bool gc_counter_is(const char *name);
int gc_counter_check(const char *name, struct err *err);
/* Whether an instance ("", _Global_, pid=N, a name) means this process. */
bool gc_counter_means(const char *instance, const struct process *process);
/* Whether any counter is of this runtime. */
bool gc_counters_wanted(const struct needs *needs, enum gc_runtime runtime);
int gc_counters_list(const char *pattern, bool json, struct out *out, struct err *err);

struct gc_counters;

int gc_counters_new(const struct needs *needs, enum gc_runtime runtime, struct gc_counters **out,
		    struct err *err);
void gc_counters_free(struct gc_counters *c);           /* NULL allowed, here and below */

/* A program exists (also before its first collection), or has ended. */
void gc_counters_program(struct gc_counters *c, struct process *process);
void gc_counters_gone(struct gc_counters *c, uint32_t pid);
/*
 * GC/SuspendEEStart, GC/RestartEEStop, GC/Start, GC/HeapStats, GC/Pauses (jvm_linux.c). Ignores
 * others.
 */
void gc_counters_event(struct gc_counters *c, uint32_t pid, const struct event *e);
/* The bytes in a JVM's heap now, which no event reports. Called only when a counter wants them. */
bool gc_counters_want_bytes(const struct gc_counters *c);
void gc_counters_bytes(struct gc_counters *c, uint32_t pid, uint64_t bytes);
/*
 * Put the counters that are due as EVENT_COUNTER at now_ns, which is not before the last event's
 * time.
 * returns  when the next one is due; UINT64_MAX = no counter is wanted
 */
uint64_t gc_counters_poll(struct gc_counters *c, uint64_t now_ns,
			  void (*deliver)(void *ctx, const struct event *e), void *ctx);
