#include "base/text_table.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 << 10)

struct text_block {
	struct text_block *next;
	size_t used;
	char bytes[];
};

struct text_key {
	const char *text;
	size_t n;
};

/* Each event names its fields, so this takes a third of what hash_bytes() does. */
static uint64_t hash_text(const char *text, size_t n)
{
	const uint64_t mix = 0x9e3779b97f4a7c15u;
	uint64_t h = n * mix, word = 0;

	for (; n >= 8; text += 8, n -= 8) {
		memcpy(&word, text, 8);
		h = (h ^ word) * mix;
		h ^= h >> 32;
	}
	word = 0;
	if (n)
		memcpy(&word, text, n);
	h = (h ^ word) * mix;
	return h ^ h >> 32;
}

static bool is_text(const void *ctx, uint32_t value, const void *key)
{
	const struct text_table *t = ctx;
	const struct text_key *k = key;

	return t->items[value].len == k->n && memcmp(text_table_get(t, value), k->text, k->n) == 0;
}

static uint32_t find(const struct text_table *t, const char *text, size_t n, uint64_t hash)
{
	return table_find(&t->numbers, hash, is_text, t, &(struct text_key){text, n});
}

uint32_t text_table_find(const struct text_table *t, const char *text, size_t n)
{
	return find(t, text, n, hash_text(text, n));
}

/* Room for n bytes in the first block, or in a new one; NULL without memory. */
static char *text_room(struct text_table *t, size_t n)
{
	struct text_block *block = t->blocks;

	if (!block || block->used + n > BLOCK_BYTES) {
		block = malloc(sizeof(*block) + (n > BLOCK_BYTES ? n : BLOCK_BYTES));
		if (!block)
			return NULL;
		block->used = 0;
		block->next = t->blocks;
		t->blocks = block;
	}
	block->used += n;
	return block->bytes + block->used - n;
}

uint32_t text_table_add(struct text_table *t, const char *text, size_t n)
{
	uint64_t hash = hash_text(text, n);
	uint32_t found = find(t, text, n, hash);
	char *copy;

	if (found != TABLE_NONE)
		return found;
	if (n >= UINT32_MAX - t->bytes || ARRAY_NEXT(t->items, t->n))
		return TABLE_NONE;
	copy = text_room(t, n + 1);
	if (!copy || table_add(&t->numbers, hash, t->n))
		return TABLE_NONE;
	if (n)
		memcpy(copy, text, n);
	copy[n] = '\0';
	t->bytes += n + 1;
	t->items[t->n] = (struct text_table_item){copy, (uint32_t)n};
	return t->n++;
}

void text_table_free(struct text_table *t)
{
	struct text_block *next;

	for (; t->blocks; t->blocks = next) {
		next = t->blocks->next;
		free(t->blocks);
	}
	free(t->items);
	table_free(&t->numbers);
	memset(t, 0, sizeof(*t));
}
