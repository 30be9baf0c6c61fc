/*
 * Variable-length integers: 7 bits a byte, low bits first, the high bit set on all but the last
 * byte (LEB128). Signed values are zigzag-folded first. A u64 takes at most 10 bytes.
 * Reading is bounds-checked: bytes come from files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX_BYTES 10

static inline size_t varint_put(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		to[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	to[n++] = (uint8_t)v;
	return n;
}

/* Read one value; *at moves past it. False when the bytes end or the value has over 64 bits. */
static inline bool varint_get(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	uint64_t v = 0;
	unsigned shift;

	for (shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (*at >= end)
			return false;
		byte = *(*at)++;
		if (shift == 63 && byte > 1)
			return false;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = v;
			return true;
		}
	}
	return false;
}

static inline uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}
