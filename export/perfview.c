/*
 * The PerfView formats: compact XML (frames, stacks and samples as three numbered lists), XML and
 * JSON with the stack in each sample. The viewer reads XML element by element, so their order
 * matters: frames, then stacks, then the samples that refer to them, then its settings.
 *
 * In a diff, the base's samples have negative weights, so that every sum in the viewer is test -
 * base. Both triggers are at the same time. Metrics are ms, bytes or events with 3 decimals. The
 * rest that rounding leaves goes to the side's next sample: a sample may be off by 0.001, but sums
 * are right to the last decimal.
 */
#include "export/perfview.h"

#include "export/diff.h"
#include "export/markup.h"
#include "export/names.h"

#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* A file that is being written. */
struct perfview {
	const struct incident *in;
	const struct diff *diff;             /* NULL = one incident */
	struct stack_tree tree;
	uint64_t divisor;                    /* of weights */
	struct rounding {
		double sum;                  /* of all weights until now, in thousandths */
		int64_t printed;
	} base, test;                        /* of a diff */
	uint32_t nput;                       /* samples */
	struct buf text;                     /* on its way to the file */
};

/* What makes one format different from the others. */
struct perfview_form {
	const char *what;                    /* for errors: "the XML" */
	bool json;
	bool lists;                          /* of frames and stacks, before the samples */
	/* Append a sample, which ends in a node, to w->text. */
	void (*put_sample)(struct perfview *w, const struct incident_sample *s, uint32_t node);
};

/* ---- names ----------------------------------------------------------------------------------- */

static void put_process(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	buf_puts(out, "Process ");
	export_tree_plain.process(in, ctx, thread, out);
}

/* The viewer drops samples whose second frame does not begin with "Thread (". */
static void put_thread(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	const struct export_options *opt = ctx;
	struct who who;

	who_of(in, thread, &who);
	if (opt->ids)
		buf_printf(out, "Thread (%" PRIu32 ") ", who.tid);
	else
		buf_puts(out, "Thread (");
	name_put(out, who.thread);
	if (!opt->ids)
		buf_putc(out, ')');
}

static bool ends_in(const char *name, size_t n, const char *suffix)
{
	size_t ns = strlen(suffix);

	return n > ns && text_same_fold(name + n - ns, suffix);
}

/* The length of a module's name without .dll, .exe, .sys, .so or .so.6; never 0. */
static size_t stem_bytes(const char *module)
{
	size_t n = strlen(module);
	const char *so;

	if (ends_in(module, n, ".dll") || ends_in(module, n, ".exe") || ends_in(module, n, ".sys"))
		return n - 4;
	for (so = strstr(module, ".so"); so; so = strstr(so + 1, ".so")) {
		if (so > module && (so[3] == '\0' || so[3] == '.'))
			return (size_t)(so - module);
	}
	return n;
}

static void put_frame(const struct incident *in, const void *ctx, uint32_t frame,
		      struct buf *out)
{
	const struct export_options *opt = ctx;
	const char *module = incident_frame_module(in, frame);

	incident_frame_text_as(in, frame, module, stem_bytes(module), opt->addresses, out);
}

static const struct stack_tree_style perfview_style = {
	.process = put_process,
	.thread = put_thread,
	.frame = put_frame,
	.escape = markup_put_text,
	.marks = true,
};

/* ---- what precedes the samples --------------------------------------------------------------- */

#define LINE_MAX_BYTES 256u                  /* of one without a frame's text */

/* Inline, so that the lengths of texts are constants: there are millions of lines. */
static inline __attribute__((always_inline)) char *write_text(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n);
	return to + n;
}

static inline __attribute__((always_inline)) char *write_number(char *to, const char *before,
								 uint64_t v, const char *after)
{
	return write_text(uint_write(write_text(to, before), v), after);
}

/* What was written from `from` on is part of the text. */
static void end_line(struct buf *text, const char *from, const char *to)
{
	buf_advance(text, (size_t)(to - from));
}

/* Always start tag, text, end tag: the reader throws at <Frame />. */
static void put_frame_list(struct perfview *w, struct out *out)
{
	uint32_t i;

	out_printf(out, "<Frames Count=\"%" PRIu32 "\">\n", w->tree.texts.n);
	for (i = 0; i < w->tree.texts.n; i++) {
		buf_puts(&w->text, "<Frame ID=\"");
		buf_put_uint(&w->text, i);
		buf_puts(&w->text, "\">");
		export_tree_put(&w->text, &w->tree, i);
		buf_puts(&w->text, "</Frame>\n");
		out_drain(out, &w->text, false);
	}
	out_drain(out, &w->text, true);
	out_puts(out, "</Frames>\n");
}

