#include "base/json.h"

#include "base/utf8.h"

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

static void put_quoted(struct buf *out, const char *text)
{
	const char *end = text + strlen(text);

	buf_putc(out, '"');
	while (text < end) {
		size_t len = utf8_char(text, end);
		unsigned char c = (unsigned char)*text;

		if (!len) {
			buf_puts(out, "\xef\xbf\xbd");
			len = 1;
		} else if (c == '"' || c == '\\') {
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
		text += len;
	}
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
	buf_printf(j->out, "%" PRId64, v);
}

void json_uint(struct json *j, uint64_t v)
{
	before(j);
	buf_printf(j->out, "%" PRIu64, v);
}

void num_text(double v, char *out, size_t n)
{
	int digits;
	char *comma;

	for (digits = 1; digits <= 17; digits++) {
		snprintf(out, n, "%.*g", digits, v);
		comma = strchr(out, ',');
		if (comma)
			*comma = '.';
		if (strtod(out, NULL) == v)
			return;
	}
}

void json_num(struct json *j, double v)
{
	char text[40];

	if (!isfinite(v)) {
		json_null(j);
		return;
	}
	if (fabs(v) < 1e15 && v == (double)(int64_t)v) {
		json_int(j, (int64_t)v);
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

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

static unsigned hex_value(const char *at, int ndigits)
{
	unsigned v = 0;

	while (ndigits-- > 0) {
		char c = *at++;

		v <<= 4;
		if (c >= '0' && c <= '9')
			v |= (unsigned)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v |= (unsigned)((c | 32) - 'a' + 10);
		else
			return 0xfffd;
	}
	return v;
}

/* Reads a quoted string at *at into out (cut to n-1 bytes); false when it does not end. */
static bool read_string(const char **at, char *out, size_t n)
{
	const char *s = *at;
	size_t used = 0;
	char c;

	if (*s++ != '"')
		return false;
	while (*s && *s != '"') {
		c = *s++;
		if (c == '\\') {
			c = *s++;
			if (!c)
				return false;
			if (c == 'n' || c == 't' || c == 'r') {
				c = c == 'n' ? '\n' : c == 't' ? '\t' : '\r';
			} else if (c == 'u') {
				unsigned v;

				if (strnlen(s, 4) < 4)
					return false;
				v = hex_value(s, 4);
				c = v < 0x80 ? (char)v : '?';
				s += 4;
			}
		}
		if (used + 1 < n)
			out[used++] = c;
	}
	if (*s != '"')
		return false;
	if (n)
		out[used] = '\0';
	*at = s + 1;
	return true;
}

int json_get_str(const char *line, const char *key, char *out, size_t n)
{
	const char *at = skip_blanks(line);
	char name[64], other[8];

	if (*at++ != '{')
		return ERR_FORMAT;
	for (;;) {
		at = skip_blanks(at);
		if (*at == '}')
			return ERR_NOT_FOUND;
		if (!read_string(&at, name, sizeof(name)))
			return ERR_FORMAT;
		at = skip_blanks(at);
		if (*at++ != ':')
			return ERR_FORMAT;
		at = skip_blanks(at);
		if (*at == '"') {
			bool wanted = strcmp(name, key) == 0;

			if (!read_string(&at, wanted ? out : other, wanted ? n : sizeof(other)))
				return ERR_FORMAT;
			if (wanted)
				return 0;
		} else {
			at += strcspn(at, ",}");
		}
		at = skip_blanks(at);
		if (*at == ',')
			at++;
		else if (*at != '}')
			return ERR_FORMAT;
	}
}
