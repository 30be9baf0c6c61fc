#include "source/etl/lz77.h"

#include "base/bytes.h"

#include <string.h>

enum {
	STEP = 32,                           /* bytes that are copied at once */
	ITEMS_MAX_BYTES = 32 * 10,           /* of a word of flags */
};

struct reader {
	const uint8_t *at, *end;
	const uint8_t *nibble;               /* a byte with an unused high half */
};

/* The length behind a token whose length bits are 7; the caller adds 3. */
static inline enum lz77_end long_length(struct reader *r, uint32_t *length)
{
	uint32_t n;

	if (r->nibble) {
		n = *r->nibble >> 4;
		r->nibble = NULL;
	} else {
		if (r->at == r->end)
			return LZ77_SHORT;
		r->nibble = r->at++;
		n = *r->nibble & 15;
	}
	*length = 7 + n;
	if (n < 15)
		return LZ77_WHOLE;
	if (r->at == r->end)
		return LZ77_SHORT;
	n = *r->at++;
	*length = 22 + n;
	if (n < 255)
		return LZ77_WHOLE;
	if (r->end - r->at < 2)
		return LZ77_SHORT;
	*length = le16(r->at);
	r->at += 2;
	if (*length == 0) {
		if (r->end - r->at < 4)
			return LZ77_SHORT;
		*length = le32(r->at);
		r->at += 4;
	}
	return *length < 22 ? LZ77_BAD : LZ77_WHOLE;
}

/* Copy n bytes from `distance` before `to`; source and target may overlap. */
static void copy_back(uint8_t *to, size_t distance, size_t n)
{
	const uint8_t *from = to - distance;

	if (distance == 1) {
		memset(to, *from, n);
	} else if (distance >= n) {
		memcpy(to, from, n);
	} else {
		while (n--)
			*to++ = *from++;
	}
}

/* Carry out a token: repeat earlier bytes of `out`. */
static enum lz77_end put_again(struct reader *r, const uint8_t *out, uint8_t **to,
			       const uint8_t *limit)
{
	uint32_t token, length;
	enum lz77_end end;

	if (r->end - r->at < 2)
		return LZ77_SHORT;
	token = le16(r->at);
	r->at += 2;
	length = token & 7;
	if (length == 7 && (end = long_length(r, &length)) != LZ77_WHOLE)
		return end;
	token = (token >> 3) + 1;
	if (token > (size_t)(*to - out))
		return LZ77_BAD;
	if ((uint64_t)length + 3 > (size_t)(limit - *to)) {
		copy_back(*to, token, (size_t)(limit - *to));
		*to += limit - *to;
		return LZ77_LONG;
	}
	copy_back(*to, token, (size_t)length + 3);
	*to += length + 3;
	return LZ77_WHOLE;
}

/* Of at most STEP bytes where more may be read and written; they may begin half a step behind. */
static inline void copy_step(uint8_t *to, const uint8_t *from)
{
	memcpy(to, from, STEP / 2);
	memcpy(to + STEP / 2, from + STEP / 2, STEP / 2);
}

/*
 * Carry out the items of `left` flags while the output's end is far; their bytes are all there, and
 * STEP more. Whole steps write too much, and later output replaces it. No CPU can predict which
 * item comes next, so all literals before a token are one copy. Returns how many flags are left:
 * put_again() judges the item of the next one.
 */
static unsigned put_items(struct reader *r, uint32_t *flags, unsigned left, const uint8_t *out,
			  uint8_t **to_at, const uint8_t *limit)
{
	struct reader at = *r, item;
	uint8_t *to = *to_at, *end;
	uint32_t distance, length, bits = *flags;
	unsigned literals;

	while (left && limit - to > 2 * STEP) {
		literals = bits ? (unsigned)__builtin_clz(bits) : left;
		copy_step(to, at.at);
		to += literals;
		at.at += literals;
		left -= literals;
		if (!left)
			break;
		bits <<= literals;
		item = at;
		length = le16(at.at);
		at.at += 2;
		distance = (length >> 3) + 1;
		length &= 7;
		if ((length == 7 && long_length(&at, &length) != LZ77_WHOLE) ||
		    distance < STEP / 2 || distance > (size_t)(to - out) ||
		    (size_t)length + 3 > (size_t)(limit - to) - STEP) {
			at = item;
			break;
		}
		end = to + length + 3;
		do {
			copy_step(to, to - distance);
			to += STEP;
		} while (to < end);
		to = end;
		bits <<= 1;
		left--;
	}
	*r = at;
	*to_at = to;
	*flags = bits;
	return left;
}

enum lz77_end lz77_expand(const uint8_t *in, size_t nin, uint8_t *out, size_t nout, size_t *got)
{
	struct reader r = {.at = in, .end = in + nin};
	const uint8_t *limit = out + nout;
	uint8_t *to = out;
	uint32_t flags = 0;
	unsigned nflags = 0;
	enum lz77_end end = LZ77_WHOLE;

	while (to < limit && end == LZ77_WHOLE) {
		if (nflags == 0 && r.end - r.at < 4) {
			end = LZ77_SHORT;
			break;
		}
		if (nflags == 0) {
			flags = le32(r.at);
			r.at += 4;
			nflags = 32;
		}
		if (r.end - r.at >= ITEMS_MAX_BYTES + STEP) {
			nflags = put_items(&r, &flags, nflags, out, &to, limit);
			if (!nflags || to == limit)
				continue;
		}
		nflags--;
		if (flags >> 31)
			end = put_again(&r, out, &to, limit);
		else if (r.at < r.end)
			*to++ = *r.at++;
		else
			end = LZ77_SHORT;
		flags <<= 1;
	}
	if (end == LZ77_WHOLE && (size_t)(r.end - r.at) > LZ77_SPARE_BYTES)
		end = LZ77_LONG;
	*got = (size_t)(to - out);
	return end;
}