static void put_stack_list(struct perfview *w, struct out *out)
{
	uint32_t i;

	out_printf(out, "<Stacks Count=\"%" PRIu32 "\">\n", w->tree.nnodes);
	for (i = 0; i < w->tree.nnodes; i++) {
		const struct stack_tree_node *node = &w->tree.nodes[i];
		char *line = buf_reserve(&w->text, LINE_MAX_BYTES), *to = line;

		if (!line)
			break;
		to = write_number(to, "<Stack ID=\"", i, "\" CallerID=\"");
		to = node->caller == STACK_TREE_NONE ? write_text(to, "-1")
						     : uint_write(to, node->caller);
		to = write_number(to, "\" FrameID=\"", node->text, "\" />\n");
		end_line(&w->text, line, to);
		out_drain(out, &w->text, false);
	}
	out_drain(out, &w->text, true);
	out_puts(out, "</Stacks>\n");
}

/* ---- what follows the samples ---------------------------------------------------------------- */

/* The settings of a new window of the viewer, except that module entries are grouped. */
static const char filters[] =
	"<FilterGuiState>\n"
	"<Start><Value></Value></Start>\n"
	"<End><Value></Value></End>\n"
	"<Scenarios><Value></Value></Scenarios>\n"
	"<GroupRegEx>\n"
	"<Value>[group module entries]  {%}!=&gt;module $1</Value>\n"
	"<History>\n"
	"<string>[group module entries]  {%}!=&gt;module $1</string>\n"
	"<string>[group modules]           {%}!-&gt;module $1</string>\n"
	"<string>[no grouping]</string>\n"
	"</History>\n"
	"</GroupRegEx>\n"
	"<FoldPercent><Value>1</Value></FoldPercent>\n"
	"<FoldRegEx><Value></Value></FoldRegEx>\n"
	"<IncludeRegEx><Value></Value></IncludeRegEx>\n"
	"<ExcludeRegEx><Value></Value></ExcludeRegEx>\n"
	"<TypePriority><Value></Value></TypePriority>\n"
	"</FilterGuiState>\n";

static const char columns[] =
	"<Log></Log>\n"
	"<Columns>\n"
	"<string>NameColumn</string>\n"
	"<string>ExcPercentColumn</string>\n"
	"<string>ExcColumn</string>\n"
	"<string>ExcCountColumn</string>\n"
	"<string>IncPercentColumn</string>\n"
	"<string>IncColumn</string>\n"
	"<string>IncCountColumn</string>\n"
	"<string>FoldColumn</string>\n"
	"<string>FoldCountColumn</string>\n"
	"<string>WhenColumn</string>\n"
	"<string>FirstColumn</string>\n"
	"<string>LastColumn</string>\n"
	"</Columns>\n"
	"<NotesPaneHidden>False</NotesPaneHidden>\n";

/*
 * TimeMetric takes the metric for milliseconds. Ours is milliseconds when weights differ; otherwise
 * it counts samples, which is the same at 1 kHz only.
 */
static bool is_time(const struct perfview *w, enum stream stream)
{
	if (stream != STREAM_CPU)
		return stream_is_time(stream);
	return w->diff || w->in->several_periods ||
	       w->in->head.period_ns[STREAM_CPU] == NS_PER_MS;
}

/* </StackSource>, the viewer's settings with our notes in them, and the end of the file. */
static int put_end(struct perfview *w, enum stream stream, struct out *out, struct err *err)
{
	struct buf notes = {0}, escaped = {0};
	int rc;

	if (w->diff)
		diff_notes_put(&notes, w->diff);
	else
		notes_put(&notes, w->in);
	markup_put_text(&escaped, buf_text(&notes), notes.len);
	rc = buf_check(&notes, "the notes", err);
	if (!rc)
		rc = buf_check(&escaped, "the notes", err);
	out_puts(out, "</Samples>\n</StackSource>\n<StackWindowGuiState>\n");
	out_puts(out, filters);
	out_puts(out, "<Notes>");
	out_puts(out, buf_text(&escaped));
	out_puts(out, "</Notes>\n");
	out_puts(out, columns);
	out_printf(out, "<ScalingPolicy>%s</ScalingPolicy>\n",
		   is_time(w, stream) ? "TimeMetric" : "ScaleToData");
	out_puts(out, "<TabSelected>ByNameTab</TabSelected>\n<FocusName></FocusName>\n"
		      "</StackWindowGuiState>\n</StackWindow>\n");
	buf_free(&notes);
	buf_free(&escaped);
	return rc;
}

