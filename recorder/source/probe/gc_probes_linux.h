/*
 * Collections of CPython and V8 (node), by probes in these programs: python:gc__start and gc__done
 * where a distribution has built them in (the program, or a libpython that runs now), V8's
 * Heap::PerformGarbageCollection from its entry to its return where node, or a libnode.so that runs
 * now, has its name. And of JVMs that keep no performance data (-XX:-UsePerfData,
 * +PerfDisableSharedMem), or whose file somebody has deleted: hotspot:gc__begin and gc__end, where
 * libjvm.so has them. All stop the program while they run (V8: one isolate, on its thread).
 * Delivered as .NET's are: provider CPython, V8 or JVM, GC/SuspendEEStart and GC/Start, then
 * GC/Stop and GC/RestartEEStop, with the fields Reason 1, Type 0, Collector, and Depth (generation;
 * V8: 2 = mark-compact, 0 = scavenge; JVM: 2 = full), which an end has only where its start was
 * seen. No Count: nobody numbers them, so a collection is told from others by its thread.
 *
 * A probe in libjvm.so is in all that run it: of those that keep such data jvm_linux.c tells the
 * pauses, so only processes that were found without are believed.
 */
#pragma once

#include "model/needs.h"
#include "source/probe/uprobe_linux.h"

#define GC_PROGRAMS_MAX 8u
#define GC_PROBE_FIELDS 4u
#define GC_THREADS 256u

#define GC_JVMS_MAX 32u                      /* without performance data, of one libjvm.so */

enum gc_edge { GC_NO_EDGE, GC_BEGINS, GC_ENDS };
enum gc_program { GC_CPYTHON, GC_V8, GC_HOTSPOT };

struct gc_probe {
	enum gc_edge edge;
	enum gc_program program;
	unsigned npids;                      /* of HotSpot */
	uint32_t pids[GC_JVMS_MAX];
	uint64_t starts_ns[GC_JVMS_MAX];     /* of those processes, to a hundredth of a second */
};

/* Whether a rule is on collections. */
bool gc_probes_wanted(const struct needs *needs);

/*
 * Programs that run now, and the system's python3 and node, each file once: which probes to put
 * into them, as events of "uprobe" or "usdt"; two of each program. Reads /proc: not the source's
 * thread. Returns how many.
 */
unsigned gc_probes_find(struct need_event events[2 * GC_PROGRAMS_MAX],
			struct gc_probe probes[2 * GC_PROGRAMS_MAX]);

/*
 * Whether a hit of this process, that started then (0 = not known), counts: numbers are given
 * again.
 */
bool gc_probe_is_of(const struct gc_probe *probe, uint32_t pid, uint64_t start_ns);
/* Whether this file has probes of CPython's collections, or of HotSpot's; reads it. */
bool gc_probes_has_python(const char *path);
bool gc_probes_has_hotspot(const char *path);
/*
 * Whether a program of this name is node; whether this file has the function that V8 collects in:
 * reads it.
 */
bool gc_probes_is_node(const char *name);
bool gc_probes_has_v8(const char *path);
/*
 * The generation of the last collection that began on a thread, for its end, which does not tell.
 * Starts empty.
 */
struct gc_generations {
	struct {
		uint32_t tid;
		uint8_t depth;
	} last[GC_THREADS];                  /* by tid modulo GC_THREADS */
};

/*
 * What a hit says: provider, fields and the first of its two names. An end has Depth only where it
 * is known.
 */
void gc_probe_event(const struct gc_probe *probe, const struct event_field *arguments,
		    unsigned narguments, uint32_t tid, struct gc_generations *generations,
		    struct event_field fields[GC_PROBE_FIELDS], struct event *out);
const char *gc_probe_second_name(const struct gc_probe *probe);
