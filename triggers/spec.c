#include "triggers/spec.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

void spec_begin(struct spec *s, const char *text, struct err *err)
{
	*s = (struct spec){.text = text, .head_len = strcspn(text, ";"), .err = err};
}

/* Whether the key came before already; only filters may come more than once. */
static bool is_repeated(const struct spec *s)
{
	const char *at = s->text + s->head_len;

	if (spec_key_is(s, "FieldFilter"))
		return false;
	for (; at + 1 < s->key; at += 1 + strcspn(at + 1, ";"))
		if (strncasecmp(at + 1, s->key, s->key_len) == 0 && at[1 + s->key_len] == '=')
			return true;
	return false;
}

int spec_keys(struct spec *s, spec_take *take, void *rule, const char *allowed)
{
	const char *at = s->text + s->head_len, *equals;
	size_t len;
	int rc = 0;

	for (; !rc && at[0] && at[1]; at += 1 + len) {
		len = strcspn(at + 1, ";");
		equals = memchr(at + 1, '=', len);
		if (!equals || equals == at + 1)
			return spec_wrong(s, "'%.*s' is not Key=Value", quoted_len(len), at + 1);
		s->key = at + 1;
		s->key_len = (size_t)(equals - s->key);
		s->value = equals + 1;
		s->value_len = len - s->key_len - 1;
		if (is_repeated(s))
			return spec_wrong(s, "%.*s is given twice", quoted_len(s->key_len), s->key);
		rc = take(rule, s);
		if (rc == ERR_NOT_FOUND)
			return spec_wrong(s, "unknown key '%.*s'; allowed are %s",
					  quoted_len(s->key_len), s->key, allowed);
	}
	return rc;
}

int spec_wrong(const struct spec *s, const char *format, ...)
{
	char sentence[sizeof(s->err->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	return err_set(s->err, ERR_USAGE, "'%.200s': %s", s->text, sentence);
}

int spec_no_memory(const struct spec *s)
{
	return err_memory(s->err, "for the rule '%.200s'", s->text);
}

bool spec_key_is(const struct spec *s, const char *key)
{
	return is_word(s->key, s->key_len, key);
}

bool spec_value_is(const struct spec *s, const char *word)
{
	return is_word(s->value, s->value_len, word);
}

int spec_choice(const struct spec *s, const char *const *words, int n)
{
	while (n-- && !spec_value_is(s, words[n]))
		;
	return n;
}

int spec_bool(const struct spec *s, bool *out)
{
	static const char *const words[] = {"false", "true", ""};
	int choice = spec_choice(s, words, 3);

	if (choice < 0)
		return spec_wrong(s, "%.*s is true or false, not '%.*s'", (int)s->key_len, s->key,
				  quoted_len(s->value_len), s->value);
	*out = choice > 0;
	return 0;
}

size_t number_prefix(const char *text, size_t len, const char *characters, double *out)
{
	char copy[64] = "", *end;
	size_t n = 0;

	while (n < len && text[n] && strchr(characters, text[n]))
		n++;
	if (!n || n >= sizeof(copy))
		return 0;
	memcpy(copy, text, n);
	*out = strtod(copy, &end);
	return *end ? 0 : n;
}

int spec_number(const struct spec *s, const char *what, const char *text, size_t len, double *out)
{
	double v = 0;

	if (!len || number_prefix(text, len, DECIMAL_CHARACTERS, &v) != len ||
	    !(fabs(v) <= DBL_MAX))
		return spec_wrong(s, "%s '%.*s' is not a number; write for example 100 or 0.5",
				  what, quoted_len(len), text);
	*out = v;
	return 0;
}

int spec_value_number(const struct spec *s, const char *what, double *out)
{
	return spec_number(s, what, s->value, s->value_len, out);
}
