#include "base/utf8.h"

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

		if (out->len - start + (len ? len : 3) > max_bytes) {
			buf_puts(out, "\xe2\x80\xa6");
			return;
		}
		if (!len) {
			buf_puts(out, "\xef\xbf\xbd");
			text++;
			continue;
		}
		if (is_control(text, len))
			buf_putc(out, ' ');
		else
			buf_put(out, text, len);
		text += len;
	}
}
