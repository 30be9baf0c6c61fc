#include "triggers/spec.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool same(const char *text, size_t len, const char *word)
{
	size_t i;

	for (i = 0; i < len && word[i]; i++)
		if (tolower((unsigned char)text[i]) != tolower((unsigned char)word[i]))
			return false;
	return i == len && !word[i];
}

void spec_begin(struct spec *s, const char *text)
{
	s->text = text;
	s->head_len = strcspn(text, ";");
	s->at = text + s->head_len;
}

/* Whether the key came before already; only filters may come more than once. */
static bool is_repeated(const struct spec *s, const struct spec_part *part)
{
	const char *at = s->text + s->head_len;
	size_t len;

	if (same(part->key, part->key_len, "FieldFilter"))
		return false;
	for (; at + 1 < part->key; at += len + 1) {
		len = strcspn(at + 1, ";");
		if (len > part->key_len && at[1 + part->key_len] == '=' &&
		    strncasecmp(at + 1, part->key, part->key_len) == 0)
			return true;
	}
	return false;
}

bool spec_next(struct spec *s, struct spec_part *part, int *rc, struct err *err)
{
	const char *from = s->at, *equals;
	size_t len;

	*rc = 0;
	if (*from == ';')
		from++;
	len = strcspn(from, ";");
	if (!len && !from[len])
		return false;
	s->at = from + len;
	equals = memchr(from, '=', len);
	if (!equals || equals == from) {
		*rc = err_set(err, ERR_USAGE, "'%.200s': '%.*s' is not Key=Value", s->text,
			      len > 60 ? 60 : (int)len, from);
		return false;
	}
	part->key = from;
	part->key_len = (size_t)(equals - from);
	part->value = equals + 1;
	part->value_len = len - part->key_len - 1;
	if (is_repeated(s, part)) {
		*rc = err_set(err, ERR_USAGE, "'%.200s': %.*s is given twice", s->text,
			      part->key_len > 60 ? 60 : (int)part->key_len, part->key);
		return false;
	}
	return true;
}

bool spec_key_is(const struct spec_part *part, const char *key)
{
	return same(part->key, part->key_len, key);
}

bool spec_value_is(const struct spec_part *part, const char *word)
{
	return same(part->value, part->value_len, word);
}

int spec_number(const struct spec *s, const char *what, const char *text, size_t len, double *out,
		struct err *err)
{
	char copy[64], *end = NULL;
	size_t digits = len < sizeof(copy) ? len : 0;
	double v = 0;

	memcpy(copy, text, digits);
	copy[digits] = '\0';
	/* strtod would take blanks, "inf", "nan" and hexadecimal too. */
	if (digits && strspn(copy, "0123456789+-.eE") == digits)
		v = strtod(copy, &end);
	if (!end || *end || !(fabs(v) <= DBL_MAX))
		return err_set(err, ERR_USAGE,
			       "'%.200s': %s '%.*s' is not a number; write for example "
			       "100 or 0.5",
			       s->text, what, len > 60 ? 60 : (int)len, text);
	*out = v;
	return 0;
}

int spec_bool(const struct spec *s, const struct spec_part *part, bool *out, struct err *err)
{
	if (!part->value_len || spec_value_is(part, "true"))
		*out = true;
	else if (spec_value_is(part, "false"))
		*out = false;
	else
		return err_set(err, ERR_USAGE, "'%.200s': %.*s is true or false, not '%.*s'",
			       s->text, (int)part->key_len, part->key,
			       part->value_len > 60 ? 60 : (int)part->value_len, part->value);
	return 0;
}

int spec_unknown_key(const struct spec *s, const struct spec_part *part, const char *allowed,
		     struct err *err)
{
	return err_set(err, ERR_USAGE, "'%.200s': unknown key '%.*s'; allowed are %s", s->text,
		       part->key_len > 60 ? 60 : (int)part->key_len, part->key, allowed);
}
