/*
 * speedscope's file format: frames shared by name, a profile for each thread, the heaviest first.
 * Source: its file-format-schema.json.
 *
 * The viewer lays samples end to end, so time without samples becomes a sample with an empty stack.
 * All other weights are exactly those of the incident.
 */
#include "export/names.h"
#include "export/export_tree.h"
#include "model/lists.h"

#include "base/array.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROFILES_MAX 256u

/* ---- who has which samples ------------------------------------------------------------------- */

/* A thread of the tree. */
struct lane {
	uint32_t node;
	bool used;
	uint64_t weight;
};

struct lanes {
	const struct stack_tree *tree;
	struct lane *items;
	uint32_t n;
	uint32_t *thread, *number;           /* of each node its thread, of that one its lane */
	struct lists samples;                /* of each lane */
};

/* For each node the thread it is below, or the node itself; callers come first. */
static uint32_t *thread_nodes(const struct stack_tree *t)
{
	uint32_t *thread = malloc(((size_t)t->nnodes + 1) * sizeof(*thread));
	uint32_t i, caller;

	for (i = 0; thread && i < t->nnodes; i++) {
		caller = t->nodes[i].caller;
		if (caller == STACK_TREE_NONE || t->nodes[caller].caller == STACK_TREE_NONE)
			thread[i] = i;
		else
			thread[i] = thread[caller];
	}
	return thread;
}

static int compare_lanes(const void *left, const void *right)
{
	const struct lane *a = left, *b = right;

	return a->weight != b->weight ? compare_u64(b->weight, a->weight)
				      : compare_u64(a->node, b->node);
}

/* Make a lane for each thread with samples, the heaviest first. */
static void weigh_lanes(struct lanes *l, const struct incident *in)
{
	const struct stack_tree *t = l->tree;
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		struct lane *of;

		if (t->of_sample[i] == STACK_TREE_NONE)
			continue;
		of = &l->items[l->thread[t->of_sample[i]]];
		of->used = true;
		of->weight += in->samples[i].weight;
	}
	for (i = 0; i < t->nnodes; i++) {
		l->items[i].node = i;
		if (l->items[i].used)
			l->items[l->n++] = l->items[i];
	}
	qsort(l->items, l->n, sizeof(*l->items), compare_lanes);
}

/* Lanes beyond PROFILES_MAX are one, by time. */
static void number_lanes(struct lanes *l)
{
	uint32_t i;

	for (i = 0; i < l->n; i++)
		l->number[l->items[i].node] = i < PROFILES_MAX ? i : PROFILES_MAX;
	if (l->n <= PROFILES_MAX)
		return;
	l->items[PROFILES_MAX].node = STACK_TREE_NONE;
	l->n = PROFILES_MAX + 1;
}

/* For lists_make(). */
static uint32_t lane_of(const void *ctx, uint32_t sample)
{
	const struct lanes *l = ctx;
	uint32_t node = l->tree->of_sample[sample];

	return node == STACK_TREE_NONE ? LISTS_NONE : l->number[l->thread[node]];
}

static int make_lanes(struct lanes *l, const struct incident *in)
{
	const struct stack_tree *t = l->tree;

	l->thread = thread_nodes(t);
	l->number = calloc((size_t)t->nnodes + 1, sizeof(*l->number));
	l->items = calloc((size_t)t->nnodes + 1, sizeof(*l->items));
	if (!l->thread || !l->number || !l->items)
		return ERR_MEMORY;
	weigh_lanes(l, in);
	number_lanes(l);
	return lists_make(&l->samples, l->n, in->nsamples, lane_of, l);
}

static void lanes_free(struct lanes *l)
{
	free(l->thread);
	free(l->number);
	free(l->items);
	lists_free(&l->samples);
}

/* ---- writing --------------------------------------------------------------------------------- */

struct writer {
	const struct incident *in;
	const struct stack_tree *tree;
	enum stream stream;
	uint64_t period_ns;                  /* 0 = weights are not times: no gaps */
	struct out *out;
	struct buf text;                     /* on its way to the file; failed = no memory */
	struct json json;
	struct stack_tree_path path;         /* of the sample at hand */
	uint32_t *open;                      /* texts of the frames that are open, root first */
	uint32_t nopen, open_capacity;
};

/*
 * The frames of a node, root first; "other threads" keep process and thread. A sample without a
 * stack has its thread: an empty one is no sample.
 */
