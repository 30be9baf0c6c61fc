#include "base/text_table.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct text_key {
	const char *text;
	size_t n;
};

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
	return find(t, text, n, hash_bytes(text, n));
}

uint32_t text_table_add(struct text_table *t, const char *text, size_t n)
{
	uint64_t hash = hash_bytes(text, n);
	uint32_t found = find(t, text, n, hash);

	if (found != TABLE_NONE)
		return found;
	if (ARRAY_NEXT(t->items, t->n))
		return TABLE_NONE;
	t->items[t->n] = (struct text_table_item){(uint32_t)t->bytes.len, (uint32_t)n};
	buf_put(&t->bytes, text, n);
	buf_putc(&t->bytes, '\0');
	if (t->bytes.failed || table_add(&t->numbers, hash, t->n))
		return TABLE_NONE;
	return t->n++;
}

void text_table_free(struct text_table *t)
{
	free(t->items);
	buf_free(&t->bytes);
	table_free(&t->numbers);
	memset(t, 0, sizeof(*t));
}
