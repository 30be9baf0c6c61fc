/* PerfView's simple XML: each sample with its stack as lines of text; long, but easy to edit. */
#include "export/perfview.h"

/* A frame a line, leaf first, without a blank line, which would be an empty frame. */
static void put_sample(struct perfview *w, const struct incident_sample *s, uint32_t node)
{
	buf_puts(&w->text, "<Sample Time=\"");
	perfview_put_time(w, s);
	buf_puts(&w->text, "\" Metric=\"");
	perfview_put_metric(w, s);
	buf_puts(&w->text, "\">\n");
	for (; node != STACK_TREE_NONE; node = w->tree.nodes[node].caller) {
		export_tree_put(&w->text, &w->tree, w->tree.nodes[node].text);
		buf_putc(&w->text, '\n');
	}
	buf_puts(&w->text, "</Sample>\n");
}

static int perfview_simple_write(const struct incident *in, const struct export_options *opt,
				 struct out *out, struct err *err)
{
	static const struct perfview_form form = {
		.what = "the XML of a sample",
		.put_sample = put_sample,
	};

	return perfview_write(&form, in, NULL, opt, out, err);
}

const struct exporter perfview_simple_exporter = {
	.name = "perfview-simple",
	.summary = "PerfView's, to read and edit by hand",
	.write = perfview_simple_write,
};
