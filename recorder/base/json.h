/*
 * JSON, written piece by piece into a buf; the writer puts the commas. base/json_read.h reads it.
 * Strings are UTF-8; invalid bytes become U+FFFD, so any bytes may be given. Controls and what
 * utf8_unseen() finds are escaped: the line is safe on a terminal, and says the same.
 *
 *	json_open(&j, '{'); json_key(&j, "id"); json_int(&j, 3); json_close(&j, '}');
 */
#pragma once

#include "base/buf.h"

struct json {
	struct buf *out;
	bool comma;           /* the next value or key needs a comma before it */
	bool for_people;      /* strings will be shown as they are: unseen characters become text */
};

void json_open(struct json *j, char bracket);             /* '{' or '[' */
void json_close(struct json *j, char bracket);            /* '}' or ']' */
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *text);          /* NULL = null */
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_num(struct json *j, double v);                  /* shortest that reads back; NaN = null */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
/* For a value that the caller writes itself: returns where. */
struct buf *json_value(struct json *j);

/* Key and value in one line of source. */
void json_key_str(struct json *j, const char *key, const char *text);
void json_key_int(struct json *j, const char *key, int64_t v);
void json_key_uint(struct json *j, const char *key, uint64_t v);
void json_key_num(struct json *j, const char *key, double v);
void json_key_bool(struct json *j, const char *key, bool v);
void json_key_open(struct json *j, const char *key, char bracket);

/* A double as the shortest decimal text that reads back the same, with a '.'; NaN is "-". */
void num_text(double v, char *out, size_t n);
