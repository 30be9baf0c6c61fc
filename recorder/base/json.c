#include "base/json.h"

#include "base/utf8.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void before(struct json *j)
{
	if (j->comma)
		buf_putc(j->out, ',');
	j->comma = true;
}

/* ASCII that stands for itself in a string. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Write one character that needs escaping; returns how many bytes of text it took. */
static size_t put_char(struct buf *out, const char *text, const char *end)
{
	size_t len = utf8_char(text, end);
	unsigned char c = (unsigned char)*text;

	if (!len) {
		buf_puts(out, "\xef\xbf\xbd");
		return 1;
	}
	if (c == '"' || c == '\\') {
		buf_putc(out, '\\');
		buf_putc(out, (char)c);
	} else if (c == '\n') {
		buf_puts(out, "\\n");
	} else if (c == '\t') {
		buf_puts(out, "\\t");
	} else if (c < 0x20 || c == 0x7f) {
		buf_printf(out, "\\u%04x", (unsigned)c);
	} else {
		buf_put(out, text, len);
	}
	return len;
}

static void put_quoted(struct buf *out, const char *text)
{
	const char *end = text + strlen(text), *plain = text;

	buf_putc(out, '"');
	while (text < end) {
		if (is_plain((unsigned char)*text)) {
			text++;
			continue;
		}
		buf_put(out, plain, (size_t)(text - plain));
		text += put_char(out, text, end);
		plain = text;
	}
	buf_put(out, plain, (size_t)(end - plain));
	buf_putc(out, '"');
}

void json_open(struct json *j, char bracket)
{
	before(j);
	buf_putc(j->out, bracket);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	buf_putc(j->out, bracket);
	j->comma = true;
}

void json_key(struct json *j, const char *key)
{
	before(j);
	put_quoted(j->out, key);
	buf_putc(j->out, ':');
	j->comma = false;
}

void json_str(struct json *j, const char *text)
{
	if (!text) {
		json_null(j);
		return;
	}
	before(j);
	put_quoted(j->out, text);
}

