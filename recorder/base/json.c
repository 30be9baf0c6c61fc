#include "base/json.h"

#include "base/utf8.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_comma(struct json *j)
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
static size_t put_char(struct json *j, const char *text, const char *end)
{
	struct buf *out = j->out;
	size_t len = utf8_char(text, end);
	uint32_t unseen = utf8_unseen(text, len);
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
	} else if (c == 0xc2 && (unsigned char)text[1] < 0xa0) {
		buf_printf(out, "\\u%04x", (unsigned char)text[1]);
	} else if (unseen && j->for_people) {
		buf_putc(out, '\\');
		utf8_put_unseen(out, unseen);
	} else if (unseen > 0xffff) {
		buf_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (unsigned)(unseen >> 10),
			   0xdc00 + (unsigned)(unseen & 0x3ff));
	} else if (unseen) {
		buf_printf(out, "\\u%04x", (unsigned)unseen);
	} else {
		buf_put(out, text, len);
	}
	return len;
}

static void put_quoted(struct json *j, const char *text)
{
	struct buf *out = j->out;
	const char *end = text + strlen(text), *plain = text;

	buf_putc(out, '"');
	while (text < end) {
		if (is_plain((unsigned char)*text)) {
			text++;
			continue;
		}
		buf_put(out, plain, (size_t)(text - plain));
		text += put_char(j, text, end);
		plain = text;
	}
	buf_put(out, plain, (size_t)(end - plain));
	buf_putc(out, '"');
}

void json_open(struct json *j, char bracket)
{
	put_comma(j);
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
	put_comma(j);
	put_quoted(j, key);
	buf_putc(j->out, ':');
	j->comma = false;
}

void json_str(struct json *j, const char *text)
{
	if (!text) {
		json_null(j);
		return;
	}
	put_comma(j);
	put_quoted(j, text);
}

void json_int(struct json *j, int64_t v)
{
	put_comma(j);
	if (v < 0)
		buf_putc(j->out, '-');
	buf_put_uint(j->out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void json_uint(struct json *j, uint64_t v)
{
	put_comma(j);
	buf_put_uint(j->out, v);
}

void num_text(double v, char *out, size_t n)
{
	int digits;
	char *comma;
	bool same;

	if (v != v) {
		snprintf(out, n, "-");
		return;
	}
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

struct buf *json_value(struct json *j)
{
	put_comma(j);
	return j->out;
}

void json_num(struct json *j, double v)
{
	char text[40];

	if (!(fabs(v) <= DBL_MAX)) {
		json_null(j);
		return;
	}
	put_comma(j);
	num_text(v, text, sizeof(text));
	buf_puts(j->out, text);
}

void json_bool(struct json *j, bool v)
{
	put_comma(j);
	buf_puts(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
	put_comma(j);
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

void json_key_open(struct json *j, const char *key, char bracket)
{
	json_key(j, key);
	json_open(j, bracket);
}
