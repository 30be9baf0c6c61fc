/*
 * Microsoft "plain LZ77", with which ETW compresses the buffers of a trace file.
 *
 * A u32 of 32 flags, used from bit 31 down, then one item per flag. Flag 0: a literal byte. Flag 1:
 * a u16 token with distance (token >> 3) + 1 and length token & 7, plus 3. A length too large for
 * the token continues in a nibble (the low half of a new byte, next time its high half), then in a
 * byte, a u16 and a u32.
 *
 * Any bytes are safe: every distance and length is checked before it is used. Any thread.
 * Source: [MS-XCA] 2.4.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LZ77_DISTANCE_MAX 8192u
#define LZ77_SPARE_BYTES 4u                  /* an unused word of flags may end the input */

enum lz77_end {
	LZ77_WHOLE, /* the input ended exactly when the output was full */
	LZ77_SHORT, /* the input ended first */
	LZ77_LONG,  /* the output was full first */
	LZ77_BAD,   /* a distance before the start, or an impossible length */
};

/* *got: valid bytes of out, in every case; at most nout. */
enum lz77_end lz77_expand(const uint8_t *in, size_t nin, uint8_t *out, size_t nout, size_t *got);
