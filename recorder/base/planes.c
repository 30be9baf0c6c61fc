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

bool planes_join(const uint8_t *planes, size_t n, uint8_t *out)
{
	const uint8_t *at[VARINT_MAX_BYTES], *end = planes + n, *first_end;
	size_t len = 0, more, i;
	unsigned k;

	/* Each varint has one byte without the high bit, its last. */
	for (i = 0; i < n; i++)
		len += !(planes[i] & 0x80);
	first_end = planes + len;
	for (k = 0; len; k++, len = more) {
		if (k == VARINT_MAX_BYTES || len > (size_t)(end - planes))
			return false;
		at[k] = planes;
		for (more = i = 0; i < len; i++)
			more += planes[i] >> 7;
		planes += len;
	}
	if (planes != end)
		return false;
	while (n && at[0] < first_end) {
		for (k = 0; (*out++ = *at[k]++) & 0x80; k++)
			;
	}
	return true;
}
