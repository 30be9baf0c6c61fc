/* Events as CSV, one a line. */
#include "export/event_json.h"
#include "export/names.h"
#include "export/rows.h"

#include <inttypes.h>

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
	csv_end_cell(c, ',');
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
	csv_put_name(c, who.process);
	buf_printf(&c->line, "%" PRIu32 ",", who.tid);
	csv_put_name(c, who.thread);
}

static void put_event(struct csv *c, const struct incident_event *e)
{
	uint64_t duration_ns = event_duration_ns(c->in, e);

	csv_put_name(c, e->provider);
	csv_put_name(c, *e->name ? e->name : event_kind_text(e->kind));
	put_who(c, e->thread);
	if (e->cpu != CPU_NONE)
		buf_printf(&c->line, "%u", e->cpu);
	buf_putc(&c->line, ',');
	if (duration_ns)
		us_put(&c->line, (int64_t)duration_ns);
	buf_putc(&c->line, ',');
	put_stack(c, e->stack);
	row_put_payload(&c->cell, c->in, e);
	csv_end_cell(c, '\n');
}

static int events_csv_write(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err)
{
	return csv_write(in, opt, "time_utc,t_ms,provider,event,pid,process,tid,thread,cpu,"
			 "duration_us,stack,payload\n", false, put_event, out, err);
}

const struct exporter events_csv_exporter = {
	.name = "events-csv",
	.suffix = ".events.csv",
	.summary = "a table of the events",
	.usual = true,
	.write = events_csv_write,
};
