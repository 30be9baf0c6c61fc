/*
 * Read JSON of one line: find members and items without building a tree.
 *
 * A value is the stretch of text that it takes. json_read() checks all of it, so later calls need
 * not check again. Borrowed from the text. No state, any thread.
 */
#pragma once

#include "base/buf.h"

#define JSON_MAX_DEPTH 32

struct json_value {
	const char *at, *end;                /* blanks trimmed; at NULL = absent */
};

/* The whole text as one value; false for invalid JSON or more than JSON_MAX_DEPTH levels. */
bool json_read(const char *text, struct json_value *out);

/* A member of an object; at is NULL when there is none, or the value is no object. */
struct json_value json_member(struct json_value object, const char *key);

/*
 * The item after `before` in an array, or the first one when before.at is NULL. at is NULL at the
 * end, or when the value is no array.
 */
struct json_value json_next(struct json_value array, struct json_value before);

/* The same for an object, whose member's name goes to *key. */
struct json_value json_next_member(struct json_value object, struct json_value before,
				   struct json_value *key);

/* Append a string's text, unescaped, or another value as written; "" for null and absent values. */
void json_put_text(struct json_value v, struct buf *out);

/* Returns false when the value is no number. */
bool json_number(struct json_value v, double *out);

/*
 * Find the string value of a key in one JSON object: unescaped, at most n-1 bytes, cut between
 * characters.
 * returns  0; ERR_NOT_FOUND when there is no such string; ERR_FORMAT when the line is no JSON
 *          object
 */
int json_get_str(const char *line, const char *key, char *out, size_t n);
