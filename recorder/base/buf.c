#include "base/buf.h"

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

/* How many decimal digits a number has: log2 times log10(2) is that or one less. */
static unsigned digits_of(uint64_t v)
{
	static const uint64_t powers[] = {
		0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
		10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000,
		1000000000000000, 10000000000000000, 100000000000000000, 1000000000000000000,
		10000000000000000000U,
	};
	unsigned n = (unsigned)(64 - __builtin_clzll(v | 1)) * 1233 >> 12;

	return n + (v >= powers[n]);
}

/* Two digits at a time, in place: exports put millions of numbers. */
void buf_put_uint(struct buf *b, uint64_t v)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	unsigned n = digits_of(v);
	char *at = buf_reserve(b, n);

	if (!at)
		return;
	buf_advance(b, n);
	for (at += n; v >= 100; v /= 100)
		memcpy(at -= 2, &pairs[v % 100 * 2], 2);
	if (v >= 10)
		memcpy(at - 2, &pairs[v * 2], 2);
	else
		at[-1] = (char)('0' + v);
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
