/*
 * Texts by number: each different text is kept once, and numbered from 0 in the order of adding.
 *
 * Starts as {0}. Texts never move, so equal texts have one address. One thread.
 */
#ifndef BASE_TEXT_TABLE_H
#define BASE_TEXT_TABLE_H

#include "base/table.h"

struct text_table_item {
	const char *text;
	uint32_t len;         /* in bytes; a NUL follows */
};

struct text_table {
	struct text_table_item *items;
	uint32_t n;
	struct text_block *blocks;     /* the texts; the first one has room */
	size_t bytes;         /* of all texts, with their NULs */
	struct table numbers;
};

/* The number of a text of n bytes, found or added; TABLE_NONE without memory, or above 4 GB. */
uint32_t text_table_add(struct text_table *t, const char *text, size_t n);

/* The same without adding: TABLE_NONE when it is not there. */
uint32_t text_table_find(const struct text_table *t, const char *text, size_t n);

void text_table_free(struct text_table *t);

static inline const char *text_table_get(const struct text_table *t, uint32_t number)
{
	return t->items[number].text;
}

#endif
