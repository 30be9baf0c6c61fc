/* Lists counters for people: all that match a pattern, and the current value of one. */

#include "base/array.h"
#include "base/nearest.h"
#include "base/json.h"
#include "base/os.h"
#include "base/utf8.h"
#include "source/runtime/gc_counters.h"
#include "source/counter/proc_reader.h"
#include "source/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_NS (250 * NS_PER_MS)       /* between the two readings */
#define LISTED_MAX 100000u
#define NAME_COLUMN_MAX 64

int proc_list(const char *pattern, bool json, struct out *out, struct err *err);

/* An instance with at least one counter that matches. */
struct list_row {
	const struct counter_category *category;
	struct proc_instance *instance;
	char *name;
	struct counter_raw first, second;
	enum counter_result first_result, second_result;
};

struct listing {
	struct proc_reader *reader;
	const char *pattern;
	const struct counter_category *category;
	struct list_row *rows;
	uint32_t n, room;
	bool rates;                          /* a second reading is needed */
	bool no_memory;
};

static void full_name(const struct counter_category *category, const struct counter_def *def,
		      const char *instance, char *out, size_t n)
{
	snprintf(out, n, "%s:%s:%s", category->name, def->name, instance);
}

static bool counter_matches(const struct listing *l, const struct counter_category *category,
			    const struct counter_def *def, const char *instance)
{
	char name[2 * COUNTER_NAME_MAX];

	full_name(category, def, instance, name, sizeof(name));
	return name_matches(l->pattern, name);
}

static struct list_row *add_row(struct listing *l)
{
	if (l->n == LISTED_MAX || ARRAY_ROOM(l->rows, l->room, l->n + 1))
		return NULL;
	memset(&l->rows[l->n], 0, sizeof(l->rows[l->n]));
	return &l->rows[l->n];
}

/* A process is listed by its other names only where a pattern asks for them. */
static bool add_instance(void *ctx, const char *name, bool also)
{
	struct listing *l = ctx;
	const struct counter_def *def;
	struct list_row *row;
	uint32_t fields = 0;

	for (def = l->category->counters; def->name; def++) {
		if (!counter_matches(l, l->category, def, name))
			continue;
		fields |= counter_fields(def);
		l->rates |= counter_needs_two(def);
	}
	if (!fields || (also && !l->pattern))
		return true;
	row = add_row(l);
	if (row) {
		row->category = l->category;
		row->name = malloc(strlen(name) + 1);
		row->instance = proc_reader_instance(l->reader, l->category, name, fields);
		l->n++;
	}
	if (!row || !row->name || !row->instance) {
		l->no_memory = true;
		return false;
	}
	strcpy(row->name, name);
	return true;
}

static void read_rows(struct listing *l, bool second)
{
	const struct counter_raw *raw;
	uint32_t i;

	proc_reader_begin(l->reader);
	for (i = 0; i < l->n; i++) {
		struct list_row *row = &l->rows[i];
		enum counter_result result = proc_instance_read(l->reader, row->instance, &raw);

		*(second ? &row->second_result : &row->first_result) = result;
		*(second ? &row->second : &row->first) = *raw;
	}
}

/* The counter's value; NaN = none now. */
static double value_of(const struct listing *l, const struct list_row *row,
		       const struct counter_def *def)
{
	const struct counter_raw *now = l->rates ? &row->second : &row->first;
	enum counter_result result = l->rates ? row->second_result : row->first_result;
	const struct counter_raw *before =
		row->first_result == COUNTER_VALUE && l->rates ? &row->first : NULL;
	double value;

	if (result != COUNTER_VALUE || counter_value(def, before, now, &value) != COUNTER_VALUE)
		return NAN;
	return value;
}

/* Names come from processes and mounts: remove all that could disturb the terminal. */
static void clean_name(const struct list_row *row, const struct counter_def *def, struct buf *out)
{
	char name[2 * COUNTER_NAME_MAX];

	full_name(row->category, def, row->name, name, sizeof(name));
	buf_reset(out);
	utf8_put_clean(out, name, strlen(name), sizeof(name));
}

static void value_text(double v, char *out, size_t n)
{
	if (v != v)
		snprintf(out, n, "-");
	else if (v == floor(v) || fabs(v) >= 1e5)
		snprintf(out, n, "%.0f", v);
	else
		snprintf(out, n, fabs(v) >= 0.01 ? "%.2f" : "%.3g", v);
}

static bool put_meant(const struct list_row *row, struct buf *out)
{
	struct buf meant = {0};

	proc_instance_put_meant(row->instance, &meant);
	buf_reset(out);
	utf8_put_clean(out, buf_text(&meant), meant.len, SIZE_MAX);
	buf_free(&meant);
	return out->len > 0;
}

static void put_text(struct listing *l, const struct list_row *row, const struct counter_def *def,
		     int width, struct buf *scratch, struct out *out)
{
	char value[40];

	value_text(value_of(l, row, def), value, sizeof(value));
	clean_name(row, def, scratch);
	out_printf(out, "%-*s %16s %-11s  %s", width, buf_text(scratch), value, def->unit,
		   def->meaning);
	if (put_meant(row, scratch))
		out_printf(out, "; of %s", buf_text(scratch));
	out_printf(out, "\n");
}