/* ---- samples --------------------------------------------------------------------------------- */

/*
 * Write a sample's time in ms from the start of the window: "12.345". PerfView's thread time has
 * the moment when a wait begins, and its When column goes on from there.
 */
static char *write_time(const struct perfview *w, char *to, const struct incident_sample *s)
{
	uint64_t ns = s->time_ns - w->in->head.t0_ns;

	if (s->stream == STREAM_OFF_CPU)
		ns = ns > s->weight ? ns - s->weight : 0;
	return ms_write(to, (int64_t)ns);
}

#define FLOAT_EXACT (1u << 24)               /* 32-bit floats hold every integer up to it */

/*
 * What to divide weights by, so that the reader's 32-bit floats hold them: times are in ms, bytes
 * in KB when some sample is over 2^24, everything else is not divided. The same for a whole file.
 */
static uint64_t divisor_of(const struct incident *in, const struct export_options *opt)
{
	uint32_t i;

	if (opt->stream == STREAM_CPU)
		return in->several_periods ? 1000 : 1;  /* weights are in us */
	if (stream_is_time(opt->stream))
		return NS_PER_MS;
	for (i = 0; stream_is_bytes(opt->stream) && i < in->nsamples; i++) {
		if (export_takes(opt, &in->samples[i]) && in->samples[i].weight > FLOAT_EXACT)
			return 1024;
	}
	return 1;
}

/* Write a sample's weight, divided: an integer if it is one, else with 3 decimals. */
static char *write_metric(const struct perfview *w, char *to, const struct incident_sample *s)
{
	uint64_t weight = export_weight(w->in, s);
	uint64_t whole = weight / w->divisor, rest = weight % w->divisor;

	/* In thousandths; a divisor is far below UINT64_MAX / 1000. */
	if (!rest)
		return uint_write(to, whole);
	return ms_write(to, (int64_t)((whole * 1000 + rest * 1000 / w->divisor) * 1000));
}

static int put_samples(struct perfview *w, const struct perfview_form *form, struct out *out,
		       struct err *err)
{
	const struct stack_tree *t = &w->tree;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < w->in->nsamples && !rc && !out_failed(out); i++) {
		if (t->of_sample[i] == STACK_TREE_NONE)
			continue;
		form->put_sample(w, &w->in->samples[i], t->of_sample[i]);
		w->nput++;
		rc = buf_check(&w->text, form->what, err);
		out_drain(out, &w->text, false);
	}
	out_drain(out, &w->text, true);
	return rc;
}

/* ---- a file ---------------------------------------------------------------------------------- */

static int write_xml(struct perfview *w, const struct perfview_form *form, enum stream stream,
		     struct out *out, struct err *err)
{
	int rc;

	out_puts(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<StackWindow>\n<StackSource>\n");
	if (form->lists) {
		put_frame_list(w, out);
		put_stack_list(w, out);
	}
	out_printf(out, "<Samples Count=\"%" PRIu32 "\">\n", w->tree.nsamples);
	rc = put_samples(w, form, out, err);
	return rc ? rc : put_end(w, stream, out, err);
}

/*
 * StackSource has no array but Samples: the reader takes items of any array for samples. It skips
 * other members behind StackSource: the notes say what a sample is, as those of the XML do.
 */
static int write_json(struct perfview *w, const struct perfview_form *form, enum stream stream,
		      struct out *out, struct err *err)
{
	uint64_t period_ns = w->in->head.period_ns[stream];
	int rc;

	out_puts(out, "{\"StackSource\":{\"Samples\":[\n");
	rc = put_samples(w, form, out, err);
	out_puts(out, "\n]}");
	if (stream == STREAM_CPU && period_ns && !w->in->several_periods)
		out_printf(out, ",\"Notes\":\"Samples: %" PRIu32 ", one per %" PRIu64 ".%06" PRIu64
			   " ms of CPU time\"", w->tree.nsamples,
			   (uint64_t)(period_ns / NS_PER_MS), (uint64_t)(period_ns % NS_PER_MS));
	out_puts(out, "}\n");
	return rc;
}

/* Write an incident, or a diff (d, else NULL), whose incident is `in`. */
static int perfview_write(const struct perfview_form *form, const struct incident *in,
			  const struct diff *d, const struct export_options *opt, struct out *out,
			  struct err *err)
{
	struct perfview w = {.in = in, .diff = d, .divisor = divisor_of(in, opt)};
	struct stack_tree_style style = perfview_style;
	int rc;

