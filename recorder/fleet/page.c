/*
 * The report as a page: a lane for each host, with what it used of the metric over time, and a mark
 * for each incident; below it the report as text. It needs no script, and nothing from elsewhere.
 */
#include "fleet/answer_private.h"

#include "base/os.h"
#include "base/out.h"
#include "export/markup.h"

#include <math.h>
#include <string.h>

#define BUCKETS 240.0
#define MARKS_MAX 20000u
#define MINUTE_NS (60.0 * NS_PER_SEC)

struct lanes {
	struct grid hosts, parts, marks;     /* fleet_hosts(), fleet_lanes(), fleet_incidents() */
	double from_ns, until_ns, most;
	uint32_t bucket_minutes;
};

static const char style[] =
"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Fleet</title><style>\n"
":root { color-scheme: light dark; font: 14px sans-serif }\n"
".lane { display: flex; align-items: center; border-top: 1px solid #8884 }\n"
".lane b { width: 14em; overflow: hidden; text-overflow: ellipsis; font-weight: normal }\n"
".lane svg { flex: 1; height: 26px } .lane i { width: 8em; text-align: right }\n"
"rect { fill: #47a } .mark { fill: #d33 } pre { overflow-x: auto }\n"
"</style></head><body>\n";

static int ask_lanes(struct fleet *f, const struct grid *totals, struct lanes *l, struct err *err)
{
	struct fleet_query q = fleet_question(f);
	struct fleet_filter incidents = f->filter;
	uint32_t i;
	int rc;

	l->from_ns = number_at(totals, 0, 5);
	l->until_ns = fmax(number_at(totals, 0, 6), l->from_ns + MINUTE_NS);
	l->bucket_minutes = (uint32_t)ceil((l->until_ns - l->from_ns) / MINUTE_NS / BUCKETS);
	fleet_hosts(&q);
	rc = fleet_ask(f, &q, 3, &l->hosts, err);
	if (!rc) {
		fleet_lanes(&q, l->bucket_minutes);
		rc = fleet_ask(f, &q, 3, &l->parts, err);
	}
	if (!rc) {
		incidents.history = false;
		q.filter = &incidents;
		q.rows = MARKS_MAX;
		fleet_incidents(&q);
		rc = fleet_ask(f, &q, 10, &l->marks, err);
	}
	for (i = 0; !rc && i < grid_rows(&l->parts); i++)
		l->most = fmax(l->most, number_at(&l->parts, i, 2));
	return rc;
}

static void put_text(struct buf *out, const char *text)
{
	markup_put(out, text, strlen(text));
}

/* Where a moment stands, of 1000. */
static double place(const struct lanes *l, double at_ns)
{
	return 1000 * fmin(fmax((at_ns - l->from_ns) / (l->until_ns - l->from_ns), 0), 1);
}

static void put_weight(const struct fleet *f, double weight, struct buf *out)
{
	switch (stream_metrics[f->stream].unit) {
	case UNIT_NS:
		buf_printf(out, "%.1f s", weight / 1e9);
		break;
	case UNIT_BYTES:
		buf_printf(out, "%.0f KB", weight / 1024);
		break;
	default:
		buf_printf(out, "%.0f", weight);
	}
}

static void put_bars(const struct fleet *f, const struct lanes *l, const char *host,
		     struct buf *out)
{
	const double bucket_ns = l->bucket_minutes * MINUTE_NS;
	char time[OS_TIME_TEXT_BYTES];
	uint32_t i;

	for (i = 0; i < grid_rows(&l->parts); i++) {
		double at_ns = number_at(&l->parts, i, 1) * bucket_ns;
		double height = 24 * number_at(&l->parts, i, 2) / fmax(l->most, 1);
		double x = place(l, at_ns);

		if (strcmp(text_at(&l->parts, i, 0), host) != 0)
			continue;
		os_time_text((uint64_t)at_ns, time);
		buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
			   "<title>%.10s %.5s: ", x, 26 - height, place(l, at_ns + bucket_ns) - x,
			   height, time, time + 11);
		put_weight(f, number_at(&l->parts, i, 2), out);
		buf_puts(out, "</title></rect>\n");
	}
}

static void put_marks(const struct lanes *l, const char *host, struct buf *out)
{
	char time[OS_TIME_TEXT_BYTES];
	uint32_t i;

	for (i = 0; i < grid_rows(&l->marks); i++) {
		if (strcmp(text_at(&l->marks, i, 1), host) != 0)
			continue;
		os_time_text(count_at(&l->marks, i, 5), time);
		buf_printf(out, "<rect class=\"mark\" x=\"%.1f\" y=\"0\" width=\"2\" height=\"26\">"
			   "<title>%.10s %.8s %.8s: ", place(l, number_at(&l->marks, i, 5)), time,
			   time + 11, text_at(&l->marks, i, 0));
		put_text(out, text_at(&l->marks, i, *text_at(&l->marks, i, 3) ? 3 : 2));
		buf_puts(out, "; ");
		put_text(out, text_at(&l->marks, i, 4));
		buf_puts(out, "</title></rect>\n");
	}
}

static void put_lanes(struct fleet *f, const struct lanes *l, struct buf *out)
{
	char from[OS_TIME_TEXT_BYTES], until[OS_TIME_TEXT_BYTES];
	uint32_t i;

	os_time_text((uint64_t)l->from_ns, from);
	os_time_text((uint64_t)l->until_ns, until);
	buf_printf(out, "%s<h1>Fleet</h1><p>%.10s %.5s to %.10s %.5s UTC; a bar is %u min of %s, "
		   "the highest ", style, from, from + 11, until, until + 11, l->bucket_minutes,
		   stream_metrics[f->stream].name);
	put_weight(f, l->most, out);
	buf_puts(out, "; red: incidents");
	if (grid_rows(&l->marks) == MARKS_MAX)
		buf_printf(out, ", the newest %u", MARKS_MAX);
	buf_puts(out, "</p>\n");
	for (i = 0; i < grid_rows(&l->hosts); i++) {
		buf_puts(out, "<div class=\"lane\"><b>");
		put_text(out, text_at(&l->hosts, i, 0));
		buf_puts(out, "</b><svg viewBox=\"0 0 1000 26\" preserveAspectRatio=\"none\">\n");
		put_bars(f, l, text_at(&l->hosts, i, 0), out);
		put_marks(l, text_at(&l->hosts, i, 0), out);
		buf_puts(out, "</svg><i>");
		put_weight(f, number_at(&l->hosts, i, 2), out);
		buf_puts(out, "</i></div>\n");
	}
}

int fleet_put_page(struct fleet *f, const struct grid *totals, struct err *err)
{
	struct lanes l = {0};
	struct buf page = {0};
	struct out *out = NULL;
	int rc = ask_lanes(f, totals, &l, err);

	if (!rc) {
		put_lanes(f, &l, &page);
		buf_puts(&page, "<pre>");
		markup_put_text(&page, buf_text(&f->sheet.out), f->sheet.out.len);
		buf_puts(&page, "</pre></body></html>\n");
		rc = buf_check(&page, "a page", err);
	}
	if (!rc)
		rc = out_open(f->o->output, f->o->force, &out, err);
	if (!rc) {
		out_put(out, page.data, page.len);
		rc = out_close(out, err);
	}
	grid_free(&l.hosts);
	grid_free(&l.parts);
	grid_free(&l.marks);
	buf_free(&page);
	return rc;
}
