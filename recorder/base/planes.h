/*
 * Varints (base/varint.h) by planes: the first bytes of all, then the second bytes of those that have one,
 * and so on. As many bytes as before, of which the high ones repeat more when they stand together: of columns
 * of numbers deflate makes 8 % less so, with codes of its own for each plane.
 */
#ifndef BASE_PLANES_H
#define BASE_PLANES_H

#include "base/varint.h"

/* n bytes of whole varints -> as many at out; ends: where each plane ends there, at most 10, then n. */
void planes_split(const uint8_t *varints, size_t n, uint8_t *out, size_t ends[VARINT_MAX_BYTES]);
/* The other way; false when n bytes are no planes. Each varint has at most 10 bytes then. */
bool planes_join(const uint8_t *planes, size_t n, uint8_t *out);

/* The same of values: plane k < 10 of n of them, at out, which has room for n; its length, 0 = there are no more. */
size_t planes_put(const uint64_t *values, size_t n, unsigned k, uint8_t *out);
/* All planes of n values at *at, which moves on; false when the bytes end or a value has over 64 bits. */
bool planes_get(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t n);

#endif
