/*
 * SVG flame graph: one file for any browser, boxes with titles, and one script for zoom and search,
 * export/report/svg.js. It refers to nothing outside and is valid XML.
 *
 * In a diff, a box is as wide as both sides together, so that functions that are gone have their
 * place too. Red is more in the test, blue is less.
 */
#include "export/diff.h"
#include "export/markup.h"
#include "export/names.h"
#include "export/report_files.h"

#include "base/array.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	WIDTH = 1180, LEFT = 10, ROW = 16, TOP = 70, BOTTOM = 30, CHAR_WIDTH = 7,
	BOXES_MAX = 10000,                   /* 7,000 draw in 0.35 s, 107,000 in 3.7 s */
};

struct flame {
	struct stack_tree own;
	const struct stack_tree *tree;       /* own, or that of the diff */
	const struct incident *in;
	const struct diff *diff;             /* NULL = one incident */
	const struct diff_tree *sides;       /* of the diff */
	const char *unit;
	uint64_t *weight;                    /* of each node with its callees */
	uint64_t *start;                     /* weight to the left of it */
	uint32_t *order, *depth;
	uint64_t whole;
	double cut_px;                       /* narrower boxes are left out */
	uint32_t drawn, deepest;
	struct buf line;                     /* on its way to the file */
};

/* ---- layout ---------------------------------------------------------------------------------- */

static double width_px(const struct flame *f, uint64_t weight)
{
	return f->whole ? (double)weight * WIDTH / (double)f->whole : 0;
}

static void add_up(struct flame *f)
{
	uint32_t i;

	for (i = 0; f->diff && i < f->tree->nnodes; i++)
		f->weight[i] = (uint64_t)((f->sides->base[i] + f->sides->test[i]) + 0.5);
	for (i = 0; i < f->tree->nnodes; i++)
		f->whole += f->weight[i];
	stack_tree_add_up(f->tree, f->weight);
	for (i = 0; i < f->tree->nnodes; i++) {
		uint32_t caller = f->tree->nodes[i].caller;

		f->depth[i] = caller == STACK_TREE_NONE ? 1 : f->depth[caller] + 1;
	}
}

/* What the order of boxes depends on. */
struct place {
	uint32_t caller, node;               /* caller + 1; 0 = none */
	const char *text;                    /* has no NUL within */
};

static int compare(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	int order = compare_u64(a->caller, b->caller);

	return order ? order : strcmp(a->text, b->text);
}

/* Place the callees of each caller by name, from left to right; callers are placed before. */
static int lay_out(struct flame *f)
{
	uint32_t n = f->tree->nnodes, i;
	struct place *places = malloc(((size_t)n + 1) * sizeof(*places));
	uint64_t *next = calloc((size_t)n + 1, sizeof(*next));

	if (!places || !next) {
		free(places);
		free(next);
		return ERR_MEMORY;
	}
	for (i = 0; i < n; i++) {
		places[i] = (struct place){
			.caller = f->tree->nodes[i].caller + 1, .node = i,
			.text = stack_tree_text(f->tree, f->tree->nodes[i].text),
		};
	}
	qsort(places, n, sizeof(*places), compare);
	for (i = 0; i < n; i++) {
		uint32_t node = places[i].node, caller = places[i].caller;

		f->order[i] = node;
		f->start[node] = next[caller];
		next[caller] += f->weight[node];
		next[node + 1] = f->start[node];
	}
	free(places);
	free(next);
	return 0;
}

/* Raise the cut until few enough boxes are left. No callee is wider than its caller. */
static void choose_cut(struct flame *f)
{
	uint32_t i;

	for (f->cut_px = 0.1;; f->cut_px *= 1.25) {
		f->drawn = 0;
		f->deepest = 0;
		for (i = 0; i < f->tree->nnodes; i++) {
			if (width_px(f, f->weight[i]) < f->cut_px)
				continue;
			f->drawn++;
			f->deepest = f->depth[i] > f->deepest ? f->depth[i] : f->deepest;
		}
		if (f->drawn < BOXES_MAX)        /* one is left for 'all' */
			return;
	}
}

