#include "base/table.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/* The finalizer of MurmurHash3 (public domain): every input bit reaches every output bit. */
uint64_t hash_u64(uint64_t v)
{
	v ^= v >> 33;
	v *= 0xff51afd7ed558ccdULL;
	v ^= v >> 33;
	v *= 0xc4ceb9fe1a85ec53ULL;
	v ^= v >> 33;
	return v;
}

uint64_t hash_pair(uint64_t a, uint64_t b)
{
	return hash_u64(hash_u64(a) + 0x9e3779b97f4a7c15ULL + b);
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint64_t h = hash_u64(n + 1);
	uint64_t word;

	while (n >= 8) {
		memcpy(&word, at, 8);
		h = hash_pair(h, word);
		at += 8;
		n -= 8;
	}
	word = 0;
	if (n)
		memcpy(&word, at, n);
	return hash_pair(h, word);
}

static void place(struct table *t, uint32_t hash, uint32_t value)
{
	uint32_t mask = t->nslots - 1;
	uint32_t at = hash & mask;

	while (t->slots[at].value != TABLE_NONE)
		at = (at + 1) & mask;
	t->slots[at].hash = hash;
	t->slots[at].value = value;
}

static int grow(struct table *t)
{
	struct table bigger = {0};
	uint32_t i;

	if (t->nslots > UINT32_MAX / 4)
		return ERR_LIMIT;
	bigger.nslots = t->nslots ? t->nslots * 2 : 64;
	bigger.slots = malloc(bigger.nslots * sizeof(*bigger.slots));
	if (!bigger.slots)
		return ERR_MEMORY;
	memset(bigger.slots, 0xff, bigger.nslots * sizeof(*bigger.slots));
	bigger.used = t->used;
	for (i = 0; i < t->nslots; i++) {
		if (t->slots[i].value != TABLE_NONE)
			place(&bigger, t->slots[i].hash, t->slots[i].value);
	}
	free(t->slots);
	*t = bigger;
	return 0;
}

int table_add(struct table *t, uint64_t hash, uint32_t value)
{
	int rc = 0;

	if ((uint64_t)(t->used + 1) * 10 > (uint64_t)t->nslots * 7)
		rc = grow(t);
	if (rc)
		return rc;
	place(t, (uint32_t)hash, value);
	t->used++;
	return 0;
}

uint32_t table_add_slot(struct table *t, uint64_t hash, struct slots *s, uint32_t older)
{
	uint32_t number = slots_add(s);

	if (number == SLOTS_NONE)
		return SLOTS_NONE;
	if (older != SLOTS_NONE)
		table_remove(t, hash, older);
	if (table_add(t, hash, number)) {
		slots_free_one(s, number);
		return SLOTS_NONE;
	}
	return number;
}

bool table_remove(struct table *t, uint64_t hash, uint32_t value)
{
	uint32_t mask = t->nslots - 1;
	uint32_t at, next, home;

	if (!t->nslots)
		return false;
	for (at = (uint32_t)hash & mask; t->slots[at].value != value; at = (at + 1) & mask) {
		if (t->slots[at].value == TABLE_NONE)
			return false;
	}
	/* Close the gap: move back every later entry that may stand here. */
	for (next = (at + 1) & mask; t->slots[next].value != TABLE_NONE; next = (next + 1) & mask) {
		home = t->slots[next].hash & mask;
		if (((next - home) & mask) >= ((next - at) & mask)) {
			t->slots[at] = t->slots[next];
			at = next;
		}
	}
	t->slots[at].value = TABLE_NONE;
	t->used--;
	return true;
}

void table_clear(struct table *t)
{
	if (t->slots)
		memset(t->slots, 0xff, t->nslots * sizeof(*t->slots));
	t->used = 0;
}

void table_free(struct table *t)
{
	free(t->slots);
	memset(t, 0, sizeof(*t));
}

size_t table_bytes(const struct table *t)
{
	return t->nslots * sizeof(*t->slots);
}