void json_int(struct json *j, int64_t v)
{
	before(j);
	if (v < 0)
		buf_putc(j->out, '-');
	buf_put_uint(j->out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void json_uint(struct json *j, uint64_t v)
{
	before(j);
	buf_put_uint(j->out, v);
}

void num_text(double v, char *out, size_t n)
{
	int digits;
	char *comma;
	bool same;

	if (fabs(v) < 1e15 && v == (double)(int64_t)v) {
		snprintf(out, n, "%" PRId64, (int64_t)v);     /* 80, where %.1g makes 8e+01 of it */
		return;
	}
	for (digits = 1; digits <= 17; digits++) {
		snprintf(out, n, "%.*g", digits, v);
		same = strtod(out, NULL) == v;        /* by the same locale that wrote it */
		comma = strchr(out, ',');
		if (comma)
			*comma = '.';
		if (same)
			return;
	}
}

void json_num(struct json *j, double v)
{
	char text[40];

	if (!(fabs(v) <= DBL_MAX)) {
		json_null(j);
		return;
	}
	before(j);
	num_text(v, text, sizeof(text));
	buf_puts(j->out, text);
}

void json_bool(struct json *j, bool v)
{
	before(j);
	buf_puts(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
	before(j);
	buf_puts(j->out, "null");
}

void json_key_str(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_str(j, text);
}

void json_key_int(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_int(j, v);
}

void json_key_uint(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_uint(j, v);
}

void json_key_num(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_num(j, v);
}

void json_key_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

/* ---- the reader: checks the whole line before it uses any of it ------------------------------ */

#define KEY_MAX_BYTES 64

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')
		at++;
	return at;
}

/* The four digits of a \u escape, or -1. */
static int hex4(const char *at)
{
	int v = 0;
	int i;

	for (i = 0; i < 4; i++) {
		char c = (char)(at[i] | 32);

		if (at[i] >= '0' && at[i] <= '9')
			v = v * 16 + (at[i] - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (c - 'a' + 10);
		else
			return -1;
	}
	return v;
}

/* The place after the quoted string at `at`, or NULL when there is none. */
static const char *skip_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	while (*at != '"') {
		if ((unsigned char)*at < 0x20)
			return NULL;
		if (*at++ != '\\')
			continue;
		if (*at == 'u' && hex4(at + 1) >= 0)
			at += 5;
		else if (*at && strchr("\"\\/bfnrt", *at))
			at++;
		else
			return NULL;
	}
	return at + 1;
}

/* The place after a number, true, false or null, or NULL. Such values are skipped, not read. */
static const char *skip_bare(const char *at)
{
	size_t n = strspn(at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");

	return n ? at + n : NULL;
}

/* Decode one character of a checked string to its bytes; *at moves past it. */
static size_t next_char(const char **at, char to[4])
{
	static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
	const char *s = *at;
	const char *name;
	size_t n;
	unsigned v, low;

	if (*s != '\\') {
		n = utf8_char(s, s + strnlen(s, 4));
		n = n ? n : 1;
		memcpy(to, s, n);
		*at = s + n;
		return n;
	}
	if (s[1] != 'u') {
		name = strchr(names, s[1]);
		to[0] = name ? values[name - names] : s[1];
		*at = s + 2;
		return 1;
	}
	v = (unsigned)hex4(s + 2);
	*at = s + 6;
	if (v >= 0xd800 && v <= 0xdbff && s[6] == '\\' && s[7] == 'u') {
		low = (unsigned)hex4(s + 8);
		if (low >= 0xdc00 && low <= 0xdfff) {
			v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
			*at = s + 12;
		}
	}
	/* A lone half of a surrogate pair is no character; NUL would end our string. */
	return utf8_encode(v == 0 || (v >= 0xd800 && v <= 0xdfff) ? 0xfffd : v, to);
}

/* Unescape a checked string into n bytes; false when it was cut, always between characters. */
static bool read_string(const char *at, char *out, size_t n)
{
	size_t used = 0;
	bool whole = true;

	for (at++; *at != '"' && whole;) {
		char bytes[4];
		size_t len = next_char(&at, bytes);

		whole = used + len < n;
		if (whole) {
			memcpy(out + used, bytes, len);
			used += len;
		}
	}
	if (n)
		out[used] = '\0';
	return whole;
}

static bool is_key(const char *at, const char *key)
{
	char name[KEY_MAX_BYTES];

	return read_string(at, name, sizeof(name)) && strcmp(name, key) == 0;
}

/*
 * Pass one "key": value; returns the place after it, or NULL. Sets *value for the wanted key once.
 */
static const char *read_member(const char *at, const char *key, const char **value)
{
	const char *name = at;

	at = skip_string(at);
	if (!at)
		return NULL;
	at = skip_blanks(at);
	if (*at++ != ':')
		return NULL;
	at = skip_blanks(at);
	if (*at != '"')
		return skip_bare(at);
	if (!*value && is_key(name, key))
		*value = at;
	return skip_string(at);
}

int json_get_str(const char *line, const char *key, char *out, size_t n)
{
	const char *at = skip_blanks(line);
	const char *value = NULL;

	if (*at++ != '{')
		return ERR_FORMAT;
	at = skip_blanks(at);
	while (*at != '}') {
		at = read_member(at, key, &value);
		if (!at)
			return ERR_FORMAT;
		at = skip_blanks(at);
		if (*at == '}')
			break;
		if (*at++ != ',')
			return ERR_FORMAT;
		at = skip_blanks(at);
		if (*at == '}')
			return ERR_FORMAT;
	}
	if (*skip_blanks(at + 1))
		return ERR_FORMAT;
	if (!value)
		return ERR_NOT_FOUND;
	read_string(value, out, n);
	return 0;
}
