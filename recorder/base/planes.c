#include "base/planes.h"

#include <string.h>

void planes_split(const uint8_t *varints, size_t n, uint8_t *out, size_t ends[VARINT_MAX_BYTES])
{
	size_t at[VARINT_MAX_BYTES] = {0}, sum = 0, i;
	unsigned k;

	for (i = k = 0; i < n; i++) {
		at[k]++;
		k = varints[i] & 0x80 && k < VARINT_MAX_BYTES - 1 ? k + 1 : 0;
	}
	for (k = 0; k < VARINT_MAX_BYTES; k++) {
		ends[k] = sum + at[k];
		at[k] = sum;
		sum = ends[k];
	}
	for (i = k = 0; i < n; i++) {
		out[at[k]++] = varints[i];
		k = varints[i] & 0x80 && k < VARINT_MAX_BYTES - 1 ? k + 1 : 0;
	}
}

size_t planes_put(const uint64_t *values, size_t n, unsigned k, uint8_t *out)
{
	unsigned shift = 7 * k;
	size_t len = 0, i;

	for (i = 0; i < n; i++) {
		uint64_t v = values[i] >> shift;

		if (v || !k)
			out[len++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
	}
	return len;
}

/* How many bytes have the high bit: those of varints that go on. */
static size_t count_high(const uint8_t *at, size_t n)
{
	const uint64_t ones = UINT64_MAX / 0xff;
	uint64_t word;
	size_t sum = 0;

	for (; n >= sizeof(word); n -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum += ((word >> 7 & ones) * ones) >> 56;
	}
	while (n)
		sum += at[--n] >> 7;
	return sum;
}

/* Find where each plane of n varints begins. Returns where the last one ends; NULL = not planes. */
static const uint8_t *find_planes(struct planes *p, struct planes_rest *rest, const uint8_t *at,
				  const uint8_t *end, size_t n)
{
	size_t len = n;
	unsigned k;

	for (k = 0; len; k++) {
		if (k == VARINT_MAX_BYTES || len > (size_t)(end - at))
			return NULL;
		rest->at[k] = at;
		at += len;
		len = count_high(rest->at[k], len);
	}
	*p = (struct planes){.first = k > 0 ? rest->at[0] : NULL,
			     .second = k > 1 ? rest->at[1] : NULL, .left = n, .rest = rest};
	return at;
}

bool planes_open(struct planes *p, struct planes_rest *rest, const uint8_t *bytes, size_t n)
{
	/* Each varint has exactly one byte without the high bit: its last. */
	return find_planes(p, rest, bytes, bytes + n, n - count_high(bytes, n)) == bytes + n;
}

bool planes_next_long(struct planes_rest *rest, uint64_t low, uint64_t *v)
{
	uint8_t byte = 0x80;
	unsigned k;

	for (k = 2; byte & 0x80; k++) {
		byte = *rest->at[k]++;
		low |= (uint64_t)(byte & 0x7f) << 7 * k;
		if (k == VARINT_MAX_BYTES - 1 && byte > 1)
			return false;
	}
	*v = low;
	return true;
}

bool planes_get(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t n)
{
	struct planes_rest rest;
	struct planes p;
	size_t i;

	end = find_planes(&p, &rest, *at, end, n);
	if (!end)
		return false;
	*at = end;
	for (i = 0; i < n; i++)
		if (!planes_next(&p, &values[i]))
			return false;
	return true;
}
