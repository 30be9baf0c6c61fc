/*
 * The rows: one tree of the window's stacks, by processes; everything that is shown is a sum over
 * its nodes, so another choice costs no look at the samples.
 */
#include "screen/view_private.h"

#include "base/array.h"
#include "base/sort.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ALL STACK_TREE_NONE                  /* a row of all processes */
#define GONE (STACK_TREE_NONE - 1)           /* of one without samples in the window */

/* ---- the tree -------------------------------------------------------------------------------- */

struct naming {
	bool by_name;
	char **labels;                       /* of each process; NULL = not asked for yet */
};

/* "perl [busy.pl] (4711)"; by name without the number. */
static void put_process(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	const struct naming *names = ctx;
	char label[PROCESS_LABEL_BYTES];
	uint32_t process;

	if (thread == THREAD_NONE) {
		buf_puts(out, "(process not known)");
		return;
	}
	process = in->threads[thread].process;
	/* A label is looked for among all threads. */
	if (!names->labels[process])
		names->labels[process] =
			text_dup(incident_process_label(in, process, label), SIZE_MAX);
	if (!names->labels[process]) {
		out->failed = true;
		return;
	}
	buf_puts(out, names->labels[process]);
	if (!names->by_name)
		buf_printf(out, " (%" PRIu32 ")", in->processes[process].pid);
}

static void put_frame(const struct incident *in, const void *ctx, uint32_t frame, struct buf *out)
{
	(void)ctx;
	incident_frame_text(in, frame, false, out);
}

static uint64_t weigh(const struct incident *in, const struct incident_sample *s)
{
	(void)in;
	return s->stream == STREAM_EVENT ? 1 : s->weight;
}

void view_drop_window(struct view *v)
{
	stack_tree_free(&v->tree);
	v->tree = (struct stack_tree){0};
	free(v->own);
	free(v->all);
	free(v->process_of);
	free(v->self);
	free(v->inclusive);
	v->own = v->all = v->self = v->inclusive = NULL;
	v->process_of = NULL;
	v->loaded = false;
}

static int sum_tree(struct view *v)
{
	const struct stack_tree *t = &v->tree;
	size_t nnodes = (size_t)t->nnodes + 1, ntexts = (size_t)t->texts.n + 1;
	uint32_t i;

	v->own = stack_tree_own(t, &v->in, weigh);
	v->all = malloc(nnodes * sizeof(*v->all));
	v->process_of = malloc(nnodes * sizeof(*v->process_of));
	v->self = calloc(ntexts, sizeof(*v->self));
	v->inclusive = calloc(ntexts, sizeof(*v->inclusive));
	if (!v->own || !v->all || !v->process_of || !v->self || !v->inclusive)
		return ERR_MEMORY;
	if (t->nnodes)
		memcpy(v->all, v->own, t->nnodes * sizeof(*v->all));
	stack_tree_add_up(t, v->all);
	for (i = 0; i < t->nnodes; i++) {
		uint32_t caller = t->nodes[i].caller;

		v->process_of[i] = caller == STACK_TREE_NONE ? i : v->process_of[caller];
	}
	return 0;
}

