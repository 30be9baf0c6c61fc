/*
 * A hash table of 32-bit values that compares contents.
 *
 * The table stores (hash, value) only; the caller keeps the contents and compares them. The hash
 * finds a candidate, equality decides. It serves frames, stack nodes, names, processes: anything
 * that lives in an array and is looked up by its contents. One thread at a time.
 */
#pragma once

#include "base/slots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_NONE UINT32_MAX

struct table_slot {
	uint32_t hash;
	uint32_t value;       /* TABLE_NONE = empty */
};

struct table {
	struct table_slot *slots;
	uint32_t nslots;      /* power of two, or 0 */
	uint32_t used;
};

/* Does the thing stored as `value` have the contents `key`? */
typedef bool table_same(const void *ctx, uint32_t value, const void *key);

/*
 * The value with the contents `key`, or TABLE_NONE. Inline, so that `same` is too: loading an
 * incident looks up a million times.
 */
static inline uint32_t table_find(const struct table *t, uint64_t hash, table_same *same,
				  const void *ctx, const void *key)
{
	uint32_t mask = t->nslots - 1;
	uint32_t at;

	if (!t->nslots)
		return TABLE_NONE;
	for (at = (uint32_t)hash & mask; t->slots[at].value != TABLE_NONE; at = (at + 1) & mask) {
		if (t->slots[at].hash == (uint32_t)hash && same(ctx, t->slots[at].value, key))
			return t->slots[at].value;
	}
	return TABLE_NONE;
}

/* Add a value that is not in the table; 0 or ERR_MEMORY. Grows at 70 % use. */
int table_add(struct table *t, uint64_t hash, uint32_t value);

/* Remove this very value (found by its hash); false when it is absent. */
bool table_remove(struct table *t, uint64_t hash, uint32_t value);

/*
 * Add a zeroed slot that this hash finds, in place of the slot `older` (SLOTS_NONE = none). Returns
 * its number, or SLOTS_NONE at the ceiling or without memory.
 */
uint32_t table_add_slot(struct table *t, uint64_t hash, struct slots *s, uint32_t older);

/*
 * The next value from slot *at on; TABLE_NONE at the end. *at starts as 0. To remove the value that
 * was returned, take 1 from *at: others may have moved to its slot.
 */
static inline uint32_t table_next(const struct table *t, uint32_t *at)
{
	while (*at < t->nslots) {
		uint32_t value = t->slots[(*at)++].value;

		if (value != TABLE_NONE)
			return value;
	}
	return TABLE_NONE;
}

void table_clear(struct table *t);   /* empty, keeps memory */
void table_free(struct table *t);
size_t table_bytes(const struct table *t);

/*
 * For bulk lookups: prefetch the slot of a hash some rounds ahead; later take the value that is
 * probably the one, to prefetch its contents before table_find() compares them.
 */
static inline void table_prefetch(const struct table *t, uint64_t hash)
{
	if (t->nslots)
		__builtin_prefetch(&t->slots[(uint32_t)hash & (t->nslots - 1)]);
}

static inline uint32_t table_guess(const struct table *t, uint64_t hash)
{
	const struct table_slot *slot;

	if (!t->nslots)
		return TABLE_NONE;
	slot = &t->slots[(uint32_t)hash & (t->nslots - 1)];
	return slot->hash == (uint32_t)hash ? slot->value : TABLE_NONE;
}

/* A good 64-bit hash of bytes (wyhash-like mixing), and of one or two integers. */
uint64_t hash_bytes(const void *bytes, size_t n);
uint64_t hash_u64(uint64_t v);
uint64_t hash_pair(uint64_t a, uint64_t b);
