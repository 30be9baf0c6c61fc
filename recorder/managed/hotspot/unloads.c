#include "managed/hotspot/unloads.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define DATA_BYTES_MAX ((size_t)256 << 10)   /* 32 KB by default */
#define ENTRY_HEAD 20u

/* Where the value of the entry stands; 0 = there is none. */
static size_t find(const uint8_t *data, size_t n, const char *wanted)
{
	size_t at = n >= 32 ? le32(data + 24) : n, bytes = strlen(wanted) + 1, length, name, value;

	while (at <= n - ENTRY_HEAD && (length = le32(data + at)) >= ENTRY_HEAD &&
	       length <= n - at) {
		name = le32(data + at + 4);
		value = le32(data + at + 16);
		if (data[at + 12] == 'J' && name < length && length - name >= bytes &&
		    memcmp(data + at + name, wanted, bytes) == 0)
			return value <= length - 8 ? at + value : 0;
		at += length;
	}
	return 0;
}

uint64_t hotspot_counter_find(const struct hotspot_layout *l, const struct managed_memory *memory,
			      const char *name)
{
	uint64_t start;
	uint8_t *data;
	size_t n, at = 0;

	if (!hotspot_read_static(l, memory, F_PERF_DATA, &start) || !start)
		return 0;
	data = malloc(DATA_BYTES_MAX);
	n = data ? memory->read(memory->ctx, start, data, DATA_BYTES_MAX) : 0;
	if (n >= 32 && memcmp(data, "\xca\xfe\xc0\xc0\x01", 5) == 0)
		at = find(data, n, name);
	free(data);
	return at ? start + at : 0;
}

bool hotspot_counter_read(const struct managed_memory *memory, uint64_t at, uint64_t *out)
{
	uint8_t bytes[8];

	if (!managed_read(memory, at, bytes, sizeof(bytes)))
		return false;
	*out = le64(bytes);
	return true;
}
