/*
 * PDH's names of categories, counters and instances, in the language of this Windows. One thread.
 */
#pragma once

#include "base/buf.h"
#include "source/counter/pdh_name.h"

#include <wchar.h>

/* Each gives texts in a row, with a NUL after each and an empty one at the end; free() them. */
int pdh_categories(wchar_t **out, struct err *err);
/* *instances is "" where the category has none. */
int pdh_items(const wchar_t *category, wchar_t **counters, wchar_t **instances, struct err *err);

/* Append the nearest names. true: the category exists, so they are counters. */
bool pdh_nearest(const struct pdh_name *name, struct buf *out);
