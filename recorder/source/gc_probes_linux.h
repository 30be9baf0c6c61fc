/*
 * Collections of CPython and V8 (node), by probes in these programs: python:gc__start and gc__done where a
 * distribution has built them in, V8's Heap::PerformGarbageCollection from its entry to its return where
 * node is not stripped. Both stop the program while they run. Delivered as .NET's are: provider CPython or V8,
 * GC/SuspendEEStart and GC/Start, then GC/Stop and GC/RestartEEStop, with the fields Reason 1, Count 0, Depth
 * (generation; V8: 2 = mark-compact, 0 = scavenge), Type 0, Collector.
 */
#ifndef SOURCE_GC_PROBES_LINUX_H
#define SOURCE_GC_PROBES_LINUX_H

#include "model/needs.h"
#include "source/uprobe_linux.h"

#define GC_PROGRAMS_MAX 8u
#define GC_PROBE_FIELDS 5u

enum gc_edge { GC_NO_EDGE, GC_BEGINS, GC_ENDS };

struct gc_probe {
	enum gc_edge edge;
	bool v8;
};

/* Whether a rule is on collections. */
bool gc_probes_wanted(const struct needs *needs);

/*
 * Programs that run now, and the system's python3 and node, each file once: which probes to put into them, as events
 * of "uprobe" or "usdt"; two of each program. Reads /proc: not the source's thread. Returns how many.
 */
unsigned gc_probes_find(struct need_event events[2 * GC_PROGRAMS_MAX], struct gc_probe probes[2 * GC_PROGRAMS_MAX]);

/* What a hit says: provider, fields and the first of its two names. */
void gc_probe_event(const struct gc_probe *probe, const struct event_field *arguments, unsigned narguments,
		    struct event_field fields[GC_PROBE_FIELDS], struct event *out);
const char *gc_probe_second_name(const struct gc_probe *probe);

#endif
