/*
 * HTML report: one file that needs no network and no server. The header is plain HTML; the scripts
 * of export/report/ draw the rest from packed data (report_data.h): JSON, zlib, base64.
 *
 * The page of a diff shows the call tree of both incidents, with two weights where the report has
 * one. Its data has the shape of the report's, but its buckets are not stretches of time: the first
 * is the base, its weights multiplied by the factor, the second the test. It also has:
 *
 *	"base":3, "test":7, "unit":"us of CPU time"
 */
#include "export/diff.h"
#include "export/event_list.h"
#include "export/markup.h"
#include "export/names.h"
#include "export/packer.h"
#include "export/report_data.h"
#include "export/report_files.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- header ---------------------------------------------------------------------------------- */

static void put_row(struct buf *out, const char *label, size_t label_n, const char *text, size_t n)
{
	buf_puts(out, "<dt>");
	markup_put(out, label, label_n);
	buf_puts(out, "</dt><dd>");
	markup_put(out, text, n);
	buf_puts(out, "</dd>\n");
}

static void put_value(struct buf *out, const struct incident_head *h)
{
	char value[40], limit[40];
	struct buf text = {0};

	if (h->value != h->value)            /* NaN: there is none; mingw's isnan() warns */
		return;
	num_text(h->value, value, sizeof(value));
	buf_printf(&text, "%s", value);
	if (h->limit == h->limit) {
		num_text(h->limit, limit, sizeof(limit));
		buf_printf(&text, ", the limit was %s", limit);
	}
	put_row(out, "Value", 5, buf_text(&text), text.len);
	out->failed = out->failed ? out->failed : text.failed;
	buf_free(&text);
}

/* Lines "Label: text" as rows of a <dl>. The reason is left out: it is the page's heading. */
static void put_notes(struct buf *out, const struct buf *notes)
{
	const char *at, *end, *colon;

	for (at = buf_text(notes); *at; at = *end ? end + 1 : end) {
		end = at + strcspn(at, "\n");
		colon = memchr(at, ':', (size_t)(end - at));
		if (colon && strncmp(at, "Reason:", 7) != 0)
			put_row(out, at, (size_t)(colon - at), colon + 1 + (colon[1] == ' '),
				(size_t)(end - colon) - 1 - (colon[1] == ' '));
	}
	out->failed = out->failed ? out->failed : notes->failed;
}

static void put_facts(struct buf *out, const struct incident *in)
{
	struct buf notes = {0};

	notes_put(&notes, in);
	buf_puts(out, "<dl>\n");
	put_value(out, &in->head);
	put_notes(out, &notes);
	buf_puts(out, "</dl>\n");
	buf_free(&notes);
}

static void put_clean(struct buf *out, const char *text)
{
	struct buf clean = {0};

	name_put(&clean, text && *text ? text : "?");
	markup_put(out, buf_text(&clean), clean.len);
	out->failed = out->failed ? out->failed : clean.failed;
	buf_free(&clean);
}

/* A paragraph for each line. */
static void put_changed(const char *lines, struct buf *out)
{
	char line[500];
	size_t n;

	for (; lines && *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) ? n : sizeof(line) - 1),
			 lines);
		buf_puts(out, "<p class=\"changed\">");
		put_clean(out, line);
		buf_puts(out, "</p>\n");
	}
}

