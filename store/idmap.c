#include "store/idmap_private.h"

#include "base/err.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define EMPTY INT64_MIN

static struct idslot *slot_of(const struct idmap *m, uint64_t key)
{
	uint32_t mask = m->nslots - 1;
	uint32_t at = (uint32_t)hash_u64(key) & mask;

	while (m->slots[at].value != EMPTY && m->slots[at].key != key)
		at = (at + 1) & mask;
	return &m->slots[at];
}

bool idmap_get(const struct idmap *m, uint64_t key, int64_t *value)
{
	const struct idslot *slot = m->nslots ? slot_of(m, key) : NULL;

	if (!slot || slot->value == EMPTY)
		return false;
	*value = slot->value;
	return true;
}

static void clear_slots(struct idslot *slots, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		slots[i].value = EMPTY;
}

static int grow(struct idmap *m)
{
	struct idmap bigger = {.nslots = m->nslots ? m->nslots * 2 : 64, .used = m->used};
	uint32_t i;

	bigger.slots = malloc(bigger.nslots * sizeof(*bigger.slots));
	if (!bigger.slots)
		return ERR_MEMORY;
	clear_slots(bigger.slots, bigger.nslots);
	for (i = 0; i < m->nslots; i++) {
		if (m->slots[i].value != EMPTY)
			*slot_of(&bigger, m->slots[i].key) = m->slots[i];
	}
	free(m->slots);
	*m = bigger;
	return 0;
}

int idmap_set(struct idmap *m, uint64_t key, int64_t value)
{
	struct idslot *slot;

	if (m->used >= m->nslots / 2 && grow(m))
		return ERR_MEMORY;
	slot = slot_of(m, key);
	m->used += slot->value == EMPTY;
	slot->key = key;
	slot->value = value;
	return 0;
}

void idmap_clear(struct idmap *m)
{
	clear_slots(m->slots, m->nslots);
	m->used = 0;
}

void idmap_free(struct idmap *m)
{
	free(m->slots);
	memset(m, 0, sizeof(*m));
}
