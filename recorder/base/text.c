#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>

char *text_dup(const char *text, size_t max_bytes)
{
	size_t n = max_bytes == (size_t)-1 ? strlen(text) : strnlen(text, max_bytes);
	char *copy = malloc(n + 1);

	if (copy) {
		memcpy(copy, text, n);
		copy[n] = '\0';
	}
	return copy;
}

const char *text_last_part(const char *path, const char *separators)
{
	const char *part = path;

	for (; *path; path++)
		if (strchr(separators, *path) && path[1])
			part = path + 1;
	return part;
}

const char *text_base_name(const char *path)
{
	return text_last_part(path, *path == '/' ? "/" : "/\\");
}

static bool same_letter(char a, char b)
{
	return a == b || ((a ^ b) == 0x20 && (a | 0x20) >= 'a' && (a | 0x20) <= 'z');
}

bool text_same_fold(const char *a, const char *b)
{
	while (*a && same_letter(*a, *b)) {
		a++;
		b++;
	}
	return *a == *b;
}

bool text_ends_fold(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && text_same_fold(text + n - m, end);
}

bool text_starts_fold(const char *text, const char *start)
{
	while (*start && same_letter(*text, *start)) {
		text++;
		start++;
	}
	return !*start;
}

bool text_has_fold(const char *text, const char *part)
{
	while (*text && !text_starts_fold(text, part))
		text++;
	return text_starts_fold(text, part);
}

size_t text_join_arguments(char *bytes, size_t n)
{
	size_t i;

	while (n && !bytes[n - 1])
		n--;
	for (i = 0; i < n; i++)
		if (!bytes[i])
			bytes[i] = ' ';
	return n;
}

size_t text_base64(const void *bytes, size_t n, char *to)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	const uint8_t *from = bytes;
	size_t i, len = 0;

	for (i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)from[i] << 16;

		v |= i + 1 < n ? (uint32_t)from[i + 1] << 8 : 0;
		v |= i + 2 < n ? from[i + 2] : 0;
		to[len++] = digits[v >> 18];
		to[len++] = digits[v >> 12 & 63];
		to[len++] = i + 1 < n ? digits[v >> 6 & 63] : '=';
		to[len++] = i + 2 < n ? digits[v & 63] : '=';
	}
	return len;
}

static size_t count_digits(const char *at)
{
	return strspn(at, "0123456789");
}

size_t text_number_length(const char *text)
{
	size_t n = (*text == '-' || *text == '+'), whole, part = 0, sign;

	whole = count_digits(text + n);
	n += whole;
	if (text[n] == '.') {
		part = count_digits(text + n + 1);
		n += 1 + part;
	}
	if (!whole && !part)
		return 0;
	if (text[n] == 'e' || text[n] == 'E') {
		sign = text[n + 1] == '-' || text[n + 1] == '+';
		if (count_digits(text + n + 1 + sign))
			n += 1 + sign + count_digits(text + n + 1 + sign);
	}
	return n;
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

/* Two digits at a time. */
char *uint_write(char *to, uint64_t v)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char *end = to + digits_of(v), *at = end;

	for (; v >= 100; v /= 100)
		memcpy(at -= 2, &pairs[v % 100 * 2], 2);
	if (v >= 10)
		memcpy(at - 2, &pairs[v * 2], 2);
	else
		at[-1] = (char)('0' + v);
	return end;
}
