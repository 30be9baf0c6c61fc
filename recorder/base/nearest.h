/*
 * The names nearest to a misspelled one, for "did you mean": offer each candidate, then print.
 *
 * Distance: letters to add, drop, change, or swap with their neighbour, ignoring case and dashes.
 * A name that contains the other is always near. One thread.
 */
#pragma once

#include "base/buf.h"

#define NEAREST_MAX 3u

struct nearest {
	const char *wanted;
	unsigned n;
	const char *names[NEAREST_MAX];      /* best first; borrowed from the offers */
	unsigned distance[NEAREST_MAX];
};

/* Take a candidate if it is near enough, among the best, and not there yet. */
void nearest_offer(struct nearest *nearest, const char *name);

/* Append "'a', 'b' or 'c'", each name wrapped in before and after; nothing when none is near. */
void nearest_put(const struct nearest *nearest, const char *before, const char *after,
		 struct buf *out);

/* The distance; UINT_MAX for names longer than 79 bytes. */
unsigned nearest_distance(const char *a, const char *b);
