/*
 * The performance data of a HotSpot JVM: a file that the JVM maps and keeps up to date.
 *
 *	 0  CA FE C0 C0, u8 byte order (1 = little), u8 major = 2, u8 minor, u8 accessible
 *	 8  i32 used, i32 overflow, i64 time of change, i32 offset of first entry, i32 entries
 *	    an entry: i32 length, i32 name offset, i32 vector length, u8 type ('J' = i64), u8 flags,
 *	    u8 units, u8 variability, i32 data offset; name and data offsets count from the entry
 *
 * The target chooses every byte, so none is trusted. On Linux hsperf_entries() works in a process
 * without rights (reader.h); its answer is checked. Portable and pure. Source:
 * hotspot/share/runtime/perfMemory.hpp, services/memoryService and gc/shared/collectorCounters.cpp
 * of OpenJDK; checked against -Xlog:gc.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* HotSpot's default is 32 KB; -XX:PerfDataMemorySize sets it */
#define HSPERF_MAX_BYTES ((size_t)1 << 20)
#define HSPERF_ENTRIES_MAX 4096u              /* OpenJDK 17 and 25 have 190 */
#define HSPERF_HEAD_WORDS 4u         /* of 64 bits; they change when an entry is added, only then */
#define HSPERF_COLLECTORS 4u               /* 0 young, 1 full, 2 pauses of a concurrent collector */
#define HSPERF_EDGES 4u
#define HSPERF_SPACES 16u                     /* of all generations; HotSpot has 4 */

enum { HSPERF_INVOCATIONS, HSPERF_TIME, HSPERF_ENTRY, HSPERF_EXIT, HSPERF_VALUES };

struct hsperf {
	uint64_t frequency_hz;               /* ticks per second; not 0 */
	bool by_safepoints;                  /* Shenandoah: its pauses are safepoints */
	bool ends_late;                      /* Serial: a collection continues after its exit */
	/* Places of numbers in the file, multiples of 8. */
	uint32_t ticks_at;                   /* the clock, written every 50 ms; 0 = absent */
	/* the wall-clock time (ms) at which that clock began; its value is 0 until the JVM is up */
	uint32_t began_at;
	uint32_t safepoints_at, safepoint_time_at; /* 0 = absent */
	struct hsperf_space {
		uint32_t at;                 /* of the bytes in use */
		bool old, eden;
	} spaces[HSPERF_SPACES];
	uint32_t nspaces;
	/* A collection leaves in its spaces what its log states (not ZGC, Shenandoah). */
	bool has_sizes;
	bool empties_eden;                   /* G1: every collection does */
	struct hsperf_collector {
		uint32_t at[HSPERF_VALUES];  /* all 0 = none, or not to be read */
		char name[48];
	} collectors[HSPERF_COLLECTORS];
};

/* An entry: a number of 64 bits or a text. Those with longer names are nobody's. */
struct hsperf_entry {
	uint32_t at;                         /* the place of its value */
	uint32_t text_bytes;                 /* 0 = a number; `at` is a multiple of 8 then */
	uint8_t units, variability;
	char name[118];
};

/* A file that was read; all is borrowed. */
struct hsperf_file {
	const void *bytes;
	size_t nbytes;
	const struct hsperf_entry *entries;
	uint32_t nentries;
};

/*
 * Find the entries, in order.
 *
 * entries  HSPERF_ENTRIES_MAX
 * returns  their number; 0 when this is not such a file, or not complete yet
 */
uint32_t hsperf_entries(const void *bytes, size_t n, struct hsperf_entry *entries);
/* Whether the entries, which may be anything, are of this file. Required below. */
bool hsperf_is_sound(const struct hsperf_file *file);

/* Find the counters. ERR_NOT_FOUND when it has no collector. */
int hsperf_parse(const struct hsperf_file *file, struct hsperf *out, struct err *err);

