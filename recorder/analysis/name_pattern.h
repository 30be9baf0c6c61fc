/*
 * Patterns for names of frames, in PerfView's notation:
 *
 *	*  any characters        %  letters, digits, '.', '_' and '?'      ^  the beginning
 *	|  or                    {} a part that $1, $2... in a group's name stand for
 *	@  in front: the rest is a regular expression
 *
 * Everything else stands for itself; case does not matter; a pattern matches anywhere in a name.
 * Matching is bounded (PCRE2's match limit); a name that would take too long does not match. One
 * thread. Source: PerfView's guide, "Simplified Pattern matching", and its FilterStacks.cs.
 */
#pragma once

#include "base/buf.h"

struct name_pattern;

/* text has n bytes. option and column are for the error's sentence. ERR_USAGE, ERR_MEMORY. */
int name_pattern_open(const char *text, size_t n, const char *option, size_t column,
		      struct name_pattern **out, struct err *err);
void name_pattern_close(struct name_pattern *p);     /* NULL allowed */

bool name_pattern_match(struct name_pattern *p, const char *name, size_t n);
/* Whether some match failed for lack of memory. */
bool name_pattern_no_memory(const struct name_pattern *p);
/* After a match: append the template, with what matched in place of $1... and $&. */
void name_pattern_expand(const struct name_pattern *p, const char *name, const char *template,
			 struct buf *out);
