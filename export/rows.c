#include "export/rows.h"

#include "export/event_json.h"
#include "export/names.h"

#include "base/os.h"

#include <string.h>

void row_put_time(struct buf *out, const struct incident *in, uint64_t time_ns)
{
	char text[OS_TIME_TEXT_BYTES];

	os_time_text(in->head.trigger_wall_ns + (time_ns - in->head.trigger_ns), text);
	buf_puts(out, text);
}

void row_put_payload(struct buf *out, const struct incident *in, const struct incident_event *e)
{
	struct json j = {.out = out};

	if (e->nfields || !(e->value > 0 || e->value < 0)) {
		event_json_fields(&j, in->fields + e->first_field, e->nfields, 0);
		return;
	}
	json_open(&j, '{');
	json_key_num(&j, "value", e->value);
	json_close(&j, '}');
}

/* ---- CSV ------------------------------------------------------------------------------------- */

void csv_end_cell(struct csv *c, char after)
{
	const char *text = buf_text(&c->cell);
	bool formula = c->excel && *text && strchr("=+-@", *text);

	if (c->cell.failed)
		c->line.failed = c->cell.failed;
	if (!formula && !strpbrk(text, ",\"\r\n")) {
		buf_puts(&c->line, text);
	} else {
		buf_puts(&c->line, formula ? "\"'" : "\"");
		for (; *text; text++) {
			if (*text == '"')
				buf_putc(&c->line, '"');
			buf_putc(&c->line, *text);
		}
		buf_putc(&c->line, '"');
	}
	buf_putc(&c->line, after);
	buf_reset(&c->cell);
}

void csv_put_name(struct csv *c, const char *name)
{
	name_put(&c->cell, name);
	csv_end_cell(c, ',');
}

int csv_write(const struct incident *in, const struct export_options *opt, const char *titles,
	      bool counters, void (*put)(struct csv *c, const struct incident_event *e),
	      struct out *out, struct err *err)
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
