/*
 * Specs of rules on events: HEAD[;Key=Value]...
 *
 * The head ends at the first ';', a key at its '=', a value at the next ';'. Nothing is trimmed or
 * escaped, as in PerfView. Pointers point into the text that was given. One thread.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct spec {
	const char *text;                    /* all of it, for error messages */
	size_t head_len;
	const char *at;                      /* the next part, or "" */
};

struct spec_part {
	const char *key, *value;             /* not NUL-terminated */
	size_t key_len, value_len;
};

void spec_begin(struct spec *s, const char *text);

/*
 * The next part; false at the end. *rc is ERR_USAGE for a part without '=' or without a key, and
 * for a key that is repeated (FieldFilter may be).
 */
bool spec_next(struct spec *s, struct spec_part *part, int *rc, struct err *err);

/* Whether the key, or the whole value, is this word, in any case. */
bool spec_key_is(const struct spec_part *part, const char *key);
bool spec_value_is(const struct spec_part *part, const char *word);

/* A number with sign, fraction and exponent, and nothing before or after it. */
int spec_number(const struct spec *s, const char *what, const char *text, size_t len, double *out,
		struct err *err);
/* true or false; an empty value means true. */
int spec_bool(const struct spec *s, const struct spec_part *part, bool *out, struct err *err);

/* ERR_USAGE: "'SPEC': unknown key 'Foo'; allowed are ALLOWED". */
int spec_unknown_key(const struct spec *s, const struct spec_part *part, const char *allowed,
		     struct err *err);
