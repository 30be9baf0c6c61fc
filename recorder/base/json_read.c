#include "base/json_read.h"

#include "base/text.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* The four digits of a \u escape, or -1. */
static int hex4(const char *at)
{
	int v = 0;
	int i;

	for (i = 0; i < 4 && v >= 0; i++)
		v = hex_digit(at[i]) < 0 ? -1 : v * 16 + hex_digit(at[i]);
	return v;
}

/* Each skip returns the place after the thing at `at`, or NULL when it is malformed. */
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

static const char *skip_word(const char *at)
{
	static const char *const words[] = {"true", "false", "null"};
	const char *digits = at + (*at == '-');
	size_t i, n;

	for (i = 0; i < 3; i++) {
		n = strlen(words[i]);
		if (strncmp(at, words[i], n) == 0)
			return at + n;
	}
	if (*digits < '0' || *digits > '9')
		return NULL;
	return digits + strspn(digits, "0123456789.eE+-");
}

static const char *skip_value(const char *at, unsigned depth);

static const char *skip_items(const char *at, char close, unsigned depth)
{
	at = skip_blanks(at + 1);
	if (*at == close)
		return at + 1;
	for (;;) {
		if (close == '}') {
			at = skip_string(at);
			at = at ? skip_blanks(at) : NULL;
			if (!at || *at++ != ':')
				return NULL;
		}
		at = skip_value(skip_blanks(at), depth);
		at = at ? skip_blanks(at) : NULL;
		if (!at || (*at != ',' && *at != close))
			return NULL;
		if (*at++ == close)
			return at;
		at = skip_blanks(at);
	}
}

static const char *skip_value(const char *at, unsigned depth)
{
	if (depth == 0)
		return NULL;
	switch (*at) {
	case '{':
		return skip_items(at, '}', depth - 1);
	case '[':
		return skip_items(at, ']', depth - 1);
	case '"':
		return skip_string(at);
	default:
		return skip_word(at);
	}
}

/* For text that json_read() has checked. */
static struct json_value value_at(const char *at)
{
	struct json_value v;

	v.at = skip_blanks(at);
	v.end = skip_value(v.at, JSON_MAX_DEPTH + 1);
	return v;
}

bool json_read(const char *text, struct json_value *out)
{
	const char *at = skip_blanks(text), *end = skip_value(at, JSON_MAX_DEPTH);

	if (!end || *skip_blanks(end))
		return false;
	out->at = at;
	out->end = end;
	return true;
}

struct json_value json_next_member(struct json_value object, struct json_value before,
				   struct json_value *key)
{
	struct json_value none = {0};
	const char *at = before.at ? skip_blanks(before.end) : object.at;

	if (!object.at || *object.at != '{' || (before.at && *at != ','))
		return none;
	at = skip_blanks(at + 1);
	if (*at == '}')
		return none;
	*key = (struct json_value){at, skip_string(at)};
	return value_at(skip_blanks(key->end) + 1);
}

static bool is_named(struct json_value name, const char *key)
{
	size_t n = (size_t)(name.end - name.at) - 2;
	struct buf text = {0};
	bool same;

	if (!memchr(name.at + 1, '\\', n))
		return strncmp(name.at + 1, key, n) == 0 && !key[n];
	json_put_text(name, &text);
	same = !text.failed && strcmp(buf_text(&text), key) == 0;
	buf_free(&text);
	return same;
}

struct json_value json_member(struct json_value object, const char *key)
{
	struct json_value value = {0}, name;

	while ((value = json_next_member(object, value, &name)).at && !is_named(name, key))
		;
	return value;
}

struct json_value json_next(struct json_value array, struct json_value before)
{
	struct json_value none = {0};
	const char *at = before.at ? skip_blanks(before.end) : array.at;

	if (!array.at || *array.at != '[')
		return none;
	if (before.at && *at != ',')
		return none;
	at = skip_blanks(at + 1);
	return *at == ']' ? none : value_at(at);
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

void json_put_text(struct json_value v, struct buf *out)
{
	const char *at = v.at;

	if (!at || strncmp(at, "null", 4) == 0)
		return;
	if (*at != '"') {
		buf_put(out, at, (size_t)(v.end - at));
		return;
	}
	for (at++; at < v.end - 1;) {
		char bytes[4];
		size_t n = next_char(&at, bytes);

		buf_put(out, bytes, n);
	}
}

bool json_number(struct json_value v, double *out)
{
	if (!v.at || !(*v.at == '-' || (*v.at >= '0' && *v.at <= '9')))
		return false;
	*out = strtod(v.at, NULL);
	return true;
}

int json_get_str(const char *line, const char *key, char *out, size_t n)
{
	struct json_value all, value;
	char bytes[4];
	size_t used = 0, len;
	const char *at;

	if (!json_read(line, &all) || *all.at != '{')
		return ERR_FORMAT;
	value = json_member(all, key);
	if (!value.at || *value.at != '"')
		return ERR_NOT_FOUND;
	for (at = value.at + 1; at < value.end - 1; used += len) {
		len = next_char(&at, bytes);
		if (used + len >= n)
			break;
		memcpy(out + used, bytes, len);
	}
	out[used] = '\0';
	return 0;
}
