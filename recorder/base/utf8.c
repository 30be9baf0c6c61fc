#include "base/utf8.h"

#include "base/array.h"
#include "base/bytes.h"

#include <string.h>

size_t utf8_char(const char *at, const char *end)
{
	const unsigned char *s = (const unsigned char *)at;
	size_t left = (size_t)(end - at);
	size_t n, i;

	if (!left)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (left < n)
		return 0;
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

size_t utf8_encode(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

uint32_t utf16_next(const uint8_t *units, size_t nunits, size_t *i)
{
	uint32_t c = le16(units + 2 * (*i)++), low;

	if (c < 0xd800 || c >= 0xe000)
		return c;
	low = c < 0xdc00 && *i < nunits ? le16(units + 2 * *i) : 0;
	if (low < 0xdc00 || low >= 0xe000)
		return 0xfffd;
	++*i;
	return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

static uint32_t decode(const unsigned char *s, size_t len)
{
	uint32_t c = len == 2 ? s[0] & 0x1fu : len == 3 ? s[0] & 0xfu : s[0] & 7u;
	size_t i;

	for (i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3fu);
	return c;
}

/* DerivedGeneralCategory.txt of Unicode 15, Cf and Zl, Zp. */
uint32_t utf8_unseen(const char *at, size_t len)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0xad, 0xad}, {0x61c, 0x61c}, {0x180e, 0x180e}, {0x200b, 0x200f},
		{0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
		{0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f},
	};
	uint32_t c = len > 1 ? decode((const unsigned char *)at, len) : 0;
	size_t i;

	for (i = 0; i < COUNT_OF(ranges) && c >= ranges[i].first; i++)
		if (c <= ranges[i].last)
			return c;
	return 0;
}

void utf8_put_unseen(struct buf *out, uint32_t c)
{
	buf_printf(out, "\\u{%04x}", (unsigned)c);
}

/* C0, DEL, and C1 (U+0080 to U+009F), which terminals obey too. */
static bool is_control(const char *at, size_t len)
{
	const unsigned char *s = (const unsigned char *)at;

	return len == 1 ? s[0] < 0x20 || s[0] == 0x7f : len == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

/* How many printable ASCII characters text begins with. */
static size_t plain_bytes(const char *text, size_t n)
{
	size_t i;

	for (i = 0; i < n && text[i] >= 0x20 && text[i] < 0x7f; i++)
		;
	return i;
}

void utf8_put_clean(struct buf *out, const char *text, size_t n, size_t max_bytes)
{
	const char *end = text + n;
	size_t start = out->len, plain = plain_bytes(text, n < max_bytes ? n : max_bytes);

	/* Most names are entirely printable ASCII. */
	buf_put(out, text, plain);
	text += plain;
	while (text < end) {
		size_t len = utf8_char(text, end);
		uint32_t unseen = utf8_unseen(text, len);
		size_t shown = unseen ? sizeof("\\u{e007f}") - 1 : len ? len : 3;

		if (out->len - start + shown > max_bytes) {
			buf_puts(out, "\xe2\x80\xa6");
			return;
		}
		if (!len) {
			buf_puts(out, "\xef\xbf\xbd");
			text++;
			continue;
		}
		if (unseen)
			utf8_put_unseen(out, unseen);
		else if (is_control(text, len))
			buf_putc(out, ' ');
		else
			buf_put(out, text, len);
		text += len;
	}
}