	if (form->json)
		style.escape = export_tree_quote;
	rc = export_tree_build(&w.tree, in, opt, &style, err);
	if (!rc)
		rc = form->json ? write_json(&w, form, opt->stream, out, err)
				: write_xml(&w, form, opt->stream, out, err);
	stack_tree_free(&w.tree);
	buf_free(&w.text);
	return rc;
}
/* ---- compact XML ----------------------------------------------------------------------------- */

static char *write_numbers(const struct perfview *w, char *to, const struct incident_sample *s,
			   uint32_t node)
{
	to = write_number(to, "<Sample ID=\"", w->nput, "\" Time=\"");
	to = write_time(w, to, s);
	return write_number(to, "\" StackID=\"", node, "\"");
}

static void put_compact(struct perfview *w, const struct incident_sample *s, uint32_t node)
{
	char *line = buf_reserve(&w->text, LINE_MAX_BYTES), *to;

	if (!line)
		return;
	to = write_numbers(w, line, s, node);
	if (export_weight(w->in, s) != w->divisor) {
		to = write_metric(w, write_text(to, " Metric=\""), s);
		*to++ = '"';
	}
	end_line(&w->text, line, write_text(to, " />\n"));
}

static const struct perfview_form compact_form = {
	.what = "the XML",
	.lists = true,
	.put_sample = put_compact,
};

int perfview_xml_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err)
{
	return perfview_write(&compact_form, in, NULL, opt, out, err);
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

static void put_difference(struct perfview *w, const struct incident_sample *s, uint32_t node)
{
	bool is_time = stream_is_time(s->stream);
	double weight = (double)s->weight * (is_time ? 1e-3 : 1e3);
	char *line = buf_reserve(&w->text, LINE_MAX_BYTES), *to;

	if (!line)
		return;
	to = write_numbers(w, line, s, node);
	end_line(&w->text, line, write_text(to, " Metric=\""));
	if (w->nput < w->diff->nbase)
		put_thousandths(&w->text, -next_thousandths(&w->base, weight * w->diff->factor));
	else
		put_thousandths(&w->text, next_thousandths(&w->test, weight));
	buf_puts(&w->text, "\" />\n");
}

static int perfview_xml_write_diff(const struct diff *d, const struct export_options *opt,
				   struct out *out, struct err *err)
{
	static const struct perfview_form diff_form = {
		.what = "the XML",
		.lists = true,
		.put_sample = put_difference,
	};

	return perfview_write(&diff_form, &d->in, d, opt, out, err);
}

const struct exporter perfview_xml_exporter = {
	.name = "perfview-xml",
	.suffix = ".perfView.xml",
	.summary = "PerfView, with the trigger in Notes",
	.sets = true,
	.write = perfview_xml_write,
	.write_diff = perfview_xml_write_diff,
};
/* ---- stacks in samples ----------------------------------------------------------------------- */

/* A frame a line, leaf first, without a blank line, which would be an empty frame. */
static void put_lines(struct perfview *w, const struct incident_sample *s, uint32_t node)
{
	char *line = buf_reserve(&w->text, LINE_MAX_BYTES), *to;

	if (!line)
		return;
	to = write_time(w, write_text(line, "<Sample Time=\""), s);
	to = write_metric(w, write_text(to, "\" Metric=\""), s);
	end_line(&w->text, line, write_text(to, "\">\n"));
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
		.put_sample = put_lines,
	};

	return perfview_write(&form, in, NULL, opt, out, err);
}

const struct exporter perfview_simple_exporter = {
	.name = "perfview-simple",
	.summary = "PerfView's, to read and edit by hand",
	.sets = true,
	.write = perfview_simple_write,
};

static void put_object(struct perfview *w, const struct incident_sample *s, uint32_t node)
{
	const char *before = ",\"Stack\":[";
	char *line = buf_reserve(&w->text, LINE_MAX_BYTES), *to;

	if (!line)
		return;
	to = write_time(w, write_text(line, w->nput ? ",\n{\"Time\":" : "{\"Time\":"), s);
	to = write_metric(w, write_text(to, ",\"Metric\":"), s);
	end_line(&w->text, line, to);
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
		.put_sample = put_object,
	};

	return perfview_write(&form, in, NULL, opt, out, err);
}

const struct exporter perfview_json_exporter = {
	.name = "perfview-json",
	.suffix = ".perfView.json",
	.summary = "PerfView's JSON, for up to 50,000 samples",
	.sets = true,
	.write = perfview_json_write,
};
