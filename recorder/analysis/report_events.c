#include "analysis/report_events.h"

#include "analysis/summary.h"

#include "base/fit.h"
#include "base/json.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 32u

/* ---- collections ----------------------------------------------------------------------------- */

struct collection {
	const struct incident_event *start;
	uint64_t duration_ns;
	int64_t count, generation, reason;   /* NOT_KNOWN */
	bool ended;
	bool end_lost;                       /* the thread began another before */
};

#define NOT_KNOWN (-1)                        /* some runtimes leave it out */

static int64_t field_int(const struct incident *in, const struct incident_event *e,
			 const char *name)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++) {
		const struct event_field *f = &in->fields[e->first_field + i];

		if (strcmp(f->name, name) != 0)
			continue;
		if (f->type == FIELD_UINT)
			return (int64_t)f->v.u;
		return f->type == FIELD_INT ? f->v.i : NOT_KNOWN;
	}
	return NOT_KNOWN;
}

static uint32_t process_of(const struct incident *in, const struct incident_event *e)
{
	return e->thread == THREAD_NONE ? UINT32_MAX : in->threads[e->thread].process;
}

/*
 * The process's latest collection with this count that has not ended; where collections are not
 * counted, the thread's.
 */
static struct collection *find_open(const struct incident *in, struct collection *all, uint32_t n,
				    const struct incident_event *e, int64_t count)
{
	while (n--) {
		if (all[n].count == count && !all[n].ended && !all[n].end_lost &&
		    (count == NOT_KNOWN ? all[n].start->thread == e->thread
				       : process_of(in, all[n].start) == process_of(in, e)))
			return &all[n];
	}
	return NULL;
}

static uint32_t find_collections(const struct incident *in, struct collection *all)
{
	uint32_t i, n = 0;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		bool start = !strcmp(e->name, "GC/Start");
		struct collection *c;
		int64_t count;

		if (e->kind != EVENT_GENERIC || (!start && strcmp(e->name, "GC/Stop") != 0))
			continue;
		count = field_int(in, e, "Count");
		c = find_open(in, all, n, e, count);
		if (start && c && count == NOT_KNOWN) {
			c->end_lost = true;  /* it may not be the same one again */
			c = NULL;
		}
		if (start && !c) {
			all[n++] = (struct collection){.start = e, .count = count,
						       .generation = field_int(in, e, "Depth"),
						       .reason = field_int(in, e, "Reason")};
		} else if (!start && c) {
			c->duration_ns = e->time_ns - c->start->time_ns;
			c->ended = true;
		}
	}
	return n;
}

