#include "store/store_impl.h"

#include <stdlib.h>
#include <string.h>

static bool same_key(const void *ctx, uint32_t value, const void *key)
{
	const struct idmap *m = ctx;

	return m->pairs[value].key == *(const uint64_t *)key;
}

bool idmap_get(const struct idmap *m, uint64_t key, int64_t *value)
{
	uint32_t at = table_find(&m->table, hash_u64(key), same_key, m, &key);

	if (at == TABLE_NONE)
		return false;
	*value = m->pairs[at].value;
	return true;
}

int idmap_put(struct idmap *m, uint64_t key, int64_t value)
{
	if (m->npairs == m->cap) {
		uint32_t cap = m->cap ? m->cap * 2 : 64;
		struct idpair *pairs = realloc(m->pairs, cap * sizeof(*pairs));

		if (!pairs)
			return ERR_MEMORY;
		m->pairs = pairs;
		m->cap = cap;
	}
	m->pairs[m->npairs].key = key;
	m->pairs[m->npairs].value = value;
	if (table_add(&m->table, hash_u64(key), m->npairs))
		return ERR_MEMORY;
	m->npairs++;
	return 0;
}

int idmap_set(struct idmap *m, uint64_t key, int64_t value)
{
	uint32_t at = table_find(&m->table, hash_u64(key), same_key, m, &key);

	if (at == TABLE_NONE)
		return idmap_put(m, key, value);
	m->pairs[at].value = value;
	return 0;
}

void idmap_clear(struct idmap *m)
{
	table_clear(&m->table);
	m->npairs = 0;
}

void idmap_free(struct idmap *m)
{
	table_free(&m->table);
	free(m->pairs);
	memset(m, 0, sizeof(*m));
}
