/*
 * Names of counters, CATEGORY:COUNTER:INSTANCE, and finding those that were meant.
 *
 * The first two colons split, so an instance may hold more. Names compare without regard to case
 * (ASCII). Portable: the sources of both hosts use it. No state, any thread.
 */
#pragma once

#include "base/buf.h"
#include "model/needs.h"

struct counter_name {
	char category[COUNTER_NAME_MAX], counter[COUNTER_NAME_MAX], instance[COUNTER_NAME_MAX];
};

/* ERR_USAGE when there are no two colons, or category or counter is empty. */
int counter_name_split(const char *name, struct counter_name *out, struct err *err);

bool name_equal(const char *a, const char *b);

/* Whether text contains the pattern, or as a whole matches it with * and ?. NULL matches all. */
bool name_matches(const char *pattern, const char *text);
