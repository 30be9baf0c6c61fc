#include "source/etw/texts.h"

#include "base/array.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)256 << 10)
#define CHUNKS_MAX (ETW_TEXTS_BYTES_MAX / CHUNK_BYTES)
#define TEXTS_MAX (1u << 24)

int etw_texts_init(struct etw_texts *t)
{
	memset(t, 0, sizeof(*t));
	return slots_init(&t->texts, sizeof(const char *), TEXTS_MAX);
}

void etw_texts_free(struct etw_texts *t)
{
	uint32_t i;

	for (i = 0; i < t->nchunks; i++)
		free(t->chunks[i]);
	free(t->chunks);
	table_free(&t->by_text);
	slots_free(&t->texts);
	memset(t, 0, sizeof(*t));
}

size_t etw_texts_bytes(const struct etw_texts *t)
{
	return t->nchunks * CHUNK_BYTES + table_bytes(&t->by_text) + slots_bytes(&t->texts);
}

struct text_key {
	const char *text;
	size_t n;
};

static bool same_text(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct etw_texts *t = ctx;
	const struct text_key *key = key_arg;
	const char *kept = *(const char **)slots_get(&t->texts, value);

	return strncmp(kept, key->text, key->n) == 0 && kept[key->n] == '\0';
}

static char *room(struct etw_texts *t, size_t n)
{
	if (t->nchunks && t->used + n <= CHUNK_BYTES)
		return t->chunks[t->nchunks - 1] + t->used;
	if (t->nchunks == CHUNKS_MAX || ARRAY_ROOM(t->chunks, t->max_chunks, t->nchunks + 1))
		return NULL;
	t->chunks[t->nchunks] = malloc(CHUNK_BYTES);
	if (!t->chunks[t->nchunks])
		return NULL;
	t->used = 0;
	return t->chunks[t->nchunks++];
}

const char *etw_texts_keep(struct etw_texts *t, const char *text, size_t n)
{
	struct text_key key = {text, n > ETW_TEXT_MAX ? ETW_TEXT_MAX : n};
	uint64_t hash = hash_bytes(text, key.n);
	uint32_t number = table_find(&t->by_text, hash, same_text, t, &key);
	char *kept;

	if (number != TABLE_NONE)
		return *(const char **)slots_get(&t->texts, number);
	kept = room(t, key.n + 1);
	number = kept ? table_add_slot(&t->by_text, hash, &t->texts, SLOTS_NONE) : SLOTS_NONE;
	if (number == SLOTS_NONE) {
		t->refused++;
		return NULL;
	}
	memcpy(kept, text, key.n);
	kept[key.n] = '\0';
	*(const char **)slots_get(&t->texts, number) = kept;
	t->used += key.n + 1;
	return kept;
}

/* ---- UTF-16 ---------------------------------------------------------------------------------- */

size_t etw_utf16(const uint8_t *units, size_t nunits, char *out, size_t max)
{
	size_t i = 0, n = 0, k;
	char utf8[4];

	while (i < nunits) {
		uint32_t c = utf16_next(units, nunits, &i);

		if (!c)
			break;
		k = utf8_encode(c, utf8);
		if (n + k >= max)
			break;
		memcpy(out + n, utf8, k);
		n += k;
	}
	out[n] = '\0';
	return n;
}