static void make_path(struct writer *w, uint32_t node, bool whole)
{
	if (stack_tree_path(w->tree, node, whole ? 0 : w->tree->nlevels, &w->path) ||
	    ARRAY_ROOM(w->open, w->open_capacity, w->path.n))
		w->text.failed = ERR_MEMORY;
}

/* The time between two samples that neither accounts for; 0 when it is too short to show. */
static uint64_t gap_before(const struct writer *w, const struct incident_sample *last,
			   const struct incident_sample *s)
{
	uint64_t apart;

	if (!w->period_ns || !last || s->time_ns < last->time_ns)
		return 0;
	apart = s->time_ns - last->time_ns;
	return apart > w->period_ns + w->period_ns / 2 && apart > s->weight ? apart - s->weight : 0;
}

/* When a lane begins, from the window's start. */
static uint64_t start_of(const struct writer *w, struct list samples)
{
	const struct incident_sample *s = w->in->samples;
	uint64_t from = w->in->head.t0_ns;
	uint32_t first;

	if (list_next(&samples, &first))
		s += first;
	if (!w->period_ns || s->time_ns < from || s->time_ns - from < s->weight)
		return 0;
	return s->time_ns - from - s->weight;
}

static void put_path(struct writer *w)
{
	uint32_t i;

	json_open(&w->json, '[');
	for (i = 0; i < w->path.n; i++)
		json_uint(&w->json, w->path.texts[i]);
	json_close(&w->json, ']');
	out_drain(w->out, &w->text, false);
}

static void put_weight(struct writer *w, uint64_t weight)
{
	json_uint(&w->json, weight);
	out_drain(w->out, &w->text, false);
}

/* Time without samples: an empty stack. */
static void put_gap(struct writer *w, uint64_t weight, bool weights)
{
	w->path.n = 0;
	if (weights)
		put_weight(w, weight);
	else
		put_path(w);
}

/*
 * The stacks of a lane, or what each of them weighs. Successive samples with equal stacks become
 * one. Returns the weight of all.
 */
static uint64_t put_stacks(struct writer *w, struct list samples, bool whole, bool weights)
{
	const struct incident_sample *s, *last = NULL;
	uint32_t i, node, last_node = STACK_TREE_NONE;
	uint64_t gap, weight = 0, total = 0;

	for (; list_next(&samples, &i) && !w->text.failed; last = s, last_node = node) {
		s = &w->in->samples[i];
		node = w->tree->of_sample[i];
		gap = gap_before(w, last, s);
		total += gap + s->weight;
		if (!gap && node == last_node) {
			weight += s->weight;
			continue;
		}
		if (last && weights)
			put_weight(w, weight);
		weight = s->weight;
		if (gap)
			put_gap(w, gap, weights);
		if (weights)
			continue;
		make_path(w, node, whole);
		put_path(w);
	}
	if (last && weights)
		put_weight(w, weight);
	return total;
}

static uint64_t put_sampled(struct writer *w, struct list samples, bool whole)
{
	uint64_t total;

	json_key_open(&w->json, "samples", '[');
	put_stacks(w, samples, whole, false);
	json_close(&w->json, ']');
	json_key_open(&w->json, "weights", '[');
	total = put_stacks(w, samples, whole, true);
	json_close(&w->json, ']');
	return total;
}

static void put_event(struct writer *w, const char *type, uint32_t frame, uint64_t at)
{
	json_open(&w->json, '{');
	json_key_str(&w->json, "type", type);
	json_key_uint(&w->json, "frame", frame);
	json_key_uint(&w->json, "at", at);
	json_close(&w->json, '}');
	out_drain(w->out, &w->text, false);
}

static void close_to(struct writer *w, uint32_t depth, uint64_t at)
{
	while (w->nopen > depth)
		put_event(w, "C", w->open[--w->nopen], at);
}

static uint64_t put_evented(struct writer *w, struct list samples, bool whole, uint64_t start)
{
	const struct incident_sample *s, *last = NULL;
	uint64_t at = start, gap;
	uint32_t i, same;

	json_key_open(&w->json, "events", '[');
	for (; list_next(&samples, &i) && !w->text.failed; last = s) {
		s = &w->in->samples[i];
		gap = gap_before(w, last, s);
		if (gap)
			close_to(w, 0, at);
		at += gap;
		make_path(w, w->tree->of_sample[i], whole);
		for (same = 0; same < w->nopen && same < w->path.n &&
			       w->open[same] == w->path.texts[same];)
			same++;
		close_to(w, same, at);
		for (; w->nopen < w->path.n && !w->text.failed; w->nopen++) {
			w->open[w->nopen] = w->path.texts[w->nopen];
			put_event(w, "O", w->open[w->nopen], at);
		}
		at += s->weight;
	}
	close_to(w, 0, at);
	json_close(&w->json, ']');
	return at - start;
}

