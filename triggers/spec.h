/*
 * Specs of rules on events: HEAD[;Key=Value]...
 *
 * The head goes up to the first ';', a key up to its '=', a value up to the next ';'. Nothing is
 * trimmed and nothing is escaped (PerfView's rule). Pointers go into the text that was given. One
 * thread.
 */
#ifndef TRIGGERS_SPEC_H
#define TRIGGERS_SPEC_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct spec {
	const char *text;                    /* whole, for sentences */
	size_t head_len;
	const char *at;                      /* the next part, or "" */
};

struct spec_part {
	const char *key, *value;             /* not NUL-terminated */
	size_t key_len, value_len;
};

void spec_begin(struct spec *s, const char *text);

/*
 * The next part; false at the end. ERR_USAGE (in *rc) for a part without '=' or without a key, and for a
 * key that was there already, FieldFilter excepted.
 */
bool spec_next(struct spec *s, struct spec_part *part, int *rc, struct err *err);

/* Keys are compared without case. */
bool spec_key_is(const struct spec_part *part, const char *key);
/* The value, or nothing but the value, is this word; without case. */
bool spec_value_is(const struct spec_part *part, const char *word);

/* A number: sign, fraction, exponent; nothing else before or behind it. */
int spec_number(const struct spec *s, const char *what, const char *text, size_t len, double *out,
		struct err *err);
/* true or false; an empty value is true. */
int spec_bool(const struct spec *s, const struct spec_part *part, bool *out, struct err *err);

/* ERR_USAGE: "'SPEC': unknown key 'Foo'; allowed are Measure and Floor". allowed: as it is printed. */
int spec_unknown_key(const struct spec *s, const struct spec_part *part, const char *allowed,
		     struct err *err);

#endif