/* A number that the JVM keeps under a name such as "java.threads.live". */
struct hsperf_number {
	uint64_t value;
	uint64_t frequency_hz;               /* 0 = not known */
	uint32_t at;                         /* its place in the file */
	bool grows;                          /* it never falls */
	bool ticks;                          /* of the clock with frequency_hz */
};

bool hsperf_number(const struct hsperf_file *file, const char *name, struct hsperf_number *out);
/* Give put() each number; names may hold any bytes. frequency_hz is 0. */
typedef void hsperf_put(void *ctx, const char *name, const struct hsperf_number *number);
void hsperf_numbers(const struct hsperf_file *file, hsperf_put *put, void *ctx);

/*
 * The text of an entry such as "java.rt.vmArgs", borrowed from the bytes of a complete file; false
 * when there is none. No offset is followed: HotSpot puts a text right behind its name. It keeps at
 * most 1,023 bytes of it (PerfMaxStringConstLength).
 */
bool hsperf_text(const void *bytes, size_t n, const char *name, const char **text,
		 size_t *text_bytes);

/* The last known state of one collector. Starts empty. */
struct hsperf_track {
	bool begun, open;
	unsigned nskipped;                   /* readings in a row that hsperf_step() has skipped */
	uint64_t v[HSPERF_VALUES];
};

struct hsperf_edge {
	bool start;
	uint64_t ticks, count;               /* count: the pauses of this collector */
	uint32_t pauses;                     /* 1; more: `length` is the sum of so many pauses */
	uint64_t length;                     /* of a stop: ticks since the start */
	uint64_t restart;           /* 0; the caller sets it to the time when the program resumed */
};

/* Pauses that began and ended unseen: only their number and sum are known. */
struct hsperf_missed {
	uint64_t pauses, ticks;
};

/*
 * Find the starts and stops of pauses between two readings, in order. If two pauses ended in
 * between, both lengths are exact (the first may lie a little earlier than reported). If more
 * ended, only the last is reported alone, and the others by their sum. Hence one reading every 10
 * ms reports every pause over 5 ms. A reading taken while the collector was writing is skipped; the
 * next one reports what happened.
 *
 * missed += pauses that began and ended in between and are in no edge
 * returns  the number of edges; the first reading gives only the start of an open pause
 */
uint32_t hsperf_step(struct hsperf_track *track, const uint64_t now[HSPERF_VALUES],
		     struct hsperf_edge edges[HSPERF_EDGES], struct hsperf_missed *missed);

/*
 * A pause that had ended before the first reading of its collector. It may have ended after
 * recording began, which the caller can tell once it knows the JVM's clock. Its safepoint may have
 * continued for a while. Starts empty.
 */
struct hsperf_first {
	bool pending;                        /* noted; the caller reports or drops it */
	uint64_t count, entry, exit;
	uint64_t end;           /* the known time at which the program resumed; never before exit */
	uint64_t safepoints, time;
};

/*
 * now: the first reading; no effect if no pause had ended by then. Safepoints: their counters, or
 * 0.
 */
void hsperf_first_note(struct hsperf_first *first, const uint64_t now[HSPERF_VALUES],
		       uint64_t safepoints, uint64_t safepoint_time);
/*
 * A later reading: the time of the safepoint that was open at the first reading grows, and no other
 * safepoint has begun.
 */
void hsperf_first_step(struct hsperf_first *first, uint64_t safepoints, uint64_t safepoint_time);

/*
 * The same from safepoints alone: their number rises when one begins, the sum of their times when
 * it has ended. Lengths are exact, except of those that followed at once (`pauses`). They are
 * reported as having ended at `now` by the JVM's clock. Needs a track of its own, where `open`
 * means that a safepoint has begun and is not known to have ended.
 */
uint32_t hsperf_safepoint_step(struct hsperf_track *track, uint64_t count, uint64_t time,
			       uint64_t now, struct hsperf_edge edges[HSPERF_EDGES],
			       struct hsperf_missed *missed);
