#include "base/array.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 16u
#define MOST (UINT32_MAX - 1) /* so that no index is UINT32_MAX, which often means "none" */

int array_grow(void *items_at, uint32_t *capacity, size_t need, size_t item_bytes)
{
	uint64_t bigger = *capacity ? (uint64_t)*capacity * 2 : FIRST_CAPACITY;
	void *items;

	if (bigger > MOST)
		bigger = MOST;
	if (bigger < need)
		bigger = need;
	if (bigger > MOST || bigger > SIZE_MAX / item_bytes)
		return ERR_MEMORY;
	memcpy(&items, items_at, sizeof(items));
	items = realloc(items, (size_t)bigger * item_bytes);
	if (!items)
		return ERR_MEMORY;
	memcpy(items_at, &items, sizeof(items));
	*capacity = (uint32_t)bigger;
	return 0;
}

int array_grow_next(void *items_at, uint32_t n, size_t item_bytes)
{
	uint32_t capacity = n;

	return n && n < FIRST_CAPACITY ? 0
				       : array_grow(items_at, &capacity, (size_t)n + 1, item_bytes);
}

uint32_t *array_of_none(size_t n)
{
	uint32_t *numbers = malloc((n + 1) * sizeof(*numbers));

	if (numbers)
		memset(numbers, 0xff, (n + 1) * sizeof(*numbers));
	return numbers;
}
