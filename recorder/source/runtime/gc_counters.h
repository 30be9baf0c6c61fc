/*
 * Counters of managed programs, computed from the events of their collections:
 *
 *	.NET CLR Memory:% Time in GC:_Global_	JVM Memory:% Time in GC:java
 *
 * % Time in GC is the share of the last period in which the program stood still for a collection (what
 * .NET Framework called so was the share since the collection before). Collections are counted from the
 * beginning of the recording, those of a JVM from its own. Instances: a program's name (all with that name
 * together), pid=N, or _Global_: all programs; of % Time in GC then the highest one. Portable; one thread.
 */
#ifndef SOURCE_GC_COUNTERS_H
#define SOURCE_GC_COUNTERS_H

#include "base/out.h"
#include "model/event.h"
#include "model/needs.h"

enum gc_runtime { GC_DOTNET, GC_JVM };

/* Whether the name is of one of the two categories, right or wrong; then 0 or ERR_USAGE with the nearest. */
bool gc_counter_is(const char *name);
int gc_counter_check(const char *name, struct err *err);
/* Whether one of them is of this runtime. */
bool gc_counters_wanted(const struct needs *needs, enum gc_runtime runtime);
int gc_counters_list(const char *pattern, bool json, struct out *out, struct err *err);

struct gc_counters;

int gc_counters_new(const struct needs *needs, enum gc_runtime runtime, struct gc_counters **out,
		    struct err *err);
void gc_counters_free(struct gc_counters *c);           /* NULL allowed, here and below */

/* A program that is there, before its first collection too; and one that has ended. */
void gc_counters_program(struct gc_counters *c, struct process *process);
void gc_counters_gone(struct gc_counters *c, uint32_t pid);
/* GC/SuspendEEStart, GC/RestartEEStop, GC/Start, GC/HeapStats, GC/Pauses (jvm_linux.c); all others do nothing. */
void gc_counters_event(struct gc_counters *c, uint32_t pid, const struct event *e);
/* What a JVM's heap holds now: nobody tells of it by events. Asked for only where a counter wants it. */
bool gc_counters_want_bytes(const struct gc_counters *c);
void gc_counters_bytes(struct gc_counters *c, uint32_t pid, uint64_t bytes);
/*
 * The counters that are due: EVENT_COUNTER at now_ns, which is at or behind the last event's time. Returns when the
 * next one will be; UINT64_MAX = none is wanted.
 */
uint64_t gc_counters_poll(struct gc_counters *c, uint64_t now_ns, void (*deliver)(void *ctx, const struct event *e),
			  void *ctx);

#endif
