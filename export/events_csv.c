/* Events as CSV (RFC 4180, but lines end in LF), one a line: exports-and-store.md, section 2.9. */
#include "export/event_json.h"
#include "export/names.h"
#include "export/rows.h"
#include "export/sums.h"

#include <inttypes.h>

/* The frames as in folded stacks: root first, with semicolons between them. */
static void put_stack(struct buf *out, const struct incident *in, const struct path *path)
{
	uint32_t i;
	size_t start;

	for (i = path->n; i-- > 0;) {
		start = out->len;
		incident_frame_text(in, path->frames[i], false, out);
		name_no_semicolons(out, start);
		if (i)
			buf_putc(out, ';');
	}
}

static void put_text(struct buf *line, struct buf *cell, const char *text, bool excel)
{
	buf_reset(cell);
	name_put(cell, text);
	if (cell->failed)
		line->failed = cell->failed;
	row_put_cell(line, buf_text(cell), excel);
	buf_putc(line, ',');
}

static void put_who(struct buf *line, struct buf *cell, const struct incident *in,
		    const struct incident_event *e, bool excel)
{
	struct who who;

	if (e->thread == THREAD_NONE) {
		buf_puts(line, ",,,,");
		return;
	}
	who_of(in, e->thread, &who);
	buf_printf(line, "%" PRIu32 ",", who.pid);
	put_text(line, cell, who.process, excel);
	buf_printf(line, "%" PRIu32 ",", who.tid);
	put_text(line, cell, who.thread, excel);
}

static void put_event(struct buf *line, struct buf *cell, const struct incident *in,
		      const struct incident_event *e, const struct path *path, bool excel)
{
	uint64_t duration_ns = event_duration_ns(in, e);

	row_put_time(line, in, e->time_ns);
	buf_putc(line, ',');
	ms_put(line, (int64_t)(e->time_ns - in->head.t0_ns));
	buf_putc(line, ',');
	put_text(line, cell, e->provider, excel);
	put_text(line, cell, *e->name ? e->name : event_kind_text(e->kind), excel);
	put_who(line, cell, in, e, excel);
	if (e->cpu != CPU_NONE)
		buf_printf(line, "%u", e->cpu);
	buf_putc(line, ',');
	if (duration_ns)
		us_put(line, (int64_t)duration_ns);
	buf_putc(line, ',');
	buf_reset(cell);
	put_stack(cell, in, path);
	if (cell->failed)
		line->failed = cell->failed;
	row_put_cell(line, buf_text(cell), excel);
	buf_putc(line, ',');
	buf_reset(cell);
	row_put_payload(cell, in, e);
	if (cell->failed)
		line->failed = cell->failed;
	row_put_cell(line, buf_text(cell), excel);
	buf_putc(line, '\n');
}

static int events_csv_write(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err)
{
	struct buf line = {0}, cell = {0};
	struct path path = {0};
	uint32_t i;
	int rc = 0;

	out_puts(out, "time_utc,t_ms,provider,event,pid,process,tid,thread,cpu,duration_us,stack,"
		      "payload\n");
	for (i = 0; i < in->nevents && !rc && !out_failed(out); i++) {
		const struct incident_event *e = &in->events[i];

		if (e->kind == EVENT_COUNTER)
			continue;
		buf_reset(&line);
		line.failed = path_make(&path, in, e->stack);
		put_event(&line, &cell, in, e, &path, opt->excel);
		rc = buf_check(&line, "a line of events", err);
		out_put(out, buf_text(&line), line.len);
	}
	path_free(&path);
	buf_free(&line);
	buf_free(&cell);
	return rc;
}

const struct exporter events_csv_exporter = {
	.name = "events-csv",
	.suffix = ".events.csv",
	.summary = "a table of the events",
	.usual = true,
	.write = events_csv_write,
};
