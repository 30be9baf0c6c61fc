#include "base/sort.h"

#include <stdbool.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* One stable pass over one digit; false when all items share it, so nothing was moved. */
static bool sort_by_digit(const struct sort_item *from, struct sort_item *to, uint32_t n,
			  unsigned shift)
{
	uint32_t at[DIGITS] = {0};
	uint32_t i, sum = 0;

	for (i = 0; i < n; i++)
		at[from[i].key >> shift & (DIGITS - 1)]++;
	if (at[from[0].key >> shift & (DIGITS - 1)] == n)
		return false;
	for (i = 0; i < DIGITS; i++) {
		uint32_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (i = 0; i < n; i++)
		to[at[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
	return true;
}

void sort_items(struct sort_item *items, struct sort_item *scratch, uint32_t n)
{
	struct sort_item *from = items, *to = scratch;
	unsigned shift;
	uint32_t i;

	for (i = 1; i < n && items[i - 1].key <= items[i].key; i++)
		;
	if (i >= n)
		return;
	for (shift = 0; n && shift < 64; shift += DIGIT_BITS) {
		if (sort_by_digit(from, to, n, shift)) {
			struct sort_item *other = from;

			from = to;
			to = other;
		}
	}
	if (from != items)
		memcpy(items, from, n * sizeof(*items));
}
