/* The garbage collections of an incident, and the course of its counters. */
#pragma once

#include "analysis/summary.h"

#define GENERATIONS 4u                       /* 0 to 2, and those of which it is not known */

/* Numbers are NaN where a runtime does not tell them. */
struct collection {
	const struct incident_event *start;
	uint64_t duration_ns;
	double count, generation, reason, type;
	/* The program stood still: for most collectors once, for concurrent ones more often. */
	uint64_t pause_ns, longest_pause_ns;
	uint32_t npauses;                    /* 0 = not known */
	double before_bytes, after_bytes, promoted_bytes;    /* before, after: with free space */
	double fifth_before_bytes;           /* not yet in before_bytes: may be no generation's */
	double allocated_bytes;              /* since the collection before, by ticks */
	bool ended;
	bool end_lost;                       /* the thread began another before */
};

/* "Induced", as PerfView calls it; "" where the runtime has no reasons. */
const char *collection_reason(const struct collection *c);
bool collection_is_induced(const struct collection *c);

struct gc_stats {
	uint32_t collections, induced;
	uint64_t pauses, pause_ns, longest_pause_ns;
	double promoted_bytes;               /* NaN: no collection tells */
};

struct gc_process {
	uint32_t process;                    /* UINT32_MAX = not known */
	const char *runtime;                 /* the events' provider */
	struct gc_stats all, generations[GENERATIONS];
	double peak_bytes, last_bytes;       /* of the heap, after a collection */
	double allocated_bytes;              /* by all ticks; NaN: there are none */
};

/*
 * Sums for each process that collected, the longest pauses first; pauses that a runtime tells in
 * sums only (GC/Pauses) are in `all`. Free *out with free(). 0 or ERR_MEMORY.
 */
int gc_processes(const struct incident *in, const struct collection *all, uint32_t n,
		 struct gc_process **out, uint32_t *nout, struct err *err);

/*
 * The collections, longest first, from the runtime's GC/Start event to its GC/Stop. A collection
 * counts once, although .NET Framework 4 writes two starts. Free *out with free().
 * returns  0 or ERR_MEMORY
 */
int collections_find(const struct incident *in, struct collection **out, uint32_t *n,
		     struct err *err);

/* A counter's values over the window: 0 is its least, 9 its most, _ none. */
#define COUNTER_COURSE 32
void counter_course(const struct incident *in, const struct summary_counter *c,
		    char out[COUNTER_COURSE + 1]);
