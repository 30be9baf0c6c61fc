/* Lists counters for people: all that match a pattern, and the current value of one. */

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"
#include "source/counter/proc_reader.h"
#include "source/counter/scrape.h"
#include "source/counter_name.h"
#include "source/runtime/gc_counters.h"
#include "source/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_NS (250 * NS_PER_MS)       /* between the two readings */
#define LISTED_MAX 1000000u             /* counters */
#define NAME_COLUMN_MAX 64

int proc_list(const char *pattern, bool json, struct out *out, struct err *err);

/* A counter that matches. */
struct list_row {
	const struct counter_category *category;
	struct proc_reading reading;
	char *name;                          /* in full */
	double value;                        /* NaN = none now */
};

struct listing {
	struct proc_reader *reader;
	const char *pattern;
	const struct counter_category *category;     /* whose instances are being listed */
	struct list_row *rows;
	uint32_t n, room;
	bool rates;                          /* a second reading is needed */
	int rc;
};

static int add_row(struct listing *l, const char *name, const struct proc_counter *counter)
{
	struct list_row row = {.category = counter->category};

	if (l->n == LISTED_MAX || ARRAY_ROOM(l->rows, l->room, l->n + 1) ||
	    proc_reading_start(l->reader, counter, &row.reading, NULL))
		return ERR_MEMORY;
	row.name = text_dup(name, SIZE_MAX);
	if (!row.name)
		return ERR_MEMORY;
	l->rates |= counter_needs_two(counter->def);
	l->rows[l->n++] = row;
	return 0;
}

/* A process is listed by its other names only where a pattern asks for them. */
static bool add_instance(void *ctx, const char *instance, bool also)
{
	struct listing *l = ctx;
	struct proc_counter counter = {.category = l->category, .def = l->category->counters};
	char name[2 * COUNTER_NAME_MAX];

	if (also && !l->pattern)
		return true;
	snprintf(counter.instance, sizeof(counter.instance), "%s", instance);
	for (; counter.def->name && !l->rc; counter.def++) {
		snprintf(name, sizeof(name), "%s:%s:%s", l->category->name, counter.def->name,
			 instance);
		if (name_matches(l->pattern, name))
			l->rc = add_row(l, name, &counter);
	}
	return !l->rc;
}

static void read_rows(struct listing *l)
{
	struct list_row *row;

	proc_reader_begin(l->reader);
	for (row = l->rows; row < l->rows + l->n; row++)
		if (proc_reading_next(l->reader, &row->reading, &row->value) != COUNTER_VALUE)
			row->value = NAN;
}

static void put_row(const struct list_row *row, bool json, int width, struct buf *name,
		    struct buf *meant, struct buf *line)
{
	const struct counter_def *def = row->reading.def;
	char value[40];

	buf_reset(meant);
	buf_reset(line);
	proc_instance_put_meant(row->reading.instance, meant);
	if (json) {
		counter_put_json(&(struct counter_row){
			.counter = row->name, .category = row->category->name, .name = def->name,
			.instance = row->name + strlen(row->category->name) + strlen(def->name) + 2,
			.value = row->value, .unit = def->unit, .meaning = def->meaning,
			.means = buf_text(meant)}, line);
		return;
	}
	counter_value_text(row->value, value, sizeof(value));
	buf_printf(line, "%-*s %16s %-11s  %s%s%s\n", width, buf_text(name), value, def->unit,
		   def->meaning, meant->len ? "; of " : "", buf_text(meant));
}

/* Names come from processes and mounts: remove all that could disturb the terminal. */
static size_t clean_name(const struct list_row *row, struct buf *out)
{
	buf_reset(out);
	utf8_put_clean(out, row->name, strlen(row->name), SIZE_MAX);
	return out->len;
}

static int put_rows(const struct listing *l, bool json, struct out *out, struct err *err)
{
	struct buf name = {0}, meant = {0}, line = {0};
	size_t width = 0, n;
	uint32_t i;
	int rc;

	for (i = 0; i < l->n; i++) {
		n = clean_name(&l->rows[i], &name);
		width = n > width ? n : width;
	}
	width = width < NAME_COLUMN_MAX ? width : NAME_COLUMN_MAX;
	for (i = 0; i < l->n; i++) {
		clean_name(&l->rows[i], &name);
		put_row(&l->rows[i], json, (int)width, &name, &meant, &line);
		out_put(out, line.data, line.len);
	}
	rc = name.failed || meant.failed ? err_memory(err, "for the list of counters")
					 : buf_check(&line, "a counter's line", err);
	buf_free(&name);
	buf_free(&meant);
	buf_free(&line);
	return rc;
}

int proc_list(const char *pattern, bool json, struct out *out, struct err *err)
{
	struct listing l = {.pattern = pattern};
	uint32_t i;
	int rc;

	/* Do not keep files open: there may be as many as processes. */
	rc = proc_reader_open("/proc", false, &l.reader, err);
	for (i = 0; !rc && i < PROC_CATEGORIES; i++) {
		l.category = &counter_categories[i];
		proc_reader_list(l.reader, l.category, add_instance, &l);
		if (l.rc)
			rc = err_memory(err, "for the list of counters");
	}
	if (!rc && !l.n)
		rc = err_set(err, ERR_NOT_FOUND, "no counter's name contains or matches '%s'",
			     pattern ? pattern : "");
	if (!rc) {
		read_rows(&l);
		if (l.rates) {
			os_sleep_ns(RATE_NS);
			read_rows(&l);
		}
		rc = put_rows(&l, json, out, err);
	}
	while (l.n)
		free(l.rows[--l.n].name);
	free(l.rows);
	proc_reader_close(l.reader);
	return rc;
}

int counter_read_once(const char *name, struct counter_value *out, struct err *err)
{
	struct counter_value value = {0};
	struct proc_counter counter;
	struct proc_reading reading;
	struct proc_reader *r = NULL;
	enum counter_result result;
	struct buf meant = {0};
	int rc;

	if (prometheus_counter_is(name))
		return scrape_read_once(name, out, err);
	if (gc_counter_is(name)) {
		/* Programs tell it while somebody listens. */
		*out = (struct counter_value){.unread = true};
		return gc_counter_check(name, err);
	}
	rc = proc_counter_find(name, &counter, err);
	if (!rc)
		rc = proc_reader_open("/proc", true, &r, err);
	if (!rc)
		rc = proc_reading_start(r, &counter, &reading, err);
	if (rc) {
		proc_reader_close(r);
		return rc;
	}
	result = proc_reading_next(r, &reading, &value.value);
	if (result == COUNTER_NOT_YET) {
		os_sleep_ns(RATE_NS);
		proc_reader_begin(r);
		result = proc_reading_next(r, &reading, &value.value);
	}
	value.absent = result != COUNTER_VALUE;
	snprintf(value.unit, sizeof(value.unit), "%s", counter.def->unit);
	if (!value.absent)
		proc_instance_put_meant(reading.instance, &meant);
	snprintf(value.meant, sizeof(value.meant), "%s", buf_text(&meant));
	buf_free(&meant);
	*out = value;
	proc_reader_close(r);
	return 0;
}
