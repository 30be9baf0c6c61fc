/* PerfView's JSON. StackSource has no array but Samples: items of any array become samples. */
#include "export/names.h"
#include "export/perfview.h"

static void put_sample(const struct stack_tree *t, const struct incident *in, uint32_t sample,
		       uint64_t divisor, struct buf *text)
{
	const struct incident_sample *s = &in->samples[sample];
	uint32_t node;

	buf_puts(text, "{\"Time\":");
	ms_put(text, (int64_t)(s->time_ns - in->head.t0_ns));
	buf_puts(text, ",\"Metric\":");
	perfview_put_metric(text, in, s, divisor);
	buf_puts(text, ",\"Stack\":[");
	for (node = t->of_sample[sample]; node != STACK_TREE_NONE; node = t->nodes[node].caller) {
		if (node != t->of_sample[sample])
			buf_putc(text, ',');
		buf_puts(text, stack_tree_text(t, t->nodes[node].text));
	}
	buf_puts(text, "]}");
}

static int perfview_json_write(const struct incident *in, const struct export_options *opt,
			       struct out *out, struct err *err)
{
	struct stack_tree_style style = perfview_style;
	uint64_t divisor = perfview_divisor(in, opt);
	struct stack_tree tree = {0};
	struct buf text = {0};
	bool first = true;
	uint32_t i;
	int rc;

	style.escape = export_tree_quote;
	rc = export_tree_build(&tree, in, opt, &style, err);
	out_puts(out, "{\"StackSource\":{\"Samples\":[\n");
	for (i = 0; i < in->nsamples && !rc && !out_failed(out); i++) {
		if (tree.of_sample[i] == STACK_TREE_NONE)
			continue;
		buf_puts(&text, first ? "" : ",\n");
		first = false;
		put_sample(&tree, in, i, divisor, &text);
		rc = buf_check(&text, "the JSON of a sample", err);
		out_drain(out, &text, false);
	}
	out_drain(out, &text, true);
	out_puts(out, "\n]}}\n");
	stack_tree_free(&tree);
	buf_free(&text);
	return rc;
}

const struct exporter perfview_json_exporter = {
	.name = "perfview-json",
	.suffix = ".perfView.json",
	.summary = "PerfView's JSON, for up to 50,000 samples",
	.write = perfview_json_write,
};
