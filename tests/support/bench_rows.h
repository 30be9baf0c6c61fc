/*
 * What a benchmark prints: a line of text per row for people, an object per row for programs.
 *
 * With json the objects go to stdout, one a line with units in the keys, and the text to stderr.
 */
#pragma once

#include "base/json.h"

struct row {
	bool as_json;
	struct buf text, object;
	struct json json;
};

void row_open(struct row *r, bool as_json, const char *name);
/* key: words with '_' between them, the unit last. */
void row_num(struct row *r, const char *key, double value);
/*
 * The same, and whether it is at most, or at least, what is wanted; in JSON as KEY_goal and
 * KEY_holds.
 */
void row_most(struct row *r, const char *key, double value, double most);
void row_least(struct row *r, const char *key, double value, double least);
/* Of n values, which it sorts. */
double row_median(double *values, size_t n);
void row_close(struct row *r);               /* prints it */
