#include "base/json_read.h"

#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* Each skip returns the place after the thing at `at`, or NULL when it is malformed. */
static const char *skip_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at && *at != '"'; at++) {
		if (*at == '\\' && !*++at)
			return NULL;
	}
	return *at ? at + 1 : NULL;
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

struct json_value json_member(struct json_value object, const char *key)
{
	struct json_value none = {0}, value;
	const char *at = object.at;
	struct buf name = {0};

	if (!at || *at != '{')
		return none;
	at = skip_blanks(at + 1);
	while (*at == '"') {
		struct json_value found = {at, skip_string(at)};

		buf_reset(&name);
		json_put_text(found, &name);
		value = value_at(skip_blanks(found.end) + 1);
		if (!name.failed && strcmp(buf_text(&name), key) == 0) {
			buf_free(&name);
			return value;
		}
		at = skip_blanks(value.end);
		at = skip_blanks(at + (*at == ','));
	}
	buf_free(&name);
	return none;
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

static const char *put_escape(const char *at, struct buf *out)
{
	static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
	const char *known = *at ? strchr(from, *at) : NULL;
	unsigned v = 0, i;

	if (known) {
		buf_putc(out, to[known - from]);
		return at + 1;
	}
	if (*at != 'u') {
		buf_putc(out, *at);
		return at + 1;
	}
	for (i = 0, at++; i < 4 && strchr("0123456789abcdefABCDEF", *at) && *at; i++, at++)
		v = v * 16 + (unsigned)(*at <= '9' ? *at - '0' : (*at | 32) - 'a' + 10);
	/* Our own writer escapes control characters only; the rest is UTF-8. */
	buf_putc(out, v && v < 0x80 ? (char)v : '?');
	return at;
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
		if (*at == '\\')
			at = put_escape(at + 1, out);
		else
			buf_putc(out, *at++);
	}
}

bool json_number(struct json_value v, double *out)
{
	if (!v.at || !(*v.at == '-' || (*v.at >= '0' && *v.at <= '9')))
		return false;
	*out = strtod(v.at, NULL);
	return true;
}
