/*
 * Sorting addresses: stable, and as fast for hostile input as for any other.
 *
 * A radix sort. The C library's qsort() is quadratic for chosen input on some hosts, and not stable
 * on others; symbol tables come from outside, and the index must not depend on the host.
 */
#pragma once

#include <stdint.h>

struct sort_item {
	uint64_t key;
	uint32_t value[2];            /* carried along */
};

/* Ascending by key; equal keys keep their order. scratch has room for n items. */
void sort_items(struct sort_item *items, struct sort_item *scratch, uint32_t n);
