/*
 * Arrays: how many items a fixed one has, and growing ones.
 *
 * A growing array is three variables of its owner: a pointer (NULL at first, freed with free()), a
 * uint32_t capacity (0 at first) and a count. Before it puts item number n, the owner asks for
 * room:
 *
 *	if (ARRAY_ROOM(l->names, l->capacity, l->nnames + 1))
 *		return err_memory(err, "for the names");
 *	l->names[l->nnames++] = name;
 *
 * Items move when an array grows; the new ones are not zeroed. A ceiling on the count is the
 * owner's, checked before.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Room for at least `need` items; returns 0, or ERR_MEMORY with the array as it was. */
#define ARRAY_ROOM(items, capacity, need) \
	((size_t)(need) <= (capacity) ? 0 : \
	 array_grow(&(items), &(capacity), (need), sizeof(*(items))))

/*
 * The same for an array that keeps no capacity: room for one more item behind the first n. It must
 * have grown by this macro only, an item at a time.
 */
#define ARRAY_NEXT(items, n) \
	((n) & ((n) - 1) ? 0 : array_grow_next(&(items), (n), sizeof(*(items))))

/* For the macros. items_at points at the array's pointer, of whatever type. */
int array_grow(void *items_at, uint32_t *capacity, size_t need, size_t item_bytes);
int array_grow_next(void *items_at, uint32_t n, size_t item_bytes);

#endif
