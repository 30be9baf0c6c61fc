/*
 * Varints (base/varint.h) in planes: all first bytes, then the second bytes of those that have one,
 * and so on. That takes as many bytes, but high bytes repeat more when they stand together: deflate
 * makes columns of numbers 8 % smaller when each plane has codes of its own.
 */
#pragma once

#include "base/varint.h"

/*
 * Split n bytes of whole varints into as many at out. ends: where each of the 10 planes ends there.
 */
void planes_split(const uint8_t *varints, size_t n, uint8_t *out, size_t ends[VARINT_MAX_BYTES]);

/* Where the third and further bytes are. */
struct planes_rest {
	const uint8_t *at[VARINT_MAX_BYTES];
};

/*
 * Whole varints in planes, read one after the other. It borrows their bytes, and the rest; so a
 * loop over a copy of its own keeps the copy in registers.
 */
struct planes {
	const uint8_t *first, *second;
	size_t left;                         /* values */
	struct planes_rest *rest;
};

/* False when the n bytes are not planes, or a varint has more than 10 bytes. */
bool planes_open(struct planes *p, struct planes_rest *rest, const uint8_t *bytes, size_t n);

/* The next value, of which two bytes are read and others follow. */
bool planes_next_long(struct planes_rest *rest, uint64_t low, uint64_t *v);

/* The next value; false at the end, or for one over 64 bits. Most take one byte or two. */
static inline bool planes_next(struct planes *p, uint64_t *v)
{
	uint64_t low, high, whole;

	if (!p->left)
		return false;
	p->left--;
	low = *p->first++;
	if (low & 0x80) {
		high = *p->second++;
		low = (low & 0x7f) | (high & 0x7f) << 7;
		if (high & 0x80) {
			if (!planes_next_long(p->rest, low, &whole))
				return false;
			low = whole;
		}
	}
	*v = low;
	return true;
}

/*
 * The same for n values, one plane at a time: write plane k < 10 to out, which has room for n
 * bytes. returns  its length, 0 = no more planes
 */
size_t planes_put(const uint64_t *values, size_t n, unsigned k, uint8_t *out);
/* Read all planes of n values; *at moves past. False at the end or for a value over 64 bits. */
bool planes_get(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t n);
