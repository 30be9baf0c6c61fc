/*
 * Names of PDH: categories, their counters and instances, in the language of this Windows. One
 * thread.
 */
#pragma once

#include "base/buf.h"
#include "source/counter/pdh_name.h"

#include <wchar.h>

/* Texts one after the other, each with its NUL, and one more at the end; free() it. */
struct pdh_texts {
	wchar_t *at;
};

int pdh_categories(struct pdh_texts *out, struct err *err);
/* instances->at is "" where the category has none. */
int pdh_items(const wchar_t *category, struct pdh_texts *counters, struct pdh_texts *instances,
	      struct err *err);
void pdh_texts_free(struct pdh_texts *texts);

/*
 * Append the names nearest to the one that is wrong; true: the category is right, so the counter's.
 */
bool pdh_nearest(const struct pdh_name *name, struct buf *out);
