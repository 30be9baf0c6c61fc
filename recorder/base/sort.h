/*
 * Sorting addresses, stable and as fast for hostile input as for any other; and finding one.
 *
 * A radix sort. The C library's qsort() is quadratic for chosen input on some hosts, and not stable
 * on others; symbol tables come from outside, and the index must not depend on the host.
 */
#pragma once

#include <stdint.h>
#include <string.h>

struct sort_item {
	uint64_t key;
	uint32_t value[2];            /* carried along */
};

/* Ascending by key; equal keys keep their order. scratch has room for n items. */
void sort_items(struct sort_item *items, struct sort_item *scratch, uint32_t n);

/*
 * How many of n items begin at or before a key: items of item_bytes, ascending by the number of
 * key_bytes (4 or 8) at their start. Inlined, so that these sizes are constants.
 */
static inline uint32_t sorted_upto(const void *items, uint32_t n, size_t item_bytes,
				   size_t key_bytes, uint64_t key)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2, key4;
		const char *at = (const char *)items + middle * item_bytes;
		uint64_t key8;

		memcpy(&key4, at, sizeof(key4));
		if (key_bytes == sizeof(key4))
			key8 = key4;
		else
			memcpy(&key8, at, sizeof(key8));
		if (key8 <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
