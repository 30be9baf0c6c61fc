/* Values of counters as CSV, one a line: exports-and-store.md, section 2.9. */
#include "export/names.h"
#include "export/rows.h"

#include "base/json.h"

#include <string.h>

static void put_name(struct buf *line, struct buf *cell, const char *name, size_t n, bool excel)
{
	struct buf part = {0};

	buf_put(&part, name, n);
	buf_reset(cell);
	name_put(cell, buf_text(&part));
	if (part.failed || cell->failed)
		line->failed = ERR_MEMORY;
	row_put_cell(line, buf_text(cell), excel);
	buf_putc(line, ',');
	buf_free(&part);
}

/* The unit that the counter's name states; most state none. */
static void put_value(struct buf *line, struct buf *cell, const struct incident *in,
		      const struct incident_event *e, bool excel)
{
	const char *instance;
	char number[40];
	size_t n;

	row_split_counter(e->name, &n, &instance);
	row_put_time(line, in, e->time_ns);
	buf_putc(line, ',');
	ms_put(line, (int64_t)(e->time_ns - in->head.t0_ns));
	buf_putc(line, ',');
	put_name(line, cell, e->name, n, excel);
	put_name(line, cell, instance, strlen(instance), excel);
	buf_puts(line, memchr(e->name, '%', n) ? "%," : ",");
	if (!(e->flags & EVENT_FLAG_ABSENT)) {
		num_text(e->value, number, sizeof(number));
		buf_puts(line, number);
	}
	buf_putc(line, '\n');
}

static int counters_csv_write(const struct incident *in, const struct export_options *opt,
			      struct out *out, struct err *err)
{
	struct buf line = {0}, cell = {0};
	uint32_t i;
	int rc = 0;

	out_puts(out, "time_utc,t_ms,counter,instance,unit,value\n");
	for (i = 0; i < in->nevents && !rc && !out_failed(out); i++) {
		if (in->events[i].kind != EVENT_COUNTER)
			continue;
		buf_reset(&line);
		put_value(&line, &cell, in, &in->events[i], opt->excel);
		rc = buf_check(&line, "a line of counters", err);
		out_put(out, buf_text(&line), line.len);
	}
	buf_free(&line);
	buf_free(&cell);
	return rc;
}

const struct exporter counters_csv_exporter = {
	.name = "counters-csv",
	.suffix = ".counters.csv",
	.summary = "a table of the counters' values",
	.usual = true,
	.write = counters_csv_write,
};
