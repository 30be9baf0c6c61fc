/*
 * Moments of the wall clock as people write them, in local time unless they say otherwise.
 *
 *	2026-11-21T03:10   2026-11-21 03:10:05.5   2026-11-21     a date alone is its midnight
 *	2026-11-21T03:10Z   ...+01:00                             UTC; an offset from it
 *	03:10   03:10:05                                          the last time it was that late
 *	today 03:10   yesterday 03:12                             local days
 *	now   -30m   -90s   now-24h                               before now
 *	@1795230600.5                                             seconds since 1970
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Parse a moment; the whole text must be one.
 *
 * now_ns     of the wall clock
 * before_ns  a time alone is of this moment's local day, and not before it; 0 = the last one that
 *            is not after now: for the end of a window whose beginning has a date
 * returns    0, or ERR_USAGE with a sentence that names the text and shows forms
 */
int moment_parse(const char *text, uint64_t now_ns, uint64_t before_ns, uint64_t *out,
		 struct err *err);

/* Seconds of the unit of time with this name: ms s sec m min h d w y, "" = s. 0: it is none. */
double duration_unit_s(const char *name, size_t n);
/* "7d", "1.5h", "500ms", "-90": all of text is a number and a unit. false: it is not. */
bool duration_parse(const char *text, double *out_s);

/*
 * Find the time that a line of a log gives of itself: the first that begins a word among its first
 * MOMENT_LINE_BYTES, with a date. Local time without an offset; a date without a year is the last.
 *
 *	2026-11-21T03:10:05.123+01:00   2026-11-21 03:10:05,123   2026/11/21 03:10:05
 *	21/Nov/2026:03:10:05 +0100      Nov 21 03:10:05           Apache's; RFC 3164's
 */
#define MOMENT_LINE_BYTES 200
bool moment_find(const char *line, uint64_t now_ns, uint64_t *out);

/* "2026-11-21 03:10:05" in local time, and its offset from UTC: "+01:00". */
#define MOMENT_TEXT_BYTES 32
#define MOMENT_OFFSET_BYTES 8
void moment_local_text(uint64_t wall_ns, char out[MOMENT_TEXT_BYTES]);
void moment_offset_text(uint64_t wall_ns, char out[MOMENT_OFFSET_BYTES]);

/* The same time of day so many local days before, whatever the clocks did in between. */
uint64_t moment_days_before(uint64_t wall_ns, unsigned days);
