#include "source/etw/texts.h"

#include "base/bytes.h"
#include "base/text.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define TEXTS_MAX (1u << 24)
#define BLOCK_BYTES ((size_t)32 << 10)

struct etw_text_block {
	struct etw_text_block *older;
	size_t used;
	char bytes[BLOCK_BYTES];
};

static char **text_at(const struct etw_texts *t, uint32_t number)
{
	return slots_get(&t->texts, number);
}

int etw_texts_init(struct etw_texts *t)
{
	memset(t, 0, sizeof(*t));
	return slots_init(&t->texts, sizeof(char *), TEXTS_MAX);
}

void etw_texts_free(struct etw_texts *t)
{
	struct etw_text_block *block, *older;

	for (block = t->blocks; block; block = older) {
		older = block->older;
		free(block);
	}
	table_free(&t->by_text);
	slots_free(&t->texts);
	memset(t, 0, sizeof(*t));
}

size_t etw_texts_bytes(const struct etw_texts *t)
{
	return t->nbytes + table_bytes(&t->by_text) + slots_bytes(&t->texts);
}

struct text_key {
	const char *text;
	size_t n;
};

static bool same_text(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct text_key *key = key_arg;
	const char *kept = *text_at(ctx, value);

	return strncmp(kept, key->text, key->n) == 0 && kept[key->n] == '\0';
}

/* A copy of n bytes, which is not kept until `used` moves; NULL without memory. */
static char *copy_text(struct etw_texts *t, const char *text, size_t n)
{
	struct etw_text_block *block = t->blocks;
	char *to;

	if (!block || BLOCK_BYTES - block->used <= n) {
		block = malloc(sizeof(*block));
		if (!block)
			return NULL;
		block->older = t->blocks;
		block->used = 0;
		t->blocks = block;
	}
	to = block->bytes + block->used;
	memcpy(to, text, n);
	to[n] = '\0';
	return to;
}

const char *etw_texts_keep(struct etw_texts *t, const char *text, size_t n)
{
	struct text_key key = {text, n > ETW_TEXT_MAX ? ETW_TEXT_MAX : n};
	uint64_t hash = hash_bytes(text, key.n);
	uint32_t number = table_find(&t->by_text, hash, same_text, t, &key);
	char *kept;

	if (number != TABLE_NONE)
		return *text_at(t, number);
	kept = t->nbytes < ETW_TEXTS_BYTES_MAX ? copy_text(t, text, key.n) : NULL;
	number = kept ? table_add_slot(&t->by_text, hash, &t->texts, SLOTS_NONE) : SLOTS_NONE;
	if (number == SLOTS_NONE) {
		t->refused++;
		return NULL;
	}
	*text_at(t, number) = kept;
	t->blocks->used += key.n + 1;
	t->nbytes += key.n + 1;
	return kept;
}

const char *etw_texts_copy(struct etw_texts *t, const char *text)
{
	return text ? etw_texts_keep(t, text, strlen(text)) : NULL;
}

/* ---- UTF-16 ---------------------------------------------------------------------------------- */

/* Put four units, if all are ASCII and none is 0. */
static bool put_four(uint64_t v, char *out)
{
	if (((v - 0x0001000100010001u) | v) & 0xff80ff80ff80ff80u)
		return false;
	etw_put_four(v, out);
	return true;
}

size_t etw_utf16(const uint8_t *units, size_t nunits, char *out, size_t max)
{
	size_t i = 0, n = 0, k;
	char utf8[4];

	while (i < nunits) {
		uint32_t c;

		/* Nearly all of them: a runtime tells some thousand names at once. */
		while (nunits - i >= 4 && n + 4 < max && put_four(le64(units + 2 * i), out + n)) {
			n += 4;
			i += 4;
		}
		if (i == nunits)
			break;
		c = le16(units + 2 * i);
		if (c && c < 0x80 && n + 1 < max) {
			out[n++] = (char)c;
			i++;
			continue;
		}
		c = utf16_next(units, nunits, &i);
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
