/*
 * Patterns on names of frames, as PerfView's users write them:
 *
 *	*  any characters        %  letters, digits, '.', '_' and '?'      ^  the beginning
 *	|  or                    {} what $1, $2... of a group's name stand for
 *	@  in front: the rest is a regular expression
 *
 * Everything else stands for itself; case does not matter; a pattern matches anywhere in a name.
 * Matching is bounded (PCRE2's match limit); a name that would take too long does not match. One
 * thread. Source: PerfView's guide, "Simplified Pattern matching", and its FilterStacks.cs.
 */
#ifndef NAME_PATTERN_H
#define NAME_PATTERN_H

#include "base/buf.h"

struct name_pattern;

/* n bytes. option and column: where it stands, for the sentence. ERR_USAGE, ERR_MEMORY. */
int name_pattern_open(const char *text, size_t n, const char *option, size_t column,
		      struct name_pattern **out, struct err *err);
void name_pattern_close(struct name_pattern *p);     /* NULL allowed */

bool name_pattern_match(struct name_pattern *p, const char *name, size_t n);
/* Whether a match was given up for lack of memory. */
bool name_pattern_no_memory(const struct name_pattern *p);
/* After a match: the template with $1... and $& replaced by what matched. */
void name_pattern_expand(const struct name_pattern *p, const char *name, const char *template,
			 struct buf *out);

#endif
