/*
 * PDH's names of categories, counters and instances, in the language of this Windows. One thread.
 */
#pragma once

#include "base/buf.h"
#include "source/counter/pdh_name.h"

#include <wchar.h>

/* Texts in a row, each with its NUL, and an empty one at the end; pdh_texts_free() frees them. */
struct pdh_texts {
	wchar_t *at;
};

int pdh_categories(struct pdh_texts *out, struct err *err);
/* instances->at is "" where the category has none. */
int pdh_items(const wchar_t *category, struct pdh_texts *counters, struct pdh_texts *instances,
	      struct err *err);
void pdh_texts_free(struct pdh_texts *texts);

/* Append the nearest names. true: the category exists, so they are counters. */
bool pdh_nearest(const struct pdh_name *name, struct buf *out);
