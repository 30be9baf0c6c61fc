/* Events, and values of counters, as CSV, one a line (RFC 4180, but LF ends a line). */
#include "export/event_json.h"
#include "export/markup.h"
#include "export/names.h"
#include "export/sums.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

/* A line of CSV that is being written, and its last cell. */
struct csv {
	const struct incident *in;
	struct buf line, cell;
	struct path path;                    /* scratch */
	bool excel;                          /* quote cells that a spreadsheet would compute */
};

/* Append the cell to the line, quoted if need be, and `after`; the cell becomes empty. */
static void end_cell(struct csv *c, char after)
{
	if (c->cell.failed)
		c->line.failed = c->cell.failed;
	markup_put_csv(&c->line, buf_text(&c->cell), c->excel);
	buf_putc(&c->line, after);
	buf_reset(&c->cell);
}

/* A cell with a name, cleaned. */
static void put_name(struct csv *c, const char *name)
{
	name_put(&c->cell, name);
	end_cell(c, ',');
}

/*
 * Write a line with these titles, then a line for each counter value, or for each other event: its
 * time, its ms from the window's start, and what put() appends.
 */
static int write_table(const struct incident *in, const struct export_options *opt,
		       const char *titles, bool counters,
		       void (*put)(struct csv *c, const struct incident_event *e), struct out *out,
		       struct err *err)
{
	struct csv c = {.in = in, .excel = opt->excel};
	uint32_t i;
	int rc = 0;

	out_puts(out, titles);
	for (i = 0; i < in->nevents && !rc && !out_failed(out); i++) {
		const struct incident_event *e = &in->events[i];

		if ((e->kind == EVENT_COUNTER) != counters)
			continue;
		row_put_time(&c.line, in, e->time_ns);
		buf_putc(&c.line, ',');
		ms_put(&c.line, (int64_t)(e->time_ns - in->head.t0_ns));
		buf_putc(&c.line, ',');
		put(&c, e);
		rc = buf_check(&c.line, counters ? "a line of counters" : "a line of events", err);
		out_drain(out, &c.line, false);
	}
	out_drain(out, &c.line, true);
	buf_free(&c.line);
	buf_free(&c.cell);
	path_free(&c.path);
	return rc;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The frames as in folded stacks: root first, with semicolons between them. */
static void put_stack(struct csv *c, uint32_t stack)
{
	uint32_t i;
	size_t start;

	if (path_make(&c->path, c->in, stack))
		c->cell.failed = ERR_MEMORY;
	for (i = c->path.n; i-- > 0;) {
		start = c->cell.len;
		incident_frame_text(c->in, c->path.frames[i], false, &c->cell);
		name_no_semicolons(&c->cell, start);
		if (i)
			buf_putc(&c->cell, ';');
	}
	end_cell(c, ',');
}

static void put_who(struct csv *c, uint32_t thread)
{
	struct who who;

	if (thread == THREAD_NONE) {
		buf_puts(&c->line, ",,,,");
		return;
	}
	who_of(c->in, thread, &who);
	buf_printf(&c->line, "%" PRIu32 ",", who.pid);
	put_name(c, who.process);
	buf_printf(&c->line, "%" PRIu32 ",", who.tid);
	put_name(c, who.thread);
}

static void put_event(struct csv *c, const struct incident_event *e)
{
	uint64_t duration_ns = event_duration_ns(c->in, e);

	put_name(c, e->provider);
	put_name(c, *e->name ? e->name : event_kind_text(e->kind));
	put_name(c, event_kind_text(e->kind));
	put_who(c, e->thread);
	if (e->cpu != CPU_NONE)
		buf_printf(&c->line, "%u", e->cpu);
	buf_putc(&c->line, ',');
	if (duration_ns)
		us_put(&c->line, (int64_t)duration_ns);
	buf_putc(&c->line, ',');
	put_stack(c, e->stack);
	row_put_payload(&c->cell, c->in, e);
	end_cell(c, '\n');
}

static int write_events(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err)
{
	return write_table(in, opt, "time_utc,t_ms,provider,event,kind,pid,process,tid,thread,cpu,"
			 "duration_us,stack,payload\n", false, put_event, out, err);
}

const struct exporter events_csv_exporter = {
	.name = "events-csv",
	.suffix = ".events.csv",
	.summary = "a table of the events",
	.usual = true,
	.write = write_events,
};

/* ---- counters -------------------------------------------------------------------------------- */

/* "Process:Working Set:java" is counter "Process:Working Set", instance "java". */
static void put_value(struct csv *c, const struct incident_event *e)
{
	const char *first = strchr(e->name, ':'), *second = first ? strchr(first + 1, ':') : NULL;
	size_t n = second ? (size_t)(second - e->name) : strlen(e->name);
	char number[40];

	utf8_put_clean(&c->cell, e->name, n, INCIDENT_TEXT_MAX);
	end_cell(c, ',');
	put_name(c, second ? second + 1 : "");
	/* The unit that the counter's name states; most state none. */
	buf_puts(&c->line, memchr(e->name, '%', n) ? "%," : ",");
	if (!(e->flags & EVENT_FLAG_ABSENT)) {
		num_text(e->value, number, sizeof(number));
		buf_puts(&c->line, number);
	}
	buf_putc(&c->line, '\n');
}

static int write_counters(const struct incident *in, const struct export_options *opt,
			      struct out *out, struct err *err)
{
	return write_table(in, opt, "time_utc,t_ms,counter,instance,unit,value\n", true, put_value,
			 out, err);
}

const struct exporter counters_csv_exporter = {
	.name = "counters-csv",
	.suffix = ".counters.csv",
	.summary = "a table of the counters' values",
	.usual = true,
	.write = write_counters,
};
