/*
 * Collections of CPython and V8 (node), by probes in these programs:
 *
 * - CPython: python:gc__start and gc__done, where a distribution has built them into the program or
 *   into a libpython that runs now.
 * - V8: Heap::PerformGarbageCollection, entry and return, where node or a libnode.so that runs now
 *   has that name.
 * - JVMs that keep no performance data (-XX:-UsePerfData, +PerfDisableSharedMem) or whose file was
 *   deleted: hotspot:gc__begin and gc__end, where libjvm.so has them.
 *
 * All stop the program while they run (V8: one isolate, on its thread). They are delivered like
 * those of .NET: provider CPython, V8 or JVM; GC/SuspendEEStart and GC/Start, then GC/Stop and
 * GC/RestartEEStop; fields Reason 1, Type 0, Collector and Depth (generation; V8: 2 mark-compact, 0
 * scavenge; JVM: 2 full). An end has Depth only if its start was seen. There is no Count, so
 * collections are distinguished by their thread.
 *
 * A probe in libjvm.so fires in all processes that use it. For JVMs with performance data
 * jvm_linux.c reports the pauses, so only processes that were found to have none are believed.
 */
#pragma once

#include "model/needs.h"
#include "source/probe/programs_linux.h"
#include "source/probe/uprobe_linux.h"

#define GC_PROGRAMS_MAX PROGRAM_FILES_MAX
#define GC_PROBE_FIELDS 4u
#define GC_THREADS 256u

#define GC_JVMS_MAX 32u                   /* JVMs without performance data that use one libjvm.so */

enum gc_edge { GC_NO_EDGE, GC_BEGINS, GC_ENDS };
enum gc_program { GC_CPYTHON, GC_V8, GC_HOTSPOT };

struct gc_probe {
	enum gc_edge edge;
	enum gc_program program;
	unsigned npids;                      /* HotSpot only */
	uint32_t pids[GC_JVMS_MAX];
	uint64_t starts_ns[GC_JVMS_MAX];     /* when those processes started, to 10 ms */
};

/* Whether some rule is about collections. */
bool gc_probes_wanted(const struct needs *needs);

/*
 * Find programs that run now, and the system's python3 and node, each file once, and name the
 * probes to put into them (two for each program) as events of "uprobe" or "usdt".
 * returns  the number of probes
 */
unsigned gc_probes_find(struct programs *of, struct need_event events[2 * GC_PROGRAMS_MAX],
			struct gc_probe probes[2 * GC_PROGRAMS_MAX]);

/*
 * Whether a hit counts that came from this process, started at start_ns (0 = not known); pids are
 * used again.
 */
bool gc_probe_is_of(const struct gc_probe *probe, uint32_t pid, uint64_t start_ns);
/* Whether the file has the probes, or V8's function, of this program. Reads the file: may hang. */
bool gc_probes_has(enum gc_program program, const char *path);
/* Whether a program of this name is node. */
bool gc_probes_is_node(const char *name);

/*
 * The generation of the last collection that began on a thread, because its end does not carry it.
 * Starts empty.
 */
struct gc_generations {
	struct {
		uint32_t tid;
		uint8_t depth;
	} last[GC_THREADS];                  /* at tid modulo GC_THREADS */
};

/*
 * Fill in the event of a hit: provider, fields and the first of its two names. An end has Depth
 * only where it is known.
 */
void gc_probe_event(const struct gc_probe *probe, const struct event_field *arguments,
		    unsigned narguments, uint32_t tid, struct gc_generations *generations,
		    struct event_field fields[GC_PROBE_FIELDS], struct event *out);
const char *gc_probe_second_name(const struct gc_probe *probe);