static void put_name(struct writer *w, const struct lane *lane)
{
	struct buf name = {0};
	const struct stack_tree *t = w->tree;
	uint32_t process;

	if (lane->node == STACK_TREE_NONE) {
		json_key_str(&w->json, "name", "other threads");
		return;
	}
	process = t->nodes[lane->node].caller;
	buf_printf(&name, "%s / %s", stack_tree_text(t, t->nodes[process].text),
		   stack_tree_text(t, t->nodes[lane->node].text));
	if (name.failed)
		w->text.failed = name.failed;
	json_key_str(&w->json, "name", buf_text(&name));
	buf_free(&name);
}

static void put_profile(struct writer *w, const struct lane *lane, struct list samples,
			bool evented)
{
	static const char *const units[METRIC_UNITS] = {"nanoseconds", "bytes", "none"};
	uint64_t start = start_of(w, samples), length;
	bool whole = lane->node == STACK_TREE_NONE;

	json_open(&w->json, '{');
	json_key_str(&w->json, "type", evented ? "evented" : "sampled");
	put_name(w, lane);
	json_key_str(&w->json, "unit", units[stream_metrics[w->stream].unit]);
	json_key_uint(&w->json, "startValue", start);
	length = evented ? put_evented(w, samples, whole, start) : put_sampled(w, samples, whole);
	json_key_uint(&w->json, "endValue", start + length);
	json_close(&w->json, '}');
	out_drain(w->out, &w->text, true);
}

static void put_head(struct writer *w)
{
	struct buf name = {0};
	uint32_t i;

	buf_printf(&name, "incident %" PRId64, w->in->head.id);
	if (w->in->head.reason)
		buf_printf(&name, ": %s", w->in->head.reason);
	json_open(&w->json, '{');
	json_key_str(&w->json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_key_str(&w->json, "exporter", "recorder");
	json_key_str(&w->json, "name", buf_text(&name));
	json_key_uint(&w->json, "activeProfileIndex", 0);
	json_key_open(&w->json, "shared", '{');
	json_key_open(&w->json, "frames", '[');
	for (i = 0; i < w->tree->texts.n; i++) {
		json_open(&w->json, '{');
		json_key_str(&w->json, "name", stack_tree_text(w->tree, i));
		json_close(&w->json, '}');
		out_drain(w->out, &w->text, false);
	}
	if (name.failed)
		w->text.failed = name.failed;
	json_close(&w->json, ']');
	json_close(&w->json, '}');
	buf_free(&name);
}

static void put_all(struct writer *w, const struct lanes *l, bool evented)
{
	uint32_t i;

	put_head(w);
	json_key_open(&w->json, "profiles", '[');
	for (i = 0; i < l->n && !w->text.failed && !out_failed(w->out); i++)
		put_profile(w, &l->items[i], lists_get(&l->samples, i), evented);
	json_close(&w->json, ']');
	json_close(&w->json, '}');
	buf_putc(&w->text, '\n');
	out_drain(w->out, &w->text, true);
}

static int speedscope_write(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err)
{
	struct stack_tree tree = {0};
	struct lanes lanes = {.tree = &tree};
	struct writer w = {.in = in, .tree = &tree, .stream = opt->stream, .out = out};
	int rc;

	w.json.out = &w.text;
	if (stream_is_time(opt->stream))
		w.period_ns = in->head.period_ns[opt->stream];
	rc = export_tree_build(&tree, in, opt, &export_tree_plain, err);
	if (!rc) {
		rc = make_lanes(&lanes, in);
		if (!rc)
			put_all(&w, &lanes, opt->evented);
		if (rc || w.text.failed)
			rc = err_memory(err, "while writing profiles");
	}
	lanes_free(&lanes);
	free(w.path.texts);
	free(w.open);
	buf_free(&w.text);
	stack_tree_free(&tree);
	return rc;
}

const struct exporter speedscope_exporter = {
	.name = "speedscope",
	.suffix = ".speedscope.json",
	.summary = "speedscope.app, a profile per thread",
	.usual = true,
	.sets = true,
	.write = speedscope_write,
};
