/* Lists counters for people: all that match a pattern, and the current value of one. */

#include "base/array.h"
#include "base/os.h"
#include "base/os_windows.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "source/counter/pdh_counter_windows.h"
#include "source/counter/pdh_names_windows.h"
#include "source/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_NS (250 * NS_PER_MS)            /* between the two readings */
#define READ_MAX 500u  /* beyond this only names are listed, because each value is a query of PDH */
#define LISTED_MAX 100000u
#define NAME_COLUMN 64u

int pdh_list(const char *pattern, bool json, struct out *out, struct err *err);

enum { CATEGORY, COUNTER, INSTANCE, NAME, ROW_TEXTS };

struct list_row {
	uint32_t texts[ROW_TEXTS];           /* NAME: the full one */
	double value;                        /* NaN = none */
};

struct listing {
	const char *pattern;
	struct text_table texts;
	struct list_row *rows;
	uint32_t n, room;
};

static const char *row_text(const struct listing *l, uint32_t row, unsigned which)
{
	return text_table_get(&l->texts, l->rows[row].texts[which]);
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool add_row(struct listing *l, const char *category, const char *counter,
		    const char *instance)
{
	const char *texts[ROW_TEXTS] = {category, counter, instance};
	struct list_row row = {.value = NAN};
	struct buf name = {0};
	bool ok, matches;
	unsigned i;

	buf_printf(&name, "%s:%s:%s", category, counter, instance);
	matches = !name.failed && name_matches(l->pattern, buf_text(&name));
	ok = !name.failed && (!matches || (l->n < LISTED_MAX &&
					   !ARRAY_ROOM(l->rows, l->room, l->n + 1)));
	texts[NAME] = buf_text(&name);
	for (i = 0; ok && matches && i < ROW_TEXTS; i++) {
		row.texts[i] = text_table_add(&l->texts, texts[i], strlen(texts[i]));
		ok = row.texts[i] != TABLE_NONE;
	}
	if (ok && matches)
		l->rows[l->n++] = row;
	buf_free(&name);
	return ok;
}

/* Number instances of the same name as PDH does: java, java#1, ... */
static void number_instance(const wchar_t *first, const wchar_t *at, struct buf *out)
{
	unsigned n = 0;

	buf_reset(out);
	wide_put(out, at);
	for (; first < at; first += wcslen(first) + 1)
		n += _wcsicmp(first, at) == 0;
	if (n)
		buf_printf(out, "#%u", n);
}

static bool add_category(struct listing *l, const wchar_t *wide)
{
	struct buf category = {0}, counter = {0}, instance = {0};
	wchar_t *counters, *instances;
	const wchar_t *c, *i;
	bool ok = true;

	if (pdh_items(wide, &counters, &instances, NULL))
		return true;                 /* one broken category does not hide the others */
	wide_put(&category, wide);
	for (c = counters; ok && *c; c += wcslen(c) + 1) {
		buf_reset(&counter);
		wide_put(&counter, c);
		if (!*instances)
			ok = add_row(l, buf_text(&category), buf_text(&counter), "");
		for (i = instances; ok && *i; i += wcslen(i) + 1) {
			number_instance(instances, i, &instance);
			ok = add_row(l, buf_text(&category), buf_text(&counter),
				     buf_text(&instance));
		}
	}
	buf_free(&category);
	buf_free(&counter);
	buf_free(&instance);
	free(counters);
	free(instances);
	return ok;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void read_values(struct listing *l)
{
	struct pdh_counter **counters = calloc(l->n, sizeof(*counters));
	enum counter_result result;
	unsigned pass;
	uint32_t i;

	for (pass = 0; counters && pass < 2; pass++) {
		for (i = 0; i < l->n; i++) {
			if (!pass && pdh_counter_open(row_text(l, i, NAME), &counters[i], NULL))
				counters[i] = NULL;
			result = counters[i] ? pdh_counter_read(counters[i], &l->rows[i].value)
					     : COUNTER_ABSENT;
			if (result != COUNTER_VALUE)
				l->rows[i].value = NAN;
		}
		if (!pass)
			os_sleep_ns(RATE_NS);
	}
	for (i = 0; counters && i < l->n; i++)
		pdh_counter_close(counters[i]);
	free(counters);
}

/* ---- printing -------------------------------------------------------------------------------- */

static void put_row(const struct listing *l, uint32_t i, bool json, struct buf *line)
{
	const struct counter_row row = {
		row_text(l, i, NAME), row_text(l, i, CATEGORY), row_text(l, i, COUNTER),
		row_text(l, i, INSTANCE), l->rows[i].value, "", "", NULL};
	char value[40];

	if (json) {
		counter_put_json(&row, line);
		return;
	}
	counter_value_text(row.value, value, sizeof(value));
	utf8_put_clean(line, row.counter, strlen(row.counter), COUNTER_NAME_MAX);
	buf_printf(line, "%*s %16s\n", line->len < NAME_COLUMN ? (int)(NAME_COLUMN - line->len) : 0,
		   "", value);
}

int pdh_list(const char *pattern, bool json, struct out *out, struct err *err)
{
	struct listing l = {.pattern = pattern};
	wchar_t *categories;
	struct buf line = {0};
	const wchar_t *at;
	uint32_t i;
	int rc = pdh_categories(&categories, err);

	for (at = categories; !rc && *at; at += wcslen(at) + 1)
		if (!add_category(&l, at))
			rc = err_memory(err, "for the list of counters");
	if (!rc && !l.n)
		rc = err_set(err, ERR_NOT_FOUND, "no counter's name contains or matches '%s'",
			     pattern ? pattern : "");
	if (!rc && l.n <= READ_MAX)
		read_values(&l);
	for (i = 0; !rc && i < l.n; i++) {
		buf_reset(&line);
		put_row(&l, i, json, &line);
		out_put(out, line.data, line.len);
	}
	if (!rc && !json && l.n > READ_MAX)
		out_printf(out, "(values are shown for up to %u counters: give a part of a name)\n",
			   READ_MAX);
	if (!rc)
		rc = buf_check(&line, "a counter's line", err);
	free(l.rows);
	text_table_free(&l.texts);
	free(categories);
	buf_free(&line);
	return rc;
}

int counter_read_once(const char *name, struct counter_value *out, struct err *err)
{
	struct pdh_counter *counter;
	struct counter_value value = {0};
	enum counter_result result;
	int rc = pdh_counter_open(name, &counter, err);

	if (rc)
		return rc;
	result = pdh_counter_read(counter, &value.value);
	if (result == COUNTER_NOT_YET) {
		os_sleep_ns(RATE_NS);
		result = pdh_counter_read(counter, &value.value);
	}
	value.absent = result != COUNTER_VALUE;
	*out = value;
	pdh_counter_close(counter);
	return 0;
}
