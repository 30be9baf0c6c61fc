/*
 * When events came: 32 letters from the first event to the last, or from --start to --end. 'A' is
 * the most that one of them holds, '9' nine tenths of it or more, '0' under a tenth, 'o' under 1 %,
 * '.' under 0.1 %, '_' none. PerfView's letters and scale; it has 100 of them.
 *
 * Twelve bytes an event are kept, because the end is not known before it comes. One thread.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define EVENT_BUCKETS 32u

struct event_histogram {
	uint64_t *times_ns;
	uint32_t *names;
	uint32_t n, times_room, names_room;
	uint64_t t0_ns, t1_ns;
	uint32_t (*buckets)[EVENT_BUCKETS];          /* by name; the last is all of them */
	uint32_t nnames;
};

/* name: a number of the caller's. ERR_MEMORY; ERR_LIMIT after some 4 thousand million. */
int event_histogram_add(struct event_histogram *h, uint64_t time_ns, uint32_t name,
			struct err *err);
/* All were added. Between these times, both included; names are below nnames. ERR_MEMORY. */
int event_histogram_sum(struct event_histogram *h, uint64_t t0_ns, uint64_t t1_ns, uint32_t nnames,
			struct err *err);
/* Of a name; nnames = of all. */
void event_histogram_text(const struct event_histogram *h, uint32_t name,
			  char out[EVENT_BUCKETS + 1]);
void event_histogram_free(struct event_histogram *h);
