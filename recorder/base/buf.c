#include "base/buf.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *buf_reserve(struct buf *b, size_t n)
{
	size_t max = b->max_bytes ? b->max_bytes : BUF_MAX_BYTES;
	size_t cap;
	char *data;

	if (b->failed)
		return NULL;
	if (n > max || b->len > max - n) {
		b->failed = ERR_LIMIT;
		return NULL;
	}
	if (b->data && b->len + n < b->cap)
		return b->data + b->len;
	cap = b->cap ? b->cap : 64;
	while (cap <= b->len + n)
		cap += cap / 2 + 64;
	if (cap > max && max < SIZE_MAX)
		cap = max + 1;               /* buf_put() relies on it */
	data = realloc(b->data, cap);
	if (!data) {
		b->failed = ERR_MEMORY;
		return NULL;
	}
	b->data = data;
	b->cap = cap;
	return b->data + b->len;
}

void buf_advance(struct buf *b, size_t n)
{
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_put_more(struct buf *b, const void *bytes, size_t n)
{
	char *to = buf_reserve(b, n);

	if (!to)
		return;
	if (n)
		memcpy(to, bytes, n);
	buf_advance(b, n);
}

void buf_put_uint(struct buf *b, uint64_t v)
{
	char digits[UINT_MAX_BYTES];

	buf_put(b, digits, (size_t)(uint_write(digits, v) - digits));
}

void buf_vprintf(struct buf *b, const char *format, va_list args)
{
	size_t room = b->failed ? 0 : b->cap - b->len;
	char *to = room ? b->data + b->len : NULL;
	va_list again;
	int n;

	va_copy(again, args);
	n = vsnprintf(to, room, format, again);
	va_end(again);
	if (n >= 0 && (size_t)n < room) {
		b->len += (size_t)n;
		return;
	}
	if (to)
		*to = '\0';                  /* part of the text may be there */
	to = n < 0 ? NULL : buf_reserve(b, (size_t)n);
	if (!to)
		return;
	vsnprintf(to, (size_t)n + 1, format, args);
	buf_advance(b, (size_t)n);
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	buf_vprintf(b, format, args);
	va_end(args);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = 0;
	if (b->data)
		b->data[0] = '\0';
}

void buf_free(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
	b->failed = 0;
}

const char *buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}

int buf_check(const struct buf *b, const char *what, struct err *err)
{
	if (!b->failed)
		return 0;
	if (b->failed == ERR_MEMORY)
		return err_memory(err, "while building %s", what);
	return err_set(err, ERR_LIMIT, "%s is larger than its limit of %zu bytes", what,
		       b->max_bytes ? b->max_bytes : BUF_MAX_BYTES);
}