static int make_boxes(struct flame *f, const struct export_options *opt, struct err *err)
{
	size_t n;
	int rc = f->diff ? 0 : export_tree_build(&f->own, f->in, opt, &export_tree_plain, err);

	if (rc)
		return rc;
	n = (size_t)f->tree->nnodes + 1;
	f->weight = f->diff ? calloc(n, sizeof(*f->weight)) : export_tree_own(f->tree, f->in);
	stack_tree_drop_samples(&f->own);
	f->start = calloc(n, sizeof(*f->start));
	f->order = calloc(n, sizeof(*f->order));
	f->depth = calloc(n, sizeof(*f->depth));
	rc = f->weight && f->start && f->order && f->depth ? 0 : ERR_MEMORY;
	if (!rc) {
		add_up(f);
		rc = lay_out(f);
	}
	if (rc)
		return err_memory(err, "while drawing the flame graph");
	choose_cut(f);
	return 0;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Append v rounded to `digits` decimals, 1 or 3; no locale. */
static void put_decimal(struct buf *out, double v, unsigned digits)
{
	uint64_t scale = digits == 3 ? 1000 : 10, whole = (uint64_t)(v * (double)scale + 0.5);

	if (digits == 3)
		buf_printf(out, "%" PRIu64 ".%03" PRIu64, whole / scale, whole % scale);
	else
		buf_printf(out, "%" PRIu64 ".%" PRIu64, whole / scale, whole % scale);
}

/* As many characters as fit into a box. The script does the same after a zoom. */
static void put_label(struct buf *out, const char *text, size_t n, double w)
{
	size_t room = w < 6 + 3 * CHAR_WIDTH ? 0 : (size_t)((w - 6) / CHAR_WIDTH);
	size_t chars = 0, at = 0, short_end = 0;

	if (!room)
		return;
	while (at < n && chars <= room) {
		size_t len = utf8_char(text + at, text + n);

		at += len ? len : 1;
		if (++chars == room - 2)
			short_end = at;
	}
	if (chars <= room) {
		markup_put(out, text, n);
		return;
	}
	markup_put(out, text, short_end);
	buf_puts(out, "..");
}

/* A node's weights (STACK_TREE_NONE = all). Returns the relative difference, -1 = only in base. */
static double sides_of(const struct flame *f, uint32_t node, double *base, double *test)
{
	*base = node == STACK_TREE_NONE ? f->sides->base_sum : f->sides->all_base[node];
	*test = node == STACK_TREE_NONE ? f->sides->test_sum : f->sides->all_test[node];
	return *base + *test > 0 ? (*test - *base) / (*base + *test) : 0;
}

static void put_percent(struct flame *f, uint64_t weight)
{
	put_decimal(&f->line, f->whole ? 100 * (double)weight / (double)f->whole : 0, 1);
}

/* "base 1200, test 1800 us of CPU time, +50.0 %, 16.7 % of both" */
static void put_sides(struct flame *f, uint32_t node, uint64_t weight)
{
	struct diff_unit unit = diff_unit(f->diff);
	double base, test;

	sides_of(f, node, &base, &test);
	buf_printf(&f->line, "base %.0f, test %.0f %s, ", base / unit.per, test / unit.per,
		   unit.text);
	if (base > 0)
		buf_printf(&f->line, "%+.1f %%, ", 100 * (test - base) / base);
	else
		buf_puts(&f->line, "only in the test, ");
	put_percent(f, weight);
	buf_puts(&f->line, " % of both");
}

/* Grey = no change. The square root makes changes of a few percent visible. Its twin: diff.js. */
static void put_diff_colour(struct flame *f, uint32_t node)
{
	double base, test, by = sides_of(f, node, &base, &test);
	unsigned pale = 235 - (unsigned)(125 * sqrt(fabs(by)) + 0.5);

	if (by > 0)
		buf_printf(&f->line, "#ff%02x%02x", pale, pale);
	else if (by < 0)
		buf_printf(&f->line, "#%02x%02xff", pale, pale);
	else
		buf_puts(&f->line, "#eeeeee");
}

static void put_box(struct flame *f, uint32_t node, const char *text, size_t n, uint64_t weight,
		    uint64_t start, uint32_t depth)
{
	double w = depth ? width_px(f, weight) : WIDTH, x = LEFT + width_px(f, start);
	uint32_t y = TOP + (f->deepest - depth) * ROW;
	enum code_kind code = node == STACK_TREE_NONE
				      ? CODE_NONE
				      : stack_tree_code(f->tree, f->tree->nodes[node].text);
	struct buf *line = &f->line;

	buf_puts(line, "<g class=\"f\"><title>");
	markup_put(line, text, n);
	buf_puts(line, " (");
	if (f->diff) {
		put_sides(f, node, weight);
	} else {
		buf_printf(line, "%" PRIu64 " %s, ", weight, f->unit);
		put_percent(f, weight);
		buf_puts(line, " %");
	}
	buf_puts(line, ")</title><rect x=\"");
	put_decimal(line, x, 3);
	buf_printf(line, "\" y=\"%" PRIu32 "\" width=\"", y);
	put_decimal(line, w, 3);
	buf_printf(line, "\" height=\"%d\" fill=\"", ROW - 1);
	if (f->diff)
		put_diff_colour(f, node);
	else
		buf_puts(line, markup_colour(text, n, code));
	buf_puts(line, "\"/>");
	if (w >= 6 + 3 * CHAR_WIDTH) {
		buf_puts(line, "<text x=\"");
		put_decimal(line, x + 3, 3);
		buf_printf(line, "\" y=\"%" PRIu32 "\">", y + 12);
		put_label(line, text, n, w);
		buf_puts(line, "</text>");
	}
	buf_puts(line, "</g>\n");
}

static void put_boxes(struct flame *f, struct out *out)
{
	uint32_t i;

	put_box(f, STACK_TREE_NONE, "all", 3, f->whole, 0, 0);
	for (i = 0; i < f->tree->nnodes && !out_failed(out); i++) {
		uint32_t node = f->order[i], text = f->tree->nodes[node].text;

		if (width_px(f, f->weight[node]) < f->cut_px)
			continue;
		put_box(f, node, stack_tree_text(f->tree, text), f->tree->texts.items[text].len,
			f->weight[node], f->start[node], f->depth[node]);
		out_drain(out, &f->line, false);
	}
}

static const char style_text[] =
	"<style>\n"
	"text { font: 12px ui-monospace, Consolas, monospace; fill: #111; pointer-events: none }\n"
	".page { fill: #fff } .head { font: 17px sans-serif } .small { font: 12px sans-serif }\n"
	".head, .small { fill: #222 }\n"
	".button { cursor: pointer; pointer-events: auto; text-decoration: underline }\n"
	".f { cursor: pointer } .f rect { stroke: #fff; stroke-width: .6 }\n"
	".f:hover rect { stroke: #000; stroke-width: 1 }\n"
	".f.below { opacity: .5 } .f.hit rect { fill: #e600e6 } .f.hit text { fill: #fff }\n"
	"@media (prefers-color-scheme: dark) {\n"
	".page { fill: #16181c } .f rect { stroke: #16181c } .head, .small { fill: #ddd } "
	".f:hover rect { stroke: #fff }\n"
	"}\n"
	"</style>\n";

/* "Incident 7", "Incidents 3 and 7". */
static void put_ids(const struct flame *f, struct buf *line)
{
	char title[INCIDENT_TITLE_BYTES];

	if (f->diff)
		buf_printf(line, "Incidents %" PRId64 " and %" PRId64, f->diff->base.head->id,
			   f->diff->test.head->id);
	else
		buf_puts(line, f->in->nparts ? "Several incidents"
					     : incident_title(&f->in->head, title));
}

/* What fired, or what the colours mean. */
static void put_subject(const struct flame *f, struct buf *out)
{
	const char *reason = f->in->head.reason ? f->in->head.reason : "?";

	if (f->diff)
		buf_puts(out, "red: more in the second; blue: more in the first; full colour: in "
			      "one only");
	else
		utf8_put_clean(out, reason, strlen(reason), 130);
}

static void put_head(struct flame *f)
{
	struct buf *line = &f->line, notes = {0}, subject = {0};
	uint32_t height = TOP + (f->deepest + 1) * ROW + BOTTOM;

	buf_printf(line, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"1200\" "
		   "height=\"%" PRIu32 "\" viewBox=\"0 0 1200 %" PRIu32 "\">\n<title>",
		   height, height);
	put_ids(f, line);
	buf_puts(line, "</title>\n<desc>");
	if (f->diff)
		diff_notes_put(&notes, f->diff);
	else
		notes_put(&notes, f->in);
	markup_put(line, buf_text(&notes), notes.len);
	buf_printf(line, "</desc>\n%s<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n"
		   "<text class=\"head\" x=\"10\" y=\"24\">", style_text);
	put_ids(f, line);
	buf_puts(line, ": ");
	put_subject(f, &subject);
	markup_put(line, buf_text(&subject), subject.len);
	buf_puts(line, "</text>\n<text class=\"small\" x=\"10\" y=\"44\" id=\"said\"></text>\n"
		 "<text class=\"small button\" x=\"1060\" y=\"44\" id=\"reset\" role=\"button\" "
		 "tabindex=\"0\" style=\"display:none\">reset zoom</text>\n"
		 "<text class=\"small button\" x=\"1140\" y=\"44\" id=\"search\" role=\"button\" "
		 "tabindex=\"0\">search</text>\n");
	if (notes.failed || subject.failed)
		line->failed = ERR_MEMORY;
	buf_free(&notes);
	buf_free(&subject);
}

/* The total, and how many boxes are not drawn. */
static void put_foot(struct flame *f)
{
	uint32_t y = TOP + (f->deepest + 1) * ROW + 18;
	struct buf *line = &f->line;

	buf_printf(line, "<text class=\"small\" x=\"10\" y=\"%" PRIu32 "\">", y);
	if (f->diff)
		put_sides(f, STACK_TREE_NONE, f->whole);
	else
		buf_printf(line, "%" PRIu64 " %s", f->whole, f->unit);
	if (f->drawn < f->tree->nnodes) {
		buf_printf(line, "; %" PRIu32 " boxes narrower than ", f->tree->nnodes - f->drawn);
		put_decimal(line, f->cut_px, 3);
		buf_puts(line, " px are not drawn; their callers include their weight");
	}
	buf_printf(line, "</text>\n<text class=\"small\" x=\"1060\" y=\"%" PRIu32
		   "\" id=\"matched\"></text>\n<script><![CDATA[\n", y);
	buf_puts(line, report_svg_js);
	buf_puts(line, "]]></script>\n</svg>\n");
}

static int draw(struct flame *f, const struct export_options *opt, struct out *out,
		struct err *err)
{
	int rc = make_boxes(f, opt, err);

	if (!rc) {
		put_head(f);
		put_boxes(f, out);
		put_foot(f);
		out_drain(out, &f->line, true);
		if (f->line.failed)
			rc = err_memory(err, "while drawing the flame graph");
	}
	stack_tree_free(&f->own);
	free(f->weight);
	free(f->start);
	free(f->order);
	free(f->depth);
	buf_free(&f->line);
	return rc;
}

static int svg_write(const struct incident *in, const struct export_options *opt, struct out *out,
		     struct err *err)
{
	char unit[UNIT_TEXT_MAX];
	struct flame f = {.in = in, .tree = &f.own, .unit = markup_unit(in, opt->stream, unit)};

	return draw(&f, opt, out, err);
}

static int diff_svg_write(const struct diff *d, const struct export_options *opt, struct out *out,
			  struct err *err)
{
	struct diff_tree sides = {0};
	struct flame f = {.in = &d->in, .diff = d, .sides = &sides, .tree = &sides.tree};
	int rc = diff_tree_build(&sides, d, opt, &export_tree_plain, err);

	if (!rc)
		rc = draw(&f, NULL, out, err);
	diff_tree_free(&sides);
	return rc;
}

const struct exporter svg_exporter = {
	.name = "svg",
	.suffix = ".svg",
	.summary = "flame graph for a browser: zoom, search",
	.usual = true,
	.sets = true,
	.write = svg_write,
	.write_diff = diff_svg_write,
};
