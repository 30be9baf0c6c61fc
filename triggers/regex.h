/*
 * Regular expressions (PCRE2, UTF-8 where the text is valid) with a bounded cost.
 *
 * A match takes at most REGEX_MATCH_LIMIT steps. One that would take more is counted and does not
 * match. After REGEX_GIVE_UP of these the expression rests, and its rule says so: whoever can write
 * such texts must neither use up the CPU nor end the rule for good. A rest takes 60 s, twice as
 * long each time, an hour at most; after an hour of work without one it is 60 s again. Time comes
 * from regex_tick(). The merge thread, except open and close.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGEX_MATCH_LIMIT 50000u             /* some ms at worst */
#define REGEX_GIVE_UP 100u
#define REGEX_REST_NS (60 * 1000000000ull)
#define REGEX_REST_MAX_NS (3600 * 1000000000ull)
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

/*
 * What the first group of the last match, which this text gave, stands for; false = nothing. It
 * points into the text.
 */
bool regex_group(const struct regex *re, const char *text, const char **at, size_t *len);
bool regex_has_group(const struct regex *re);

/* The time of events, from EVENT_TICK; NULL allowed. */
void regex_tick(struct regex *re, uint64_t now_ns);

/* How many texts were not judged: they took too many steps, or came during a rest. */
uint64_t regex_gave_up(const struct regex *re);
/* How long the present rest takes as a whole; 0 = it is at work. */
uint64_t regex_rest_ns(const struct regex *re);
