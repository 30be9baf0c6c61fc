/* PerfView's compact XML: frames, stacks and samples as three numbered lists. */
#include "export/perfview.h"

#include "export/names.h"

#include <inttypes.h>

static void put_number(struct buf *line, const char *before, uint64_t v, const char *after)
{
	buf_puts(line, before);
	buf_put_uint(line, v);
	buf_puts(line, after);
}

/* Always start tag, text, end tag: the reader throws at <Frame />. */
static void put_frames(const struct stack_tree *t, struct buf *line, struct out *out)
{
	uint32_t i;

	out_printf(out, "<Frames Count=\"%" PRIu32 "\">\n", t->texts.n);
	for (i = 0; i < t->texts.n; i++) {
		buf_reset(line);
		put_number(line, "<Frame ID=\"", i, "\">");
		buf_put(line, stack_tree_text(t, i), t->texts.items[i].len);
		buf_puts(line, "</Frame>\n");
		out_put(out, buf_text(line), line->len);
	}
	out_puts(out, "</Frames>\n");
}

static void put_stacks(const struct stack_tree *t, struct buf *line, struct out *out)
{
	uint32_t i;

	out_printf(out, "<Stacks Count=\"%" PRIu32 "\">\n", t->nnodes);
	for (i = 0; i < t->nnodes; i++) {
		buf_reset(line);
		put_number(line, "<Stack ID=\"", i, "\" CallerID=\"");
		if (t->nodes[i].caller == STACK_TREE_NONE)
			buf_puts(line, "-1\"");
		else
			put_number(line, "", t->nodes[i].caller, "\"");
		put_number(line, " FrameID=\"", t->nodes[i].text, "\" />\n");
		out_put(out, buf_text(line), line->len);
	}
	out_puts(out, "</Stacks>\n");
}

void perfview_put_tree(const struct stack_tree *t, struct buf *line, struct out *out)
{
	put_frames(t, line, out);
	put_stacks(t, line, out);
}

static void put_samples(const struct stack_tree *t, const struct incident *in,
			const struct export_options *opt, struct buf *line, struct out *out)
{
	uint64_t divisor = perfview_divisor(in, opt);
	uint32_t i, id = 0;

	out_printf(out, "<Samples Count=\"%" PRIu32 "\">\n", t->nsamples);
	for (i = 0; i < in->nsamples && !out_failed(out); i++) {
		if (t->of_sample[i] == STACK_TREE_NONE)
			continue;
		buf_reset(line);
		put_number(line, "<Sample ID=\"", id++, "\"");
		perfview_put_time(line, in, &in->samples[i]);
		put_number(line, " StackID=\"", t->of_sample[i], "\"");
		if (export_weight(in, &in->samples[i]) != divisor) {
			buf_puts(line, " Metric=\"");
			perfview_put_metric(line, in, &in->samples[i], divisor);
			buf_putc(line, '"');
		}
		buf_puts(line, " />\n");
		out_put(out, buf_text(line), line->len);
	}
	out_puts(out, "</Samples>\n");
}

int perfview_xml_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err)
{
	struct stack_tree tree = {0};
	struct buf line = {0};
	int rc;

	rc = export_tree_build(&tree, in, opt, &perfview_style, err);
	/* With room for the longest line, no line can fail from here on. */
	if (!rc && !buf_reserve(&line, PERFVIEW_LINE_MAX))
		rc = buf_check(&line, "the XML", err);
	if (!rc) {
		perfview_put_head(out);
		perfview_put_tree(&tree, &line, out);
		put_samples(&tree, in, opt, &line, out);
		rc = perfview_put_end(out, in, opt, err);
	}
	buf_free(&line);
	stack_tree_free(&tree);
	return rc;
}

const struct exporter perfview_xml_exporter = {
	.name = "perfview-xml",
	.suffix = ".perfView.xml",
	.summary = "PerfView, with the trigger in Notes",
	.write = perfview_xml_write,
};
