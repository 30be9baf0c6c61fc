#include "base/planes.h"

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

/* Find where each plane of n varints begins; *at moves past the last one. */
static bool find_planes(const uint8_t **at, const uint8_t *end, size_t n,
		 const uint8_t *planes[VARINT_MAX_BYTES])
{
	size_t len = n, more, i;
	unsigned k;

	for (k = 0; len; k++, len = more) {
		if (k == VARINT_MAX_BYTES || len > (size_t)(end - *at))
			return false;
		planes[k] = *at;
		for (more = i = 0; i < len; i++)
			more += planes[k][i] >> 7;
		*at += len;
	}
	return true;
}

bool planes_get(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t n)
{
	const uint8_t *planes[VARINT_MAX_BYTES] = {0};
	size_t i;

	if (!find_planes(at, end, n, planes))
		return false;
	for (i = 0; i < n; i++) {
		uint8_t byte = *planes[0]++;
		uint64_t v = byte & 0x7f;
		unsigned k = 0;

		while (byte & 0x80) {
			byte = *planes[++k]++;
			v |= (uint64_t)(byte & 0x7f) << 7 * k;
			if (k == VARINT_MAX_BYTES - 1 && byte > 1)
				return false;
		}
		values[i] = v;
	}
	return true;
}

bool planes_join(const uint8_t *planes, size_t n, uint8_t *out)
{
	const uint8_t *at[VARINT_MAX_BYTES], *behind = planes;
	size_t values = 0, i;
	unsigned k;

	/* Each varint has exactly one byte without the high bit: its last. */
	for (i = 0; i < n; i++)
		values += !(planes[i] & 0x80);
	if (!find_planes(&behind, planes + n, values, at) || behind != planes + n)
		return false;
	while (values--) {
		for (k = 0; (*out++ = *at[k]++) & 0x80; k++)
			;
	}
	return true;
}
