/*
 * Reading JSON of one line: find members and items without building a tree.
 *
 * A value is the stretch of text that it takes; json_read() has checked all of it, so that what
 * looks into it afterwards need not. Borrowed from the text. No state, any thread.
 */
#ifndef JSON_READ_H
#define JSON_READ_H

#include "base/buf.h"

#define JSON_MAX_DEPTH 32

struct json_value {
	const char *at, *end;                /* without blanks around; at NULL = not there */
};

/* The whole text as one value; false when it is no JSON, or nested deeper than JSON_MAX_DEPTH. */
bool json_read(const char *text, struct json_value *out);

/* A member of an object; at NULL when there is none, or the value is no object. */
struct json_value json_member(struct json_value object, const char *key);

/*
 * The item behind `before` in an array, the first one when before.at is NULL; at NULL at the end,
 * or when the value is no array.
 */
struct json_value json_next(struct json_value array, struct json_value before);

/* Append a string's text, unescaped, or any other value as it is written; null and nothing: "". */
void json_put_text(struct json_value v, struct buf *out);

/* false when the value is no number. */
bool json_number(struct json_value v, double *out);

#endif
