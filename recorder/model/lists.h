/*
 * The numbers from 0 to n - 1 in lists, ascending in each list, such as the samples of each thread.
 * The distances between them are kept as varints: a byte or two for a number, where an array takes
 * four. A list is read from its beginning to its end:
 *
 *	for (list = lists_get(&l, thread); list_next(&list, &sample);)
 */
#pragma once

#include "base/varint.h"

#define LISTS_NONE UINT32_MAX

struct lists {
	uint8_t *bytes;
	size_t *first;                       /* where each list begins in bytes; one more */
};

struct list {
	const uint8_t *at, *end;
	uint64_t number;
};

/* Which list a number is in; LISTS_NONE: in none. It is asked twice. */
typedef uint32_t lists_of(const void *ctx, uint32_t number);

/* l starts as {0}; free it in any case. 0 or ERR_MEMORY. */
int lists_make(struct lists *l, uint32_t nlists, uint32_t nnumbers, lists_of *of, const void *ctx);
void lists_free(struct lists *l);

static inline struct list lists_get(const struct lists *l, uint32_t list)
{
	return (struct list){l->bytes + l->first[list], l->bytes + l->first[list + 1], 0};
}

static inline bool list_next(struct list *l, uint32_t *number)
{
	uint64_t apart;

	if (!varint_get(&l->at, l->end, &apart))
		return false;
	l->number += apart;
	*number = (uint32_t)l->number;
	return true;
}

static inline bool list_is_empty(const struct list *l)
{
	return l->at == l->end;
}
