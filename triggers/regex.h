/*
 * Regular expressions (PCRE2, UTF-8 where the text is valid) with a bounded cost.
 *
 * A match takes at most REGEX_MATCH_LIMIT steps. One that would take more is counted and does not
 * match. After REGEX_GIVE_UP of these the expression is switched off, and its rule says so. The
 * merge thread, except open and close.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGEX_MATCH_LIMIT 50000u             /* some ms at worst */
#define REGEX_GIVE_UP 100u
#define REGEX_PATTERN_MAX 1000u              /* bytes */

struct regex;

/*
 * spec     the whole rule, for error messages
 * returns  0; ERR_USAGE, which says what is wrong at which character; ERR_MEMORY
 */
int regex_open(const char *spec, const char *pattern, size_t len, bool ignore_case,
	       struct regex **out, struct err *err);
void regex_close(struct regex *re);        /* NULL allowed */

/* Whether it matches somewhere in the text. */
bool regex_match(struct regex *re, const char *text, size_t len);

/* How many matches took too many steps. */
uint64_t regex_gave_up(const struct regex *re);
/* Whether it is switched off. */
bool regex_is_dead(const struct regex *re);
