#include "source/etw/texts.h"

#include "base/err.h"

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
	char **more;
	uint32_t max;

	if (t->nchunks && t->used + n <= CHUNK_BYTES)
		return t->chunks[t->nchunks - 1] + t->used;
	if (t->nchunks == CHUNKS_MAX)
		return NULL;
	if (t->nchunks == t->max_chunks) {
		max = t->max_chunks ? 2 * t->max_chunks : 16;
		more = realloc(t->chunks, max * sizeof(*more));
		if (!more)
			return NULL;
		t->chunks = more;
		t->max_chunks = max;
	}
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
	char *kept = NULL;

	if (number != TABLE_NONE)
		return *(const char **)slots_get(&t->texts, number);
	number = slots_add(&t->texts);
	if (number != SLOTS_NONE)
		kept = room(t, key.n + 1);
	if (!kept || table_add(&t->by_text, hash, number)) {
		if (number != SLOTS_NONE)
			slots_free_one(&t->texts, number);
		t->refused++;
		return NULL;
	}
	memcpy(kept, text, key.n);
	kept[key.n] = '\0';
	*(const char **)slots_get(&t->texts, number) = kept;
	t->used += key.n + 1;
	return kept;
}

/* ---- UTF-16 ----------------------------------------------------------------------------------- */

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xC0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3F));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xE0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3F));
		out[2] = (char)(0x80 | (c & 0x3F));
		return 3;
	}
	out[0] = (char)(0xF0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3F));
	out[2] = (char)(0x80 | (c >> 6 & 0x3F));
	out[3] = (char)(0x80 | (c & 0x3F));
	return 4;
}

static uint32_t unit(const uint8_t *units, size_t i)
{
	return (uint32_t)(units[2 * i] | units[2 * i + 1] << 8);
}

size_t etw_utf16(const uint8_t *units, size_t nunits, char *out, size_t max)
{
	size_t i, n = 0, k;
	char utf8[4];

	for (i = 0; i < nunits; i++) {
		uint32_t c = unit(units, i);

		if (!c)
			break;
		if (c < 0x80 && n + 1 < max) {
			out[n++] = (char)c;
			continue;
		}
		if (c >= 0xD800 && c < 0xE000) {
			uint32_t low = i + 1 < nunits && c < 0xDC00 ? unit(units, i + 1) : 0;

			if (low >= 0xDC00 && low < 0xE000) {
				c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
				i++;
			} else {
				c = 0xFFFD;
			}
		}
		k = put_utf8(utf8, c);
		if (n + k >= max)
			break;
		memcpy(out + n, utf8, k);
		n += k;
	}
	out[n] = '\0';
	return n;
}