static int longest_first(const void *a, const void *b)
{
	const struct collection *x = a, *y = b;

	if (x->duration_ns != y->duration_ns)
		return x->duration_ns > y->duration_ns ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static void put_number(struct buf *out, int width, int64_t v)
{
	if (v == NOT_KNOWN)
		buf_printf(out, "  %*s", width, "-");
	else
		buf_printf(out, "  %*" PRId64, width, v);
}

static void json_key_number(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	if (v == NOT_KNOWN)
		json_null(j);
	else
		json_int(j, v);
}

static void put_collection(const struct incident *in, const struct collection *c, bool json,
			   struct buf *out)
{
	uint32_t process = process_of(in, c->start);
	char label[PROCESS_LABEL_BYTES];
	const char *name = process == UINT32_MAX ? "?" : incident_process_label(in, process, label);
	uint32_t pid = process == UINT32_MAX ? 0 : in->processes[process].pid;
	double at_s = ((double)c->start->time_ns - (double)in->head.trigger_ns) / 1e9;
	struct json j = {.out = out};

	if (!json) {
		buf_printf(out, "%10.3f  %10.3f", at_s, (double)c->duration_ns / 1e6);
		put_number(out, 3, c->generation);
		put_number(out, 6, c->reason);
		put_number(out, 6, c->count);
		buf_puts(out, "  ");
		utf8_put_clean(out, name, strlen(name), 1000);
		buf_printf(out, " (%" PRIu32 ")%s\n", pid,
			   c->ended ? "" : c->end_lost ? ", its end was lost"
						       : ", it did not end in the window");
		return;
	}
	json_open(&j, '{');
	json_key_str(&j, "row", "collection");
	json_key_num(&j, "start_s", at_s);
	json_key_num(&j, "duration_ms", (double)c->duration_ns / 1e6);
	json_key_bool(&j, "ended", c->ended);
	json_key_number(&j, "generation", c->generation);
	json_key_number(&j, "reason", c->reason);
	json_key_number(&j, "count", c->count);
	json_key_str(&j, "process", process == UINT32_MAX ? "?" : in->processes[process].name);
	json_key_uint(&j, "pid", pid);
	json_close(&j, '}');
	buf_putc(out, '\n');
}

int report_collections(const struct incident *in, bool json, uint32_t top, struct buf *out,
		       struct err *err)
{
	struct collection *all = calloc((size_t)in->nevents + 1, sizeof(*all));
	uint32_t n, i, nopen = 0;

	if (!all)
		return err_memory(err, "for garbage collections");
	n = find_collections(in, all);
	if (n)
		qsort(all, n, sizeof(*all), longest_first);
	for (i = 0; i < n; i++)
		nopen += !all[i].ended;
	if (n && !json) {
		buf_printf(out, "\n%10s  %10s  %3s  %6s  %6s  "
			   "GARBAGE COLLECTIONS, THE LONGEST OF %" PRIu32, "START S", "TOOK MS",
			   "GEN", "REASON", "COUNT", n);
		if (nopen)
			buf_printf(out, ", %" PRIu32 " WITHOUT AN END", nopen);
		buf_putc(out, '\n');
	}
	for (i = 0; i < n && i < top; i++)
		put_collection(in, &all[i], json, out);
	free(all);
	return 0;
}

/* ---- counters -------------------------------------------------------------------------------- */

static void put_course(const struct incident *in, const struct summary_counter *c,
		       char out[PARTS + 1])
{
	double span_ns = (double)(in->head.t1_ns - in->head.t0_ns), last[PARTS];
	bool seen[PARTS] = {false};
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		uint32_t part;

		if (e->kind != EVENT_COUNTER || (e->flags & EVENT_FLAG_ABSENT) || span_ns <= 0 ||
		    strcmp(e->name, c->name) != 0)
			continue;
		part = (uint32_t)((double)(e->time_ns - in->head.t0_ns) / span_ns * PARTS);
		part = part < PARTS ? part : PARTS - 1;
		last[part] = e->value;
		seen[part] = true;
	}
	for (i = 0; i < PARTS; i++) {
		double share = c->max > c->min && seen[i] ?
			       (last[i] - c->min) / (c->max - c->min) : 0;

		out[i] = !seen[i] ? '_' : share >= 1 ? '9' : (char)('0' + (int)(share * 10));
	}
	out[PARTS] = '\0';
}

/* Narrower terminals have no room for the course beside the name. */
enum { COURSE_MIN_COLUMNS = 112 };

static void put_counter(const struct incident *in, const struct summary_counter *c, bool json,
			size_t columns, struct buf *out)
{
	char course[PARTS + 1];
	struct json j = {.out = out};

	put_course(in, c, course);
	if (!json) {
		buf_printf(out, "%11.5g  %11.5g  %11.5g  %11.5g  ", c->at_trigger, c->min,
			   c->mean, c->max);
		if (columns >= COURSE_MIN_COLUMNS)
			buf_printf(out, "%s  ", course);
		fit_last(out, c->name, 0, columns);
		buf_putc(out, '\n');
		return;
	}
	json_open(&j, '{');
	json_key_str(&j, "row", "counter");
	json_key_str(&j, "counter", c->name);
	json_key_num(&j, "at_trigger", c->at_trigger);
	json_key_num(&j, "min", c->min);
	json_key_num(&j, "mean", c->mean);
	json_key_num(&j, "max", c->max);
	json_key_str(&j, "course", course);
	json_close(&j, '}');
	buf_putc(out, '\n');
}

int report_counters(const struct incident *in, bool json, struct buf *out, struct err *err)
{
	struct summary_counter *counters = NULL;
	size_t columns = fit_columns();
	uint32_t n = 0, i;
	int rc = summary_counters(in, &counters, &n, err);

	if (rc)
		return rc;
	if (n && !json) {
		buf_printf(out, "\n%11s  %11s  %11s  %11s  ", "AT TRIGGER", "MIN", "MEAN", "MAX");
		if (columns >= COURSE_MIN_COLUMNS)
			buf_printf(out, "%-*s  ", (int)PARTS, "COURSE, 0 LEAST TO 9 MOST");
		fit_last(out, "COUNTER", 0, columns);
		buf_putc(out, '\n');
	}
	for (i = 0; i < n; i++)
		put_counter(in, &counters[i], json, columns, out);
	free(counters);
	return 0;
}
