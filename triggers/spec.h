/*
 * Specs of rules: HEAD[;Key=Value]...
 *
 * The head ends at the first ';', a key at its '=', a value at the next ';'. Nothing is trimmed or
 * escaped, as in PerfView. Pointers point into the text that was given. One thread.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct spec {
	const char *text;
	size_t head_len;
	struct err *err;                     /* where its functions write their sentences */
	const char *key, *value;             /* of the part at hand; not NUL-terminated */
	size_t key_len, value_len;
};

void spec_begin(struct spec *s, const char *text, struct err *err);

/* Take the part at hand; ERR_NOT_FOUND when its key is none of the taker's. */
typedef int spec_take(void *rule, struct spec *s);

/*
 * Let `take` have each part after the head. ERR_USAGE for a part without '=' or without a key, for
 * a key that is repeated (FieldFilter may be), and for one that is not taken: "unknown key 'Foo';
 * allowed are ALLOWED".
 */
int spec_keys(struct spec *s, spec_take *take, void *rule, const char *allowed);

/* ERR_USAGE with "'SPEC': " and this sentence. */
int spec_wrong(const struct spec *s, const char *format, ...) PRINTF_LIKE(2, 3);
int spec_no_memory(const struct spec *s);

/* Whether the key, or the whole value, is this word, in any case. */
bool spec_key_is(const struct spec *s, const char *key);
bool spec_value_is(const struct spec *s, const char *word);

/* Which of n words the value is, in any case; -1 = none. */
int spec_choice(const struct spec *s, const char *const *words, int n);
/* true or false; an empty value means true. */
int spec_bool(const struct spec *s, bool *out);

/* A number with sign, fraction and exponent, and nothing before or after it. */
int spec_number(const struct spec *s, const char *what, const char *text, size_t len, double *out);
int spec_value_number(const struct spec *s, const char *what, double *out);

/*
 * Read the number that the first of these characters make up; returns their length, 0 = they are no
 * number. strtod() alone would take blanks, "inf", "nan" and hexadecimal too.
 */
size_t number_prefix(const char *text, size_t len, const char *characters, double *out);
#define DECIMAL_CHARACTERS "0123456789+-.eE"

/* How much of a text of this length messages quote with %.*s. */
static inline int quoted_len(size_t len)
{
	return len > 60 ? 60 : (int)len;
}
