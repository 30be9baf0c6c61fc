/*
 * Arrays: counting the items of a fixed one, and growing a dynamic one.
 *
 * A growing array is three variables of its owner: a pointer (NULL at first, freed with free()), a
 * uint32_t capacity (0 at first) and a count. Before it puts item number n, the owner asks for
 * room:
 *
 *	if (ARRAY_ROOM(l->names, l->capacity, l->nnames + 1))
 *		return err_memory(err, "for the names");
 *	l->names[l->nnames++] = name;
 *
 * Items move when an array grows; the new ones are not zeroed. An owner that wants a ceiling checks
 * its count first.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What qsort() wants of two numbers: below 0, 0 or above. */
static inline int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Make room for at least `need` items; returns 0, or ERR_MEMORY with the array unchanged. */
#define ARRAY_ROOM(items, capacity, need) \
	((size_t)(need) <= (capacity) ? 0 : \
	 array_grow(&(items), &(capacity), (need), sizeof(*(items))))

/*
 * The same for an array without a capacity: room for one more item after the first n. Such an array
 * must grow by this macro only, one item at a time.
 */
#define ARRAY_NEXT(items, n) \
	((n) & ((n) - 1) ? 0 : array_grow_next(&(items), (n), sizeof(*(items))))

/* n numbers, all UINT32_MAX, which stands for "none"; free() them; NULL without memory. */
uint32_t *array_of_none(size_t n);

/* For the macros. items_at is the address of the array's pointer, whatever its type. */
int array_grow(void *items_at, uint32_t *capacity, size_t need, size_t item_bytes);
int array_grow_next(void *items_at, uint32_t n, size_t item_bytes);
