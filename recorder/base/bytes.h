/*
 * Numbers in bytes: little-endian reads and writes, a cursor that never leaves its bytes, GUIDs.
 *
 * Nothing needs to be aligned. The le16() family does not check bounds: its callers do. The cursor
 * does check; use it for bytes that come from outside. No state; any thread.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GUID_BYTES 16

/* ---- without bounds -------------------------------------------------------------------------- */

/* Each is written out so that compilers make one load or store of it. */

static inline uint16_t le16(const void *bytes)
{
	const uint8_t *at = bytes;

	return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t le32(const void *bytes)
{
	const uint8_t *at = bytes;

	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t le64(const void *bytes)
{
	const uint8_t *at = bytes;

	return at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
	       (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 |
	       (uint64_t)at[7] << 56;
}

/* A number of n bytes, n at most 8. */
static inline uint64_t le_sized(const void *bytes, unsigned n)
{
	const uint8_t *at = bytes;
	uint64_t v = 0;
	unsigned i;

	if (n == 8)
		return le64(at);
	if (n == 4)
		return le32(at);
	for (i = 0; i < n; i++)
		v |= (uint64_t)at[i] << 8 * i;
	return v;
}

/* The same, `count` of them. */
static inline void le_sized_each(const void *bytes, unsigned n, uint32_t count, uint64_t *out)
{
	const uint8_t *at = bytes;
	uint32_t i;

	for (i = 0; n == 8 && i < count; i++)        /* a plain copy on most hosts */
		out[i] = le64(at + 8 * (size_t)i);
	for (; i < count; i++)
		out[i] = le_sized(at + n * (size_t)i, n);
}

static inline void put_le32(void *to, uint32_t v)
{
	uint8_t *at = to;

	at[0] = (uint8_t)v;
	at[1] = (uint8_t)(v >> 8);
	at[2] = (uint8_t)(v >> 16);
	at[3] = (uint8_t)(v >> 24);
}

static inline void put_le64(void *to, uint64_t v)
{
	put_le32(to, (uint32_t)v);
	put_le32((uint8_t *)to + 4, (uint32_t)(v >> 32));
}

/* Append the low n bytes of v, n at most 8. */
static inline void buf_put_le(struct buf *b, uint64_t v, unsigned n)
{
	uint8_t bytes[8];

	put_le64(bytes, v);
	buf_put(b, bytes, n);
}

static inline bool guid_same(const void *a, const void *b)
{
	return memcmp(a, b, GUID_BYTES) == 0;
}

/* ---- with bounds ----------------------------------------------------------------------------- */

/* The number at an offset in n bytes, or `otherwise` when it does not lie within them. */
static inline uint32_t le32_or(const void *bytes, size_t n, size_t offset, uint32_t otherwise)
{
	return n >= 4 && offset <= n - 4 ? le32((const uint8_t *)bytes + offset) : otherwise;
}

/* The bytes left to read. A read that fails moves nothing. */
struct cursor {
	const uint8_t *at, *end;
};

static inline struct cursor cursor_over(const void *bytes, size_t n)
{
	return (struct cursor){bytes, n ? (const uint8_t *)bytes + n : bytes};
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* The next n bytes, borrowed; NULL when fewer are left. */
static inline const uint8_t *cursor_take(struct cursor *c, uint64_t n)
{
	const uint8_t *at = c->at;

	if (cursor_left(c) < n)
		return NULL;
	c->at += n;
	return at;
}

static inline bool cursor_skip(struct cursor *c, uint64_t n)
{
	if (cursor_left(c) < n)
		return false;
	c->at += n;
	return true;
}

/* Copy the next n bytes. */
static inline bool cursor_get(struct cursor *c, void *to, size_t n)
{
	if (cursor_left(c) < n)
		return false;
	memcpy(to, c->at, n);
	c->at += n;
	return true;
}

/* The next n bytes as a number, n at most 8. */
static inline bool cursor_number(struct cursor *c, unsigned n, uint64_t *out)
{
	if (cursor_left(c) < n)
		return false;
	*out = le_sized(c->at, n);
	c->at += n;
	return true;
}

/* The text up to the next NUL, borrowed; NULL when no NUL is left. */
static inline const char *cursor_text(struct cursor *c)
{
	const char *text = (const char *)c->at;
	const uint8_t *nul = c->at == c->end ? NULL : memchr(c->at, 0, cursor_left(c));

	if (!nul)
		return NULL;
	c->at = nul + 1;
	return text;
}
