/*
 * PerfView's compact XML of a diff: the samples of both incidents, those of the base with negative
 * weights, so that every sum in the viewer is test - base. Both triggers are at the same time.
 *
 * Metrics are ms, bytes or events with 3 decimals. The rest that rounding leaves goes to the side's
 * next sample: a sample may be off by 0.001, but sums are right to the last decimal.
 */
#include "export/diff.h"
#include "export/names.h"
#include "export/perfview.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdlib.h>

struct rounding {
	double sum;                          /* of all weights until now, in thousandths */
	int64_t printed;
};

static int64_t next_thousandths(struct rounding *r, double weight)
{
	int64_t before = r->printed;

	r->sum += weight;
	r->printed = (int64_t)(r->sum + 0.5);
	return r->printed - before;
}

/* 1.500 as 1.500, 2.000 as 2. */
static void put_thousandths(struct buf *line, int64_t v)
{
	if (v % 1000 == 0)
		buf_printf(line, "%" PRId64, v / 1000);
	else
		ms_put(line, v * 1000);
}

static void put_samples(const struct stack_tree *t, const struct diff *d, struct buf *line,
			struct out *out)
{
	bool is_time = d->stream == STREAM_CPU || d->stream == STREAM_OFF_CPU;
	double scale = is_time ? 1e-3 : 1e3;
	struct rounding base = {0}, test = {0};
	uint32_t i;

	out_printf(out, "<Samples Count=\"%" PRIu32 "\">\n", t->nsamples);
	for (i = 0; i < d->in.nsamples && !out_failed(out); i++) {
		double weight = (double)d->in.samples[i].weight * scale;

		buf_reset(line);
		buf_printf(line, "<Sample ID=\"%" PRIu32 "\"", i);
		perfview_put_time(line, &d->in, &d->in.samples[i]);
		buf_printf(line, " StackID=\"%" PRIu32 "\" Metric=\"", t->of_sample[i]);
		if (i < d->nbase)
			put_thousandths(line, -next_thousandths(&base, weight * d->factor));
		else
			put_thousandths(line, next_thousandths(&test, weight));
		buf_puts(line, "\" />\n");
		out_put(out, buf_text(line), line->len);
	}
	out_puts(out, "</Samples>\n");
}

static int diff_perfview_write(const struct diff *d, const struct diff_options *opt,
			       struct out *out, struct err *err)
{
	struct export_options eo = {.stream = d->stream, .addresses = opt->addresses};
	struct stack_tree tree = {0};
	struct buf line = {0}, notes = {0};
	int rc = export_tree_build(&tree, &d->in, &eo, &perfview_style, err);

	if (!rc && !buf_reserve(&line, PERFVIEW_LINE_MAX))
		rc = buf_check(&line, "the XML", err);
	if (!rc) {
		diff_notes_put(&notes, d);
		perfview_put_head(out);
		perfview_put_tree(&tree, &line, out);
		put_samples(&tree, d, &line, out);
		rc = perfview_put_end_with(out, &notes, d->stream == STREAM_CPU ||
					   d->stream == STREAM_OFF_CPU, err);
	}
	buf_free(&line);
	buf_free(&notes);
	stack_tree_free(&tree);
	return rc;
}

const struct diff_format diff_perfview_format = {
	.name = "perfview-xml",
	.write = diff_perfview_write,
};
