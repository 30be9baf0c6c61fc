#include "base/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

enum { NAME_MAX_BYTES = 80 };

/* Lower case, without dashes; false when the name is too long to compare. */
static bool squash(const char *name, char out[NAME_MAX_BYTES])
{
	size_t n = 0;

	for (; *name; name++) {
		if (*name == '-')
			continue;
		if (n + 1 == NAME_MAX_BYTES)
			return false;
		out[n++] = (char)tolower((unsigned char)*name);
	}
	out[n] = '\0';
	return true;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: Levenshtein distance in which a swap of neighbours costs 1. */
static unsigned align(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned rows[3][NAME_MAX_BYTES];
	size_t i, k;

	for (k = 0; k <= nb; k++)
		rows[0][k] = (unsigned)k;
	for (i = 1; i <= na; i++) {
		unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3],
			 *earlier = rows[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (k = 1; k <= nb; k++) {
			unsigned change = before[k - 1] + (a[i - 1] != b[k - 1]);

			now[k] = least(change, least(before[k], now[k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				now[k] = least(now[k], earlier[k - 2] + 1);
		}
	}
	return rows[na % 3][nb];
}

unsigned nearest_distance(const char *a, const char *b)
{
	char sa[NAME_MAX_BYTES], sb[NAME_MAX_BYTES];
	size_t na, nb;
	unsigned d;

	if (!squash(a, sa) || !squash(b, sb))
		return UINT_MAX;
	na = strlen(sa);
	nb = strlen(sb);
	d = align(sa, na, sb, nb);
	/* An abbreviation is nearest, then a part of the other name. */
	if (na > 2 && strncmp(sa, sb, na) == 0)
		return least(d, 1);
	if ((na > 2 && strstr(sb, sa)) || (nb > 2 && strstr(sa, sb)))
		return least(d, 2);
	return d;
}

void nearest_offer(struct nearest *nearest, const char *name)
{
	unsigned distance = nearest_distance(nearest->wanted, name), i, k;

	for (i = 0; i < nearest->n; i++) {
		if (strcmp(nearest->names[i], name) == 0)
			return;
	}
	/*
	 * With a third of the letters wrong there is no resemblance, but one may always be wrong.
	 */
	if (distance > 1 && (distance == UINT_MAX || distance * 3 > strlen(nearest->wanted) + 2))
		return;
	for (i = 0; i < nearest->n && nearest->distance[i] <= distance; i++)
		;
	if (i == NEAREST_MAX)
		return;
	if (nearest->n < NEAREST_MAX)
		nearest->n++;
	for (k = nearest->n - 1; k > i; k--) {
		nearest->names[k] = nearest->names[k - 1];
		nearest->distance[k] = nearest->distance[k - 1];
	}
	nearest->names[i] = name;
	nearest->distance[i] = distance;
}

void nearest_put(const struct nearest *nearest, const char *before, const char *after,
		 struct buf *out)
{
	unsigned i;

	for (i = 0; i < nearest->n; i++) {
		if (i)
			buf_puts(out, i + 1 < nearest->n ? ", " : " or ");
		buf_printf(out, "%s%s%s", before, nearest->names[i], after);
	}
}
