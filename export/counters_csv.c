/* Values of counters as CSV, one a line. */
#include "export/names.h"
#include "export/rows.h"

#include "base/json.h"
#include "base/utf8.h"

#include <string.h>

/* "Process:Working Set:java" is counter "Process:Working Set", instance "java". */
static void put_value(struct csv *c, const struct incident_event *e)
{
	const char *first = strchr(e->name, ':'), *second = first ? strchr(first + 1, ':') : NULL;
	size_t n = second ? (size_t)(second - e->name) : strlen(e->name);
	char number[40];

	utf8_put_clean(&c->cell, e->name, n, INCIDENT_TEXT_MAX);
	csv_end_cell(c, ',');
	csv_put_name(c, second ? second + 1 : "");
	/* The unit that the counter's name states; most state none. */
	buf_puts(&c->line, memchr(e->name, '%', n) ? "%," : ",");
	if (!(e->flags & EVENT_FLAG_ABSENT)) {
		num_text(e->value, number, sizeof(number));
		buf_puts(&c->line, number);
	}
	buf_putc(&c->line, '\n');
}

static int counters_csv_write(const struct incident *in, const struct export_options *opt,
			      struct out *out, struct err *err)
{
	return csv_write(in, opt, "time_utc,t_ms,counter,instance,unit,value\n", true, put_value,
			 out, err);
}

const struct exporter counters_csv_exporter = {
	.name = "counters-csv",
	.suffix = ".counters.csv",
	.summary = "a table of the counters' values",
	.usual = true,
	.write = counters_csv_write,
};
