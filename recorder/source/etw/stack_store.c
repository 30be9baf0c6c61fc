#include "source/etw/stack_store.h"

#include "base/bytes.h"
#include "base/slots.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_FRAMES (1u << 16)              /* a stack lies in one chunk */
#define CHUNKS_MAX ((uint32_t)(ETW_STORE_BYTES_MAX / (CHUNK_FRAMES * sizeof(uint64_t))))
#define STACKS_MAX (1u << 24)
#define KEYS_MAX (1u << 22)
#define DEFINITIONS_MAX (1u << 24)
#define NONE SLOTS_NONE

struct stack {
	uint32_t chunk, at, n;
};

struct key {
	uint64_t key;
	uint32_t kernel;
	uint32_t first, last, next;          /* definitions; next: what uses mean now */
};

struct definition {
	uint64_t position;
	uint32_t stack, next;
};

struct etw_stack_store {
	uint64_t **chunks;
	uint32_t nchunks, used;              /* used: frames of the last chunk */
	struct slots stacks, keys, definitions;
	struct table by_frames, by_key;
	/* After a lost definition no more are added: a later one would be taken for it. */
	bool closed;
};

struct etw_stack_store *etw_stack_store_new(void)
{
	struct etw_stack_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->chunks = calloc(CHUNKS_MAX, sizeof(*s->chunks));
	if (!s->chunks || slots_init(&s->stacks, sizeof(struct stack), STACKS_MAX) ||
	    slots_init(&s->keys, sizeof(struct key), KEYS_MAX) ||
	    slots_init(&s->definitions, sizeof(struct definition), DEFINITIONS_MAX)) {
		etw_stack_store_free(s);
		return NULL;
	}
	return s;
}

void etw_stack_store_free(struct etw_stack_store *s)
{
	uint32_t i;

	if (!s)
		return;
	for (i = 0; i < s->nchunks; i++)
		free(s->chunks[i]);
	free(s->chunks);
	slots_free(&s->stacks);
	slots_free(&s->keys);
	slots_free(&s->definitions);
	table_free(&s->by_frames);
	table_free(&s->by_key);
	free(s);
}

size_t etw_stack_store_bytes(const struct etw_stack_store *s)
{
	return s->nchunks * CHUNK_FRAMES * sizeof(uint64_t) + slots_bytes(&s->stacks) +
	       slots_bytes(&s->keys) + slots_bytes(&s->definitions) + table_bytes(&s->by_frames) +
	       table_bytes(&s->by_key);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Room for a stack of n, in the last chunk or a new one; NULL at the ceiling. */
static uint64_t *find_room(struct etw_stack_store *s, uint32_t n)
{
	if (!s->nchunks || s->used + n > CHUNK_FRAMES) {
		if (s->nchunks == CHUNKS_MAX || etw_stack_store_bytes(s) > ETW_STORE_BYTES_MAX)
			return NULL;
		s->chunks[s->nchunks] = malloc(CHUNK_FRAMES * sizeof(uint64_t));
		if (!s->chunks[s->nchunks])
			return NULL;
		s->nchunks++;
		s->used = 0;
	}
	return s->chunks[s->nchunks - 1] + s->used;
}

const uint64_t *etw_stack_kept(const struct etw_stack_store *s, uint32_t stack, uint32_t *n)
{
	const struct stack *kept = slots_get(&s->stacks, stack);

	*n = kept->n;
	return s->chunks[kept->chunk] + kept->at;
}

struct frames_key {
	const uint64_t *frames;
	uint32_t n;
};

static bool same_frames(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct frames_key *key = key_arg;
	uint32_t n;
	const uint64_t *kept = etw_stack_kept(ctx, value, &n);

	return n == key->n && memcmp(kept, key->frames, n * sizeof(*kept)) == 0;
}

uint32_t etw_stack_keep(struct etw_stack_store *s, const uint8_t *addresses, uint32_t n,
			uint32_t pointer_bytes)
{
	struct frames_key key = {.n = n};
	uint64_t hash, *to;
	uint32_t number;

	if (n > ETW_STORE_FRAMES_MAX)
		n = key.n = ETW_STORE_FRAMES_MAX;
	to = find_room(s, n);
	if (!to)
		return ETW_STACK_NONE;
	le_sized_each(addresses, pointer_bytes, n, to);
	key.frames = to;
	hash = hash_bytes(to, n * sizeof(*to));
	number = table_find(&s->by_frames, hash, same_frames, s, &key);
	if (number != TABLE_NONE)
		return number;
	number = table_add_slot(&s->by_frames, hash, &s->stacks, NONE);
	if (number == NONE)
		return ETW_STACK_NONE;
	*(struct stack *)slots_get(&s->stacks, number) =
		(struct stack){s->nchunks - 1, s->used, n};
	s->used += n;
	return number;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool same_key(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct etw_stack_store *s = ctx;
	const struct key *kept = slots_get(&s->keys, value), *key = key_arg;

	return kept->key == key->key && kept->kernel == key->kernel;
}

/* The key; an unknown one is added, or NULL. */
static struct key *get_key(struct etw_stack_store *s, bool kernel, uint64_t key, bool add)
{
	struct key wanted = {key, kernel, NONE, NONE, NONE};
	uint64_t hash = hash_pair(key, kernel);
	uint32_t number = table_find(&s->by_key, hash, same_key, s, &wanted);

	if (number != TABLE_NONE)
		return slots_get(&s->keys, number);
	number = add ? table_add_slot(&s->by_key, hash, &s->keys, NONE) : NONE;
	if (number == NONE)
		return NULL;
	*(struct key *)slots_get(&s->keys, number) = wanted;
	return slots_get(&s->keys, number);
}

bool etw_stack_define(struct etw_stack_store *s, bool kernel, uint64_t key, uint64_t position,
		      uint32_t stack)
{
	struct definition *definition;
	uint32_t number;
	struct key *k;

	s->closed |= etw_stack_store_bytes(s) > ETW_STORE_BYTES_MAX;
	k = s->closed ? NULL : get_key(s, kernel, key, true);
	number = k ? slots_add(&s->definitions) : NONE;
	if (number == NONE) {
		s->closed = true;
		return false;
	}
	definition = slots_get(&s->definitions, number);
	*definition = (struct definition){position, stack, NONE};
	if (k->last == NONE)
		k->first = k->next = number;
	else
		((struct definition *)slots_get(&s->definitions, k->last))->next = number;
	k->last = number;
	return true;
}

uint32_t etw_stack_resolve(struct etw_stack_store *s, bool kernel, uint64_t key, uint64_t position)
{
	struct key *k = get_key(s, kernel, key, false);

	while (k && k->next != NONE) {
		const struct definition *definition = slots_get(&s->definitions, k->next);

		if (definition->position > position)
			return definition->stack;
		k->next = definition->next;
	}
	return ETW_STACK_NONE;
}

void etw_stack_rewind(struct etw_stack_store *s)
{
	uint32_t i;

	for (i = 0; i < s->keys.used; i++) {
		struct key *k = slots_get(&s->keys, i);

		k->next = k->first;
	}
}
