#include "base/array.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 16u

int array_grow(void *items_at, uint32_t *capacity, size_t need, size_t item_bytes)
{
	uint64_t bigger = *capacity ? (uint64_t)*capacity * 2 : FIRST_CAPACITY;
	void *items;

	if (bigger < need)
		bigger = need;
	if (bigger > UINT32_MAX || bigger > SIZE_MAX / item_bytes)
		return ERR_MEMORY;
	memcpy(&items, items_at, sizeof(items));
	items = realloc(items, (size_t)bigger * item_bytes);
	if (!items)
		return ERR_MEMORY;
	memcpy(items_at, &items, sizeof(items));
	*capacity = (uint32_t)bigger;
	return 0;
}
