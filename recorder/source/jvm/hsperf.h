/*
 * The performance data of a HotSpot JVM, a file that it maps and keeps up to date:
 *
 *	 0  CA FE C0 C0, u8 byte order (1 = little), u8 major = 2, u8 minor, u8 accessible
 *	 8  i32 used, i32 overflow, i64 time of change, i32 first entry at, i32 entries
 *	    an entry: i32 length, i32 name at, i32 vector length, u8 type ('J' = i64), u8 flags, u8
 *	    units, u8 variability, i32 data at; the last three places count from the entry's start
 *
 * Every byte is the target's to choose. Portable and pure. Source:
 * hotspot/share/runtime/perfMemory.hpp, services/memoryService and gc/shared/collectorCounters.cpp
 * of OpenJDK; checked against -Xlog:gc.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* HotSpot's own is 32 KB, and what -XX:PerfDataMemorySize says */
#define HSPERF_MAX_BYTES ((size_t)1 << 20)
#define HSPERF_COLLECTORS 4u                 /* 0 young, 1 full, 2 pauses of a concurrent one */
#define HSPERF_EDGES 4u
#define HSPERF_SPACES 16u                     /* of all generations; HotSpot has 4 */

enum { HSPERF_INVOCATIONS, HSPERF_TIME, HSPERF_ENTRY, HSPERF_EXIT, HSPERF_VALUES };

struct hsperf {
	uint64_t frequency_hz;               /* of ticks; not 0 */
	/* the JVM's clock, noted by itself every 50 ms; 0 = not there */
	uint32_t ticks_at;
	/* wall clock in ms when that clock began, 0 until the JVM is up; 0 = not there */
	uint32_t began_at;
	/* Shenandoah: pauses are safepoints; there are no collectors */
	bool by_safepoints;
	bool ends_late;                      /* Serial: a collection goes on after its exit */
	uint32_t safepoints_at, safepoint_time_at;   /* 0 = not there */
	/* those above but ticks and began_at lie in [low, high) of the file */
	uint32_t low, high;
	/* bytes in use of each space of the heap; anywhere */
	uint32_t used_at[HSPERF_SPACES], nused;
	struct hsperf_collector {
		uint32_t at[HSPERF_VALUES];  /* all 0 = there is no such collector */
		char name[48];
	} collectors[HSPERF_COLLECTORS];
};

/*
 * Where the counters are; ERR_FORMAT for what is none of these, ERR_NOT_FOUND when there is no
 * collector.
 */
int hsperf_parse(const void *bytes, size_t n, struct hsperf *out, struct err *err);

/*
 * The text of an entry, such as "java.rt.vmArgs"; false when there is none. Borrowed from the
 * bytes. HotSpot keeps 1,023 bytes of a text (PerfMaxStringConstLength).
 */
bool hsperf_text(const void *bytes, size_t n, const char *name, const char **text,
		 size_t *text_bytes);

/* What was seen of one collector; starts empty. */
struct hsperf_track {
	bool begun, open;
	/* readings in a row that were not taken: see hsperf_step() */
	unsigned waits;
	uint64_t v[HSPERF_VALUES];
};

struct hsperf_edge {
	bool start;
	uint64_t ticks, count;               /* count: of this collector's pauses */
	/* 1; more: their sum, the first one alone is shorter */
	uint32_t pauses;
	uint64_t length;                     /* of a stop: ticks since its start */
	uint64_t restart;                    /* 0; for the caller: when the program went on */
};

/* Pauses that came and went, of which only number and sum are known. */
struct hsperf_together {
	uint64_t pauses, ticks;
};

/*
 * What has happened between two readings: starts and stops of pauses in order. Of two pauses that
 * ended in between both are exact in length (the first may lie a little earlier than told); of more
 * only the last is told, and the others' sum. So a reading every 10 ms tells every pause over 5 ms.
 * A reading in the middle of a collector's writing is not taken, and what happened told by the
 * next.
 *
 * together += pauses that came and went and are in no edge
 * returns  how many edges; the first reading gives none but the start of a pause that is open
 */
uint32_t hsperf_step(struct hsperf_track *track, const uint64_t now[HSPERF_VALUES],
		     struct hsperf_edge edges[HSPERF_EDGES], struct hsperf_together *together);

/*
 * The pause that was over when its collector was looked at for the first time. It may have ended
 * since recording began, which the caller can tell once it knows the JVM's clock; and its safepoint
 * may have gone on for a while. Starts empty.
 */
struct hsperf_first {
	bool waits;                          /* noted, for the caller to tell or to drop */
	uint64_t count, entry, exit;
	/* when the program went on, of what is known: not before exit */
	uint64_t end;
	uint64_t safepoints, time;
};

/* now: of the first reading; no effect when no pause was over then. Safepoints as counted, or 0. */
void hsperf_first_note(struct hsperf_first *first, const uint64_t now[HSPERF_VALUES],
		       uint64_t safepoints, uint64_t safepoint_time);
/*
 * A later reading: the time of the safepoint that was open at the first one rises, and no other has
 * begun.
 */
void hsperf_first_step(struct hsperf_first *first, uint64_t safepoints, uint64_t safepoint_time);

/*
 * The same from safepoints alone, their number (rises when one begins) and the sum of their times
 * (when it has ended): exact in length, but for those that came at once behind it (`pauses`); told
 * as having ended at `now`, by the JVM's clock. A track of its own; `open`: one has begun and is
 * not known to have ended.
 */
uint32_t hsperf_safepoint_step(struct hsperf_track *track, uint64_t count, uint64_t time,
			       uint64_t now, struct hsperf_edge edges[HSPERF_EDGES],
			       struct hsperf_together *together);
