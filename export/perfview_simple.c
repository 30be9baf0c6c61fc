/* PerfView's simple XML: each sample with its stack as lines of text; long, but easy to edit. */
#include "export/perfview.h"

#include <inttypes.h>

/* A frame a line, leaf first, without a blank line, which would be an empty frame. */
static void put_sample(const struct stack_tree *t, const struct incident *in, uint32_t sample,
		       uint64_t divisor, struct buf *text)
{
	uint32_t node;

	buf_puts(text, "<Sample");
	perfview_put_time(text, in, &in->samples[sample]);
	buf_puts(text, " Metric=\"");
	perfview_put_metric(text, in, &in->samples[sample], divisor);
	buf_puts(text, "\">\n");
	for (node = t->of_sample[sample]; node != STACK_TREE_NONE; node = t->nodes[node].caller) {
		buf_puts(text, stack_tree_text(t, t->nodes[node].text));
		buf_putc(text, '\n');
	}
	buf_puts(text, "</Sample>\n");
}

static int put_samples(const struct stack_tree *t, const struct incident *in,
		       const struct export_options *opt, struct out *out, struct err *err)
{
	uint64_t divisor = perfview_divisor(in, opt);
	struct buf text = {0};
	uint32_t i;
	int rc;

	out_printf(out, "<Samples Count=\"%" PRIu32 "\">\n", t->nsamples);
	for (i = 0; i < in->nsamples && !text.failed && !out_failed(out); i++) {
		if (t->of_sample[i] == STACK_TREE_NONE)
			continue;
		put_sample(t, in, i, divisor, &text);
		out_drain(out, &text, false);
	}
	out_drain(out, &text, true);
	out_puts(out, "</Samples>\n");
	rc = buf_check(&text, "the XML of a sample", err);
	buf_free(&text);
	return rc;
}

static int simple_write(const struct incident *in, const struct export_options *opt,
			struct out *out, struct err *err)
{
	struct stack_tree tree = {0};
	int rc;

	rc = export_tree_build(&tree, in, opt, &perfview_style, err);
	if (!rc) {
		perfview_put_head(out);
		rc = put_samples(&tree, in, opt, out, err);
	}
	if (!rc)
		rc = perfview_put_end(out, in, opt, err);
	stack_tree_free(&tree);
	return rc;
}

const struct exporter perfview_simple_exporter = {
	.name = "perfview-simple",
	.summary = "PerfView's, to read and edit by hand",
	.write = simple_write,
};