static void put_head(const struct incident *in, const struct export_options *opt, struct buf *out)
{
	char title[INCIDENT_TITLE_BYTES];
	const char *what = in->nparts ? "Several incidents" : incident_title(&in->head, title);

	buf_printf(out, "<title>%s: ", what);
	put_clean(out, in->head.reason);
	buf_puts(out, "</title>\n<style>\n");
	buf_puts(out, report_report_css);
	buf_printf(out, "</style>\n</head>\n<body>\n<header>\n<p class=\"kind\">%s on ", what);
	put_clean(out, in->head.host);
	buf_puts(out, "</p>\n");
	put_changed(opt->changed, out);
	buf_puts(out, "<h1>");
	put_clean(out, in->head.reason);
	buf_puts(out, "</h1>\n");
	put_facts(out, in);
	buf_puts(out, "</header>\n");
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Data for unpack() of data.js. */
static int put_data(const char *id, const struct buf *json, struct out *out, struct err *err)
{
	struct packer *p;
	int rc = packer_open(out, id, &p, err);

	if (rc)
		return rc;
	packer_put(p, buf_text(json), json->len);
	packer_close(p);
	return 0;
}

/* The streams that opt does not name, each as the part of the data that is its own. */
static int put_other_streams(const struct incident *in, const struct export_options *opt,
			     struct out *out, struct err *err)
{
	struct export_options other = *opt;
	uint64_t n[STREAMS_MAX];
	struct buf json = {0};
	char id[40];
	unsigned i;
	int rc = 0;

	incident_count_streams(in, n);
	for (i = 0; i < STREAMS_MAX && !rc; i++) {
		other.stream = (enum stream)i;
		if (other.stream == opt->stream || !n[i] || stream_is_mark(i))
			continue;
		buf_reset(&json);
		snprintf(id, sizeof(id), "data-%s", stream_text(i));
		rc = report_data(in, &other, false, &json, err);
		if (!rc)
			rc = put_data(id, &json, out, err);
	}
	buf_free(&json);
	return rc;
}

/* Where the data has not all of them. */
static int put_all_events(const struct incident *in, const struct export_options *opt,
			  struct out *out, struct err *err)
{
	uint32_t skip, n;
	struct packer *p = NULL;
	int rc;

	if (!report_data_left_out(in, &skip, &n))
		return 0;
	rc = packer_open(out, "all-events", &p, err);
	if (!rc)
		rc = event_list_pack(in, opt, skip, n, p, err);
	packer_close(p);
	return rc ? rc : event_list_pack_lines(in, skip, n, out, err);
}

/* ---- page ------------------------------------------------------------------------------------ */

/* The policy lets nothing be loaded, not even by a script that got in through a name. */
static const char begin[] =
	"<!doctype html>\n"
	"<html lang=\"en\">\n"
	"<head>\n"
	"<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n";

/*
 * Write a page.
 *
 * head     from its title to the end of its header
 * body     what follows the header
 * scripts  ending in NULL
 * in       of a report: whose other streams and events follow; NULL of a diff
 */
static int write_page(const struct buf *head, const char *body, const struct buf *json,
		      const char *const *scripts, const struct incident *in,
		      const struct export_options *opt, struct out *out, struct err *err)
{
	int rc;

	if (head->failed)
		return err_memory(err, "while writing the page");
	out_puts(out, begin);
	out_put(out, buf_text(head), head->len);
	out_puts(out, body);
	rc = put_data("data", json, out, err);
	if (!rc && in)
		rc = put_other_streams(in, opt, out, err);
	if (!rc && in)
		rc = put_all_events(in, opt, out, err);
	out_puts(out, "<script type=\"module\">\n");
	for (; *scripts; scripts++)
		out_puts(out, *scripts);
	out_puts(out, "</script>\n</body>\n</html>\n");
	return rc;
}

static int html_write(const struct incident *in, const struct export_options *opt, struct out *out,
		      struct err *err)
{
	static const char *const scripts[] = {
		report_data_js, report_table_js, report_flame_js, report_timeline_js,
		report_events_js, report_report_js, NULL,
	};
	struct buf head = {0}, json = {0};
	int rc = report_data(in, opt, true, &json, err);

	put_head(in, opt, &head);
	if (!rc)
		rc = write_page(&head, report_report_html, &json, scripts, in, opt, out, err);
	buf_free(&head);
	buf_free(&json);
	return rc;
}

/* ---- diff ------------------------------------------------------------------------------------ */

/* How many nodes weigh something, then a pair for each. */
static void put_side(struct json *j, const struct stack_tree *t, const double *weights, double per)
{
	uint32_t i, n = 0, last = 0;

	for (i = 0; i < t->nnodes; i++)
		n += (uint64_t)(weights[i] / per + 0.5) != 0;
	json_uint(j, n);
	for (i = 0; i < t->nnodes; i++) {
		uint64_t weight = (uint64_t)(weights[i] / per + 0.5);

		if (!weight)
			continue;
		json_uint(j, i - last);
		json_uint(j, weight);
		last = i;
	}
}

static void put_diff_data(struct json *j, const struct diff *d, const struct diff_tree *t)
{
	struct diff_unit unit = diff_unit(d);

	json_open(j, '{');
	json_key_int(j, "base", d->base.head->id);
	json_key_int(j, "test", d->test.head->id);
	json_key_str(j, "unit", unit.text);
	json_key_int(j, "from_ms", 0);
	json_key_int(j, "to_ms", 2);
	json_key_int(j, "buckets", 2);
	report_data_put_texts(j, &t->tree, NULL);
	report_data_put_nodes(j, t->tree.nodes, t->tree.nnodes);
	json_key_open(j, "weights", '[');
	put_side(j, &t->tree, t->base, unit.per);
	put_side(j, &t->tree, t->test, unit.per);
	json_close(j, ']');
	json_close(j, '}');
}

static void put_diff_head(const struct diff *d, struct buf *out)
{
	struct buf notes = {0};

	diff_notes_put(&notes, d);
	buf_printf(out, "<title>Incident %" PRId64 " against incident %" PRId64 "</title>\n"
		   "<style>\n", d->test.head->id, d->base.head->id);
	buf_puts(out, report_report_css);
	buf_printf(out, "</style>\n</head>\n<body>\n<header>\n"
		   "<p class=\"kind\">Where two recordings differ</p>\n"
		   "<h1>Incident %" PRId64 " against incident %" PRId64 "</h1>\n<dl>\n",
		   d->test.head->id, d->base.head->id);
	put_notes(out, &notes);
	buf_puts(out, "</dl>\n</header>\n");
	buf_free(&notes);
}

static int diff_html_write(const struct diff *d, const struct export_options *opt, struct out *out,
			   struct err *err)
{
	static const char *const scripts[] = {
		report_data_js, report_table_js, report_flame_js, report_diff_js, NULL,
	};
	struct buf head = {0}, text = {0};
	struct json json = {.out = &text, .for_people = true};
	struct diff_tree tree = {0};
	int rc = diff_tree_build(&tree, d, opt, &export_tree_plain, err);

	if (!rc) {
		put_diff_data(&json, d, &tree);
		rc = buf_check(&text, "the page's data", err);
	}
	put_diff_head(d, &head);
	if (!rc)
		rc = write_page(&head, report_diff_html, &text, scripts, NULL, opt, out, err);
	diff_tree_free(&tree);
	buf_free(&head);
	buf_free(&text);
	return rc;
}

const struct exporter html_exporter = {
	.name = "html",
	.suffix = ".html",
	.summary = "report for a browser, in one file",
	.usual = true,
	.sets = true,
	.write = html_write,
	.write_diff = diff_html_write,
};
