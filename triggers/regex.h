/*
 * Regular expressions (PCRE2, UTF-8 where the text is valid) with a bounded cost.
 *
 * A match takes at most REGEX_MATCH_LIMIT steps; one that would take more counts as no match, and is
 * counted. After REGEX_GIVE_UP of these the expression is switched off: it would only cost, and its
 * rule says so. Merge thread, except open and close.
 */
#ifndef TRIGGERS_REGEX_H
#define TRIGGERS_REGEX_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGEX_MATCH_LIMIT 50000u             /* some ms at worst */
#define REGEX_GIVE_UP 100u
#define REGEX_PATTERN_MAX 1000u              /* bytes */

struct regex;

/*
 * spec     the whole rule, for the sentence
 * returns  0; ERR_USAGE with what is wrong and at which character; ERR_MEMORY
 */
int regex_open(const char *spec, const char *pattern, size_t len, bool ignore_case,
	       struct regex **out, struct err *err);
void regex_close(struct regex *re);        /* NULL allowed */

/* Whether it matches somewhere in the text. */
bool regex_match(struct regex *re, const char *text, size_t len);

/* Matches that were given up. */
uint64_t regex_gave_up(const struct regex *re);
/* Whether it is switched off. */
bool regex_is_dead(const struct regex *re);

#endif
