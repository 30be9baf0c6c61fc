#include "base/slots.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

static uint32_t nchunks(const struct slots *s)
{
	return s->max / SLOTS_CHUNK;
}

int slots_init(struct slots *s, size_t item_bytes, uint32_t max)
{
	memset(s, 0, sizeof(*s));
	s->item_bytes = item_bytes < sizeof(uint32_t) ? sizeof(uint32_t) : item_bytes;
	/* Rounded up, except that no chunk ends beyond 2^32. */
	s->max = max / SLOTS_CHUNK * SLOTS_CHUNK;
	if (s->max < max && s->max < UINT32_MAX / SLOTS_CHUNK * SLOTS_CHUNK)
		s->max += SLOTS_CHUNK;
	s->free_first = SLOTS_NONE;
	s->chunks = calloc(nchunks(s), sizeof(*s->chunks));
	return s->chunks ? 0 : ERR_MEMORY;
}

void slots_free(struct slots *s)
{
	uint32_t i;

	for (i = 0; s->chunks && i < (s->end + SLOTS_CHUNK - 1) / SLOTS_CHUNK; i++)
		free(atomic_load_explicit(&s->chunks[i], memory_order_relaxed));
	free(s->chunks);
	memset(s, 0, sizeof(*s));
}

uint32_t slots_add(struct slots *s)
{
	uint32_t number = s->free_first;
	char *chunk;

	if (number != SLOTS_NONE) {
		memcpy(&s->free_first, slots_get(s, number), sizeof(s->free_first));
	} else {
		if (s->end == s->max)
			return SLOTS_NONE;
		number = s->end;
		if (number % SLOTS_CHUNK == 0 &&
		    !atomic_load_explicit(&s->chunks[number / SLOTS_CHUNK], memory_order_relaxed)) {
			chunk = malloc(SLOTS_CHUNK * s->item_bytes);
			if (!chunk)
				return SLOTS_NONE;
			atomic_store_explicit(&s->chunks[number / SLOTS_CHUNK], chunk,
					      memory_order_release);
		}
		s->end++;
	}
	memset(slots_get(s, number), 0, s->item_bytes);
	s->used++;
	return number;
}

void slots_free_one(struct slots *s, uint32_t number)
{
	memset(slots_get(s, number), 0, s->item_bytes);
	memcpy(slots_get(s, number), &s->free_first, sizeof(s->free_first));
	s->free_first = number;
	s->used--;
}

size_t slots_bytes(const struct slots *s)
{
	return (size_t)((s->end + SLOTS_CHUNK - 1) / SLOTS_CHUNK) * SLOTS_CHUNK * s->item_bytes +
	       nchunks(s) * sizeof(*s->chunks);
}
