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

#define DISTANCE_MAX_LEN 80u

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

unsigned name_distance(const char *a, const char *b)
{
	unsigned row[DISTANCE_MAX_LEN + 1], above, corner, i, j;
	size_t na = strlen(a), nb = strlen(b);

	if (name_equal(a, b))
		return 0;
	if ((na > 2 && contains(b, a)) || (nb > 2 && contains(a, b)))
		return 1;
	if (na > DISTANCE_MAX_LEN || nb > DISTANCE_MAX_LEN)
		return (unsigned)(na > nb ? na : nb);
	for (j = 0; j <= nb; j++)
		row[j] = j;
	for (i = 1; i <= na; i++) {
		corner = row[0];
		row[0] = i;
		for (j = 1; j <= nb; j++) {
			above = row[j];
			if (lower(a[i - 1]) != lower(b[j - 1]))
				corner = 1 + least(corner, above, row[j - 1]);
			row[j] = corner;
			corner = above;
		}
	}
	return row[nb];
}

void nearest_offer(struct nearest *nearest, const char *name)
{
	unsigned distance = name_distance(nearest->wanted, name), i, j;

	for (i = 0; i < nearest->n; i++)
		if (strcmp(nearest->names[i], name) == 0)
			return;
	/* Half of the letters wrong is no resemblance. */
	if (distance > 1 && distance > strlen(nearest->wanted) / 2)
		return;
	for (i = 0; i < nearest->n && nearest->distance[i] <= distance; i++)
		;
	if (i == NEAREST_MAX)
		return;
	if (nearest->n < NEAREST_MAX)
		nearest->n++;
	for (j = nearest->n - 1; j > i; j--) {
		nearest->names[j] = nearest->names[j - 1];
		nearest->distance[j] = nearest->distance[j - 1];
	}
	nearest->names[i] = name;
	nearest->distance[i] = distance;
}

void nearest_text(const struct nearest *nearest, char *out, size_t n)
{
	size_t used = 0;
	unsigned i;

	out[0] = '\0';
	for (i = 0; i < nearest->n && used < n; i++)
		used += (size_t)snprintf(out + used, n - used, "%s'%s'",
					 i == 0 ? "" : i + 1 < nearest->n ? ", " : " or ",
					 nearest->names[i]);
}
