/*
 * HTML page of a diff: the call tree of both incidents, with two weights where the report has one.
 * The scripts are export/report/diff.js and those scripts of the report that it uses.
 *
 * The data has the shape of the report's (report_data.h), but its buckets are not stretches of
 * time: the first is the base, its weights multiplied by the factor, the second the test. It also
 * has:
 *
 *	"base":3, "test":7, "unit":"us of CPU time"
 */
#include "export/diff.h"
#include "export/html.h"
#include "export/markup.h"
#include "export/names.h"
#include "export/report_data.h"
#include "export/report_files.h"

#include "base/json.h"

#include <inttypes.h>

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

static void put_all(struct json *j, const struct diff *d, const struct diff_tree *t)
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
	json_key(j, "weights");
	json_open(j, '[');
	put_side(j, &t->tree, t->base, unit.per);
	put_side(j, &t->tree, t->test, unit.per);
	json_close(j, ']');
	json_close(j, '}');
}

static void put_head(const struct diff *d, struct buf *out)
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
	html_put_notes(out, &notes);
	buf_puts(out, "</dl>\n</header>\n");
	buf_free(&notes);
}

static int diff_html_write(const struct diff *d, const struct diff_options *opt, struct out *out,
			   struct err *err)
{
	static const char *const scripts[] = {
		report_data_js, report_table_js, report_flame_js, report_diff_js, NULL,
	};
	struct buf head = {0}, text = {0};
	struct json json = {.out = &text};
	struct diff_tree tree = {0};
	int rc = diff_tree_build(&tree, d, opt, &export_tree_plain, err);

	if (!rc) {
		put_all(&json, d, &tree);
		rc = buf_check(&text, "the page's data", err);
	}
	put_head(d, &head);
	if (!rc)
		rc = html_write_page(&head, report_diff_html, &text, scripts, out, err);
	diff_tree_free(&tree);
	buf_free(&head);
	buf_free(&text);
	return rc;
}

const struct diff_format diff_html_format = {.name = "html", .write = diff_html_write};
