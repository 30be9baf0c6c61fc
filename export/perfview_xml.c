/*
 * PerfView's compact XML: frames, stacks and samples as three numbered lists.
 *
 * In a diff, the base's samples have negative weights, so that every sum in the viewer is test -
 * base. Both triggers are at the same time. Metrics are ms, bytes or events with 3 decimals. The
 * rest that rounding leaves goes to the side's next sample: a sample may be off by 0.001, but sums
 * are right to the last decimal.
 */
#include "export/names.h"
#include "export/perfview.h"

#include <inttypes.h>

static void put_number(struct buf *text, const char *before, uint64_t v, const char *after)
{
	buf_puts(text, before);
	buf_put_uint(text, v);
	buf_puts(text, after);
}

/* Always start tag, text, end tag: the reader throws at <Frame />. */
static void put_frames(struct perfview *w, struct out *out)
{
	uint32_t i;

	out_printf(out, "<Frames Count=\"%" PRIu32 "\">\n", w->tree.texts.n);
	for (i = 0; i < w->tree.texts.n; i++) {
		put_number(&w->text, "<Frame ID=\"", i, "\">");
		export_tree_put(&w->text, &w->tree, i);
		buf_puts(&w->text, "</Frame>\n");
		out_drain(out, &w->text, false);
	}
	out_drain(out, &w->text, true);
	out_puts(out, "</Frames>\n");
}

static void put_stacks(struct perfview *w, struct out *out)
{
	uint32_t i;

	out_printf(out, "<Stacks Count=\"%" PRIu32 "\">\n", w->tree.nnodes);
	for (i = 0; i < w->tree.nnodes; i++) {
		const struct stack_tree_node *node = &w->tree.nodes[i];

		put_number(&w->text, "<Stack ID=\"", i, "\" CallerID=\"");
		if (node->caller == STACK_TREE_NONE)
			buf_puts(&w->text, "-1\"");
		else
			put_number(&w->text, "", node->caller, "\"");
		put_number(&w->text, " FrameID=\"", node->text, "\" />\n");
		out_drain(out, &w->text, false);
	}
	out_drain(out, &w->text, true);
	out_puts(out, "</Stacks>\n");
}

static void put_lists(struct perfview *w, struct out *out)
{
	put_frames(w, out);
	put_stacks(w, out);
}

static void put_head(struct perfview *w, const struct incident_sample *s, uint32_t node)
{
	put_number(&w->text, "<Sample ID=\"", w->nput, "\" Time=\"");
	perfview_put_time(w, s);
	put_number(&w->text, "\" StackID=\"", node, "\"");
}

static void put_sample(struct perfview *w, const struct incident_sample *s, uint32_t node)
{
	put_head(w, s, node);
	if (export_weight(w->in, s) != w->divisor) {
		buf_puts(&w->text, " Metric=\"");
		perfview_put_metric(w, s);
		buf_putc(&w->text, '"');
	}
	buf_puts(&w->text, " />\n");
}

static const struct perfview_form form = {
	.what = "the XML",
	.put_lists = put_lists,
	.put_sample = put_sample,
};

int perfview_xml_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err)
{
	return perfview_write(&form, in, NULL, opt, out, err);
}

/* ---- diff ------------------------------------------------------------------------------------ */

static int64_t next_thousandths(struct rounding *r, double weight)
{
	int64_t before = r->printed;

	r->sum += weight;
	r->printed = (int64_t)(r->sum + 0.5);
	return r->printed - before;
}

/* 1.500 as 1.500, 2.000 as 2. */
static void put_thousandths(struct buf *text, int64_t v)
{
	if (v % 1000 == 0)
		buf_printf(text, "%" PRId64, v / 1000);
	else
		ms_put(text, v * 1000);
}

static void put_diff_sample(struct perfview *w, const struct incident_sample *s, uint32_t node)
{
	bool is_time = s->stream == STREAM_CPU || s->stream == STREAM_OFF_CPU;
	double weight = (double)s->weight * (is_time ? 1e-3 : 1e3);

	put_head(w, s, node);
	buf_puts(&w->text, " Metric=\"");
	if (w->nput < w->diff->nbase)
		put_thousandths(&w->text, -next_thousandths(&w->base, weight * w->diff->factor));
	else
		put_thousandths(&w->text, next_thousandths(&w->test, weight));
	buf_puts(&w->text, "\" />\n");
}

static int diff_perfview_write(const struct diff *d, const struct diff_options *opt,
			       struct out *out, struct err *err)
{
	static const struct perfview_form diff_form = {
		.what = "the XML",
		.put_lists = put_lists,
		.put_sample = put_diff_sample,
	};
	struct export_options eo = {.stream = d->stream, .addresses = opt->addresses};

	return perfview_write(&diff_form, &d->in, d, &eo, out, err);
}

const struct diff_format diff_perfview_format = {
	.name = "perfview-xml",
	.write = diff_perfview_write,
};

const struct exporter perfview_xml_exporter = {
	.name = "perfview-xml",
	.suffix = ".perfView.xml",
	.summary = "PerfView, with the trigger in Notes",
	.write = perfview_xml_write,
};
