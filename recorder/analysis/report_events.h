/* The garbage collections of an incident, and the course of its counters. */
#pragma once

#include "analysis/summary.h"

struct collection {
	const struct incident_event *start;
	uint64_t duration_ns;
	double count, generation, reason;    /* NaN: some runtimes leave it out */
	bool ended;
	bool end_lost;                       /* the thread began another before */
};

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
