/* PerfView's JSON: each sample with the texts of its stack. */
#include "export/perfview.h"

static void put_sample(struct perfview *w, const struct incident_sample *s, uint32_t node)
{
	const char *before = ",\"Stack\":[";

	buf_puts(&w->text, w->nput ? ",\n{\"Time\":" : "{\"Time\":");
	perfview_put_time(w, s);
	buf_puts(&w->text, ",\"Metric\":");
	perfview_put_metric(w, s);
	for (; node != STACK_TREE_NONE; node = w->tree.nodes[node].caller) {
		buf_puts(&w->text, before);
		export_tree_put(&w->text, &w->tree, w->tree.nodes[node].text);
		before = ",";
	}
	buf_puts(&w->text, "]}");
}

static int perfview_json_write(const struct incident *in, const struct export_options *opt,
			       struct out *out, struct err *err)
{
	static const struct perfview_form form = {
		.what = "the JSON of a sample",
		.json = true,
		.put_sample = put_sample,
	};

	return perfview_write(&form, in, NULL, opt, out, err);
}

const struct exporter perfview_json_exporter = {
	.name = "perfview-json",
	.suffix = ".perfView.json",
	.summary = "PerfView's JSON, for up to 50,000 samples",
	.write = perfview_json_write,
};
