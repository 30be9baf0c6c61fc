#include "model/lists.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/*
 * Measure the lists, or write them where l->bytes is set. From the second pass on, first[list + 1]
 * is where the list's next number goes; in the end it is where the list ends.
 */
static void put_all(struct lists *l, uint32_t *last, uint32_t n, lists_of *of, const void *ctx)
{
	uint8_t unused[VARINT_MAX_BYTES];
	uint32_t list, i;

	for (i = 0; i < n; i++) {
		list = of(ctx, i);
		if (list == LISTS_NONE)
			continue;
		if (l->bytes)
			l->first[list + 1] +=
				varint_put(l->bytes + l->first[list + 1], i - last[list]);
		else
			l->first[list + 2] += varint_put(unused, i - last[list]);
		last[list] = i;
	}
}

int lists_make(struct lists *l, uint32_t nlists, uint32_t nnumbers, lists_of *of, const void *ctx)
{
	uint32_t *last = calloc((size_t)nlists + 1, sizeof(*last));
	size_t i;

	l->first = calloc((size_t)nlists + 2, sizeof(*l->first));
	if (last && l->first) {
		put_all(l, last, nnumbers, of, ctx);
		for (i = 2; i < (size_t)nlists + 2; i++)
			l->first[i] += l->first[i - 1];
		l->bytes = malloc(l->first[nlists + 1] + 1);
	}
	if (l->bytes) {
		memset(last, 0, nlists * sizeof(*last));
		put_all(l, last, nnumbers, of, ctx);
	}
	free(last);
	return l->bytes ? 0 : ERR_MEMORY;
}

void lists_free(struct lists *l)
{
	free(l->bytes);
	free(l->first);
	memset(l, 0, sizeof(*l));
}