static void put_json(struct listing *l, const struct list_row *row, const struct counter_def *def,
		     struct buf *scratch, struct out *out)
{
	char name[2 * COUNTER_NAME_MAX];
	struct json j = { scratch, false };
	struct buf meant = {0};

	buf_reset(scratch);
	full_name(row->category, def, row->name, name, sizeof(name));
	json_open(&j, '{');
	json_key_str(&j, "counter", name);
	json_key_str(&j, "category", row->category->name);
	json_key_str(&j, "name", def->name);
	json_key_str(&j, "instance", row->name);
	json_key_num(&j, "value", value_of(l, row, def));
	json_key_str(&j, "unit", def->unit);
	json_key_str(&j, "meaning", def->meaning);
	if (put_meant(row, &meant))
		json_key_str(&j, "means", buf_text(&meant));
	buf_free(&meant);
	json_close(&j, '}');
	out_printf(out, "%s\n", buf_text(scratch));
}

static int put_rows(struct listing *l, bool json, struct out *out, struct err *err)
{
	const struct counter_def *def;
	struct buf scratch = {0};
	int width = 0, rc;
	uint32_t pass, i;

	/* The first pass only measures the names. */
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < l->n; i++) {
			struct list_row *row = &l->rows[i];

			for (def = row->category->counters; def->name; def++) {
				if (!counter_matches(l, row->category, def, row->name))
					continue;
				if (pass == 1 && json)
					put_json(l, row, def, &scratch, out);
				else if (pass == 1)
					put_text(l, row, def, width, &scratch, out);
				clean_name(row, def, &scratch);
				if ((int)scratch.len > width)
					width = (int)scratch.len;
			}
		}
		if (width > NAME_COLUMN_MAX)
			width = NAME_COLUMN_MAX;
	}
	rc = buf_check(&scratch, "a counter's line", err);
	buf_free(&scratch);
	return rc;
}

static int nothing_matches(const char *pattern, struct err *err)
{
	struct nearest near = {.wanted = pattern ? pattern : ""};
	const struct counter_def *def;
	struct buf text = {0};
	size_t i;

	for (i = 0; i < PROC_CATEGORIES; i++) {
		nearest_offer(&near, counter_categories[i].name);
		for (def = counter_categories[i].counters; def->name; def++)
			nearest_offer(&near, def->name);
	}
	nearest_put(&near, "'", "'", &text);
	err_set(err, ERR_NOT_FOUND, "no counter's name contains or matches '%s'%s%s", near.wanted,
		near.n ? "; the nearest: " : "", buf_text(&text));
	buf_free(&text);
	return ERR_NOT_FOUND;
}

int proc_list(const char *pattern, bool json, struct out *out, struct err *err)
{
	struct listing l = { .pattern = pattern };
	uint32_t i;
	int rc;

	/* Do not keep files open: there may be as many as processes. */
	rc = proc_reader_open("/proc", false, &l.reader, err);
	for (i = 0; !rc && i < PROC_CATEGORIES; i++) {
		l.category = &counter_categories[i];
		proc_reader_list(l.reader, l.category, add_instance, &l);
		if (l.no_memory)
			rc = err_memory(err, "for the list of counters");
	}
	if (!rc && !l.n)
		rc = nothing_matches(pattern, err);
	if (!rc) {
		read_rows(&l, false);
		if (l.rates) {
			os_sleep_ns(RATE_NS);
			read_rows(&l, true);
		}
		rc = put_rows(&l, json, out, err);
	}
	for (i = 0; i < l.n; i++)
		free(l.rows[i].name);
	free(l.rows);
	proc_reader_close(l.reader);
	return rc;
}

int counter_read_once(const char *name, struct counter_value *out, struct err *err)
{
	struct counter_raw first = {0};
	const struct counter_raw *raw;
	struct proc_instance *instance;
	struct proc_reader *r = NULL;
	enum counter_result result;
	struct counter_value value = {0};
	struct proc_counter counter;
	struct buf meant = {0};
	int rc;

	if (gc_counter_is(name)) {
		/* nothing watches collections now */
		*out = (struct counter_value){.absent = true};
		return gc_counter_check(name, err);
	}
	rc = proc_counter_find(name, &counter, err);
	if (!rc)
		rc = proc_reader_open("/proc", true, &r, err);
	if (rc)
		return rc;
	instance = proc_reader_instance(r, counter.category, counter.instance,
					counter_fields(counter.def));
	if (!instance) {
		proc_reader_close(r);
		return err_memory(err, "for the counter '%s'", name);
	}
	result = proc_instance_read(r, instance, &raw);
	if (result == COUNTER_VALUE && counter_needs_two(counter.def)) {
		first = *raw;
		os_sleep_ns(RATE_NS);
		proc_reader_begin(r);
		result = proc_instance_read(r, instance, &raw);
	}
	if (result == COUNTER_VALUE)
		result = counter_value(counter.def, first.time_ns ? &first : NULL, raw,
				       &value.value);
	value.absent = result != COUNTER_VALUE;
	snprintf(value.unit, sizeof(value.unit), "%s", counter.def->unit);
	if (!value.absent)
		proc_instance_put_meant(instance, &meant);
	snprintf(value.meant, sizeof(value.meant), "%s", buf_text(&meant));
	buf_free(&meant);
	*out = value;
	proc_reader_close(r);
	return 0;
}
