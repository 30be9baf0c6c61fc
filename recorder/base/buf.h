/*
 * A growable byte buffer with a ceiling.
 *
 * struct buf b = {0} is empty and valid, with the default ceiling. Failure is sticky: once an
 * allocation has failed or the ceiling is reached, every put does nothing and `failed` says why, so
 * a writer checks once, at the end. After a successful put, data ends in a NUL that len does not
 * count. One thread at a time.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BUF_MAX_BYTES ((size_t)1 << 30)

struct buf {
	char *data;
	size_t len, cap;
	size_t max_bytes;     /* ceiling; 0 = BUF_MAX_BYTES */
	int failed;           /* 0, ERR_MEMORY or ERR_LIMIT */
};

/* Decimal digits. */
void buf_put_uint(struct buf *b, uint64_t v);
void buf_printf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *b, const char *format, va_list args);

/* Make room for n more bytes; returns where they go, or NULL. Then call buf_advance(). */
char *buf_reserve(struct buf *b, size_t n);
void buf_advance(struct buf *b, size_t n);

/* Make it empty; keeps the memory, clears the failure. */
void buf_reset(struct buf *b);
void buf_free(struct buf *b);

/* The text, never NULL. */
const char *buf_text(const struct buf *b);

/* 0, or ERR_MEMORY / ERR_LIMIT with a sentence about `what`. */
int buf_check(const struct buf *b, const char *what, struct err *err);

/* ---- inline: exports put a thousand million bytes, a few at a time --------------------------- */

void buf_put_more(struct buf *b, const void *bytes, size_t n);   /* when buf_put() finds no room */

static inline void buf_put(struct buf *b, const void *bytes, size_t n)
{
	/* cap never exceeds the ceiling and its NUL, so whatever fits is allowed. */
	if (!n || b->failed || n >= b->cap - b->len) {
		buf_put_more(b, bytes, n);
		return;
	}
	memcpy(b->data + b->len, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
}

static inline void buf_puts(struct buf *b, const char *text)
{
	buf_put(b, text, strlen(text));
}

static inline void buf_putc(struct buf *b, char c)
{
	buf_put(b, &c, 1);
}
