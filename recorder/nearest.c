/*
 * The nearest names to a misspelled one: by the number of letters to add, drop, change or swap.
 */
#include "options.h"

#include <ctype.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64, BEST = 3 };

/* Lower case, without dashes; cut. Returns the length. */
static size_t squash(const char *name, char out[NAME_MAX_BYTES])
{
	size_t n = 0;

	for (; *name && n + 1 < NAME_MAX_BYTES; name++) {
		if (*name != '-')
			out[n++] = (char)tolower((unsigned char)*name);
	}
	out[n] = '\0';
	return n;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: Levenshtein's distance, and two swapped neighbours count as one. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned rows[3][NAME_MAX_BYTES + 1];
	size_t i, k;

	for (k = 0; k <= nb; k++)
		rows[0][k] = (unsigned)k;
	for (i = 1; i <= na; i++) {
		unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];

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

static unsigned far_apart(const char *wrong, const char *name)
{
	char a[NAME_MAX_BYTES], b[NAME_MAX_BYTES];
	size_t na = squash(wrong, a), nb = squash(name, b);
	unsigned d = distance(a, na, b, nb);

	/* An abbreviation is near to what it abbreviates, however much is missing. */
	if (na >= 3 && nb > na && memcmp(a, b, na) == 0)
		d = least(d, 2);
	return d * 3 <= na + 2 ? d : NAME_MAX_BYTES;
}

void nearest_names(const char *wrong, const char *prefix, const char *const *names,
		   struct buf *out)
{
	const char *best[BEST];
	unsigned far[BEST], nbest = 0, i;

	for (; *names; names++) {
		unsigned d = far_apart(wrong, *names);

		if (d >= NAME_MAX_BYTES)
			continue;
		for (i = nbest; i > 0 && far[i - 1] > d; i--) {
			if (i < BEST) {
				best[i] = best[i - 1];
				far[i] = far[i - 1];
			}
		}
		if (i < BEST) {
			best[i] = *names;
			far[i] = d;
			nbest += nbest < BEST;
		}
	}
	for (i = 0; i < nbest; i++)
		buf_printf(out, "%s%s%s", i == 0 ? "; did you mean " : i + 1 == nbest ? " or " : ", ",
			   prefix, best[i]);
	if (nbest)
		buf_putc(out, '?');
}
