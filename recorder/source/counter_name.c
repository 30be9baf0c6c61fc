#include "source/counter_name.h"

#include <stdio.h>
#include <string.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

int counter_name_split(const char *name, struct counter_name *out, struct err *err)
{
	const char *first = strchr(name, ':');
	const char *second = first ? strchr(first + 1, ':') : NULL;

	if (strlen(name) >= COUNTER_NAME_MAX)
		return err_set(err, ERR_USAGE, "the counter name '%.60s...' has over %d bytes",
			       name, COUNTER_NAME_MAX - 1);
	if (!second)
		return err_set(err, ERR_USAGE,
			       "the counter '%s' is not CATEGORY:COUNTER:INSTANCE, like "
			       "'Processor:%% Processor Time:_Total' or 'Memory:Available MBytes:'",
			       name);
	if (first == name)
		return err_set(err, ERR_USAGE,
			       "the counter '%s' has no category before its first ':'", name);
	if (second == first + 1)
		return err_set(err, ERR_USAGE, "the counter '%s' has no name between its two ':'",
			       name);
	snprintf(out->category, sizeof(out->category), "%.*s", (int)(first - name), name);
	snprintf(out->counter, sizeof(out->counter), "%.*s", (int)(second - first - 1), first + 1);
	snprintf(out->instance, sizeof(out->instance), "%s", second + 1);
	return 0;
}

bool name_equal(const char *a, const char *b)
{
	for (; lower(*a) == lower(*b); a++, b++)
		if (!*a)
			return true;
	return false;
}

static bool contains(const char *text, const char *part)
{
	size_t i;

	for (; *text; text++) {
		for (i = 0; part[i] && lower(text[i]) == lower(part[i]); i++)
			;
		if (!part[i])
			return true;
	}
	return !*part;
}

/* With one point to go back to, the last '*': enough, and linear in practice. */
static bool glob(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '?' || (*pattern && lower(*pattern) == lower(*text))) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

bool name_matches(const char *pattern, const char *text)
{
	return !pattern || contains(text, pattern) || glob(pattern, text);
}