int view_count_window(struct view *v)
{
	static const struct stack_tree_style style = {
		.process = put_process, .frame = put_frame,
	};
	struct naming names = {.by_name = v->by_name};
	uint32_t i;
	int rc = ERR_MEMORY;

	view_drop_window(v);
	names.labels = calloc((size_t)v->in.nprocesses + 1, sizeof(*names.labels));
	if (names.labels)
		rc = stack_tree_build(&v->tree, &v->in, 1u << v->stream, &style, &names, NULL);
	for (i = 0; names.labels && i < v->in.nprocesses; i++)
		free(names.labels[i]);
	free(names.labels);
	if (!rc)
		rc = sum_tree(v);
	v->loaded = !rc;
	v->samples = v->tree.nsamples;
	return rc ? rc : view_count(v);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool passes(const struct view_list *l, const char *text)
{
	size_t n = l->filter.len;

	if (!n)
		return true;
	for (; *text; text++)
		if (strncasecmp(text, l->filter.data, n) == 0)
			return true;
	return false;
}

static int add_row(struct view_list *l, struct view_row row)
{
	if (ARRAY_ROOM(l->rows, l->room, l->n + 1))
		return ERR_MEMORY;
	l->rows[l->n++] = row;
	return 0;
}

static int by_self(const void *a, const void *b)
{
	const struct view_row *ra = a, *rb = b;
	int order = compare_u64(rb->self, ra->self);

	if (!order)
		order = compare_u64(rb->inclusive, ra->inclusive);
	if (!order)
		order = strcmp(ra->text, rb->text);
	return order ? order : compare_u64(ra->node, rb->node);
}

static int by_inclusive(const void *a, const void *b)
{
	const struct view_row *ra = a, *rb = b;
	int order = compare_u64(rb->inclusive, ra->inclusive);

	return order ? order : by_self(a, b);
}

/* The cursor stays on its row, wherever that is now; one that is gone leaves it at the first. */
static void sort_rows(struct view *v, enum pane pane, uint32_t fixed)
{
	struct view_list *l = &v->lists[pane];
	const char *chosen = buf_text(&v->chosen[pane]);
	uint32_t i;

	if (l->n > fixed)
		qsort(l->rows + fixed, l->n - fixed, sizeof(*l->rows),
		      pane == PANE_FUNCTIONS && v->by_inclusive ? by_inclusive : by_self);
	l->at = 0;
	for (i = 0; *chosen && i < l->n; i++)
		if (strcmp(l->rows[i].text, chosen) == 0)
			l->at = i;
}

/* All of them, then each. A chosen process that rests stays, or the others' functions appeared. */
static int count_processes(struct view *v)
{
	struct view_list *l = &v->lists[PANE_PROCESSES];
	const char *chosen = buf_text(&v->chosen[PANE_PROCESSES]);
	struct view_row row = {.text = "", .node = ALL};
	bool has_chosen = !*chosen;
	uint32_t i;
	int rc;

	l->n = 0;
	rc = add_row(l, row);
	v->whole = 0;
	for (i = 0; !rc && i < v->tree.nnodes; i++) {
		if (v->tree.nodes[i].caller != STACK_TREE_NONE)
			continue;
		v->whole += v->all[i];
		row.text = stack_tree_text(&v->tree, v->tree.nodes[i].text);
		row.self = row.inclusive = v->all[i];
		row.node = i;
		if (strcmp(row.text, chosen) == 0)
			has_chosen = true;
		else if (!passes(l, row.text))
			continue;
		rc = add_row(l, row);
	}
	if (!rc && !has_chosen)
		rc = add_row(l, (struct view_row){.text = chosen, .node = GONE});
	if (l->n)
		l->rows[0].self = l->rows[0].inclusive = v->whole;
	sort_rows(v, PANE_PROCESSES, 1);
	return rc;
}

static uint32_t chosen_process(const struct view *v)
{
	const struct view_list *l = &v->lists[PANE_PROCESSES];

	return l->at < l->n ? l->rows[l->at].node : ALL;
}

/* Whether a node is a frame of the process that is chosen. */
static bool in_scope(const struct view *v, uint32_t process, uint32_t node)
{
	return stack_tree_is_frame(&v->tree, node) &&
	       (process == ALL || v->process_of[node] == process);
}

static int count_functions(struct view *v)
{
	struct view_list *l = &v->lists[PANE_FUNCTIONS];
	const struct stack_tree *t = &v->tree;
	uint32_t process = chosen_process(v), i;
	int rc = 0;

	memset(v->self, 0, t->texts.n * sizeof(*v->self));
	memset(v->inclusive, 0, t->texts.n * sizeof(*v->inclusive));
	for (i = 0; i < t->nnodes; i++) {
		if (!in_scope(v, process, i))
			continue;
		v->self[t->nodes[i].text] += v->own[i];
		if (stack_tree_is_outermost(t, i))
			v->inclusive[t->nodes[i].text] += v->all[i];
	}
	l->n = 0;
	for (i = 0; !rc && i < t->texts.n; i++) {
		struct view_row row = {stack_tree_text(t, i), v->self[i], v->inclusive[i], i};

		if (row.inclusive && passes(l, row.text))
			rc = add_row(l, row);
	}
	sort_rows(v, PANE_FUNCTIONS, 0);
	return rc;
}

static bool has_function(const struct view *v, uint32_t node, uint32_t text)
{
	if (!v->by_inclusive)
		return v->tree.nodes[node].text == text;
	for (; stack_tree_is_frame(&v->tree, node); node = v->tree.nodes[node].caller)
		if (v->tree.nodes[node].text == text)
			return true;
	return false;
}

/* By their weight; that of the function that is chosen, or at the top. */
static int count_stacks(struct view *v)
{
	struct view_list *l = &v->lists[PANE_STACK];
	const struct view_list *functions = &v->lists[PANE_FUNCTIONS];
	uint32_t process = chosen_process(v), at = l->at, i;
	bool any = !v->chosen[PANE_FUNCTIONS].len || functions->at >= functions->n;
	int rc = 0;

	l->n = 0;
	v->stack_weight = 0;
	for (i = 0; !rc && i < v->tree.nnodes; i++) {
		if (!v->own[i] || !in_scope(v, process, i) ||
		    (!any && !has_function(v, i, functions->rows[functions->at].node)))
			continue;
		v->stack_weight += v->own[i];
		rc = add_row(l, (struct view_row){"", v->own[i], v->own[i], i});
	}
	sort_rows(v, PANE_STACK, 0);
	l->at = at < l->n ? at : l->n ? l->n - 1 : 0;
	return rc;
}

int view_count(struct view *v)
{
	uint32_t process;
	int rc;

	if (!v->loaded)
		return 0;
	rc = count_processes(v);
	process = chosen_process(v);
	v->scope_weight = process == ALL ? v->whole : process == GONE ? 0 : v->all[process];
	if (!rc)
		rc = count_functions(v);
	return rc ? rc : count_stacks(v);
}
