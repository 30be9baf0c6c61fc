/*
 * Taking numbers from the bytes of a .NET image.
 */
#pragma once

#include "symbol/clr_metadata.h"

/* Bytes with a place; taking behind their end gives 0 and sets `bad`. */
struct r2r_bytes {
	const uint8_t *b;
	uint32_t n, at;
	bool bad;
};

uint32_t r2r_take(struct r2r_bytes *r, unsigned nbytes);   /* 1, 2 or 4; little-endian */
