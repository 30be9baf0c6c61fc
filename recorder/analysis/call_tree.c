#include "analysis/call_tree.h"

#include "base/array.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 1000u                     /* of a process or thread */

/* ---- names ----------------------------------------------------------------------------------- */

/* In place of the process; the process then stands in place of the thread. */
static void put_home(const struct incident *in, const void *ctx, uint32_t thread, struct buf *out)
{
	const struct call_options *o = ctx;
	struct home home;

	home_read(in->processes[in->threads[thread].process].home, &home);
	buf_printf(out, *home.of[o->by] ? "%s " : "no %s", home_key_text(o->by));
	utf8_put_clean(out, home.of[o->by], strlen(home.of[o->by]), NAME_BYTES);
}

static void put_process(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	const struct incident_process *process = &in->processes[in->threads[thread].process];

	(void)ctx;
	buf_puts(out, "Process ");
	utf8_put_clean(out, process->name, strlen(process->name), NAME_BYTES);
	buf_printf(out, " (%" PRIu32 ")", process->pid);
}

static void put_thread(const struct incident *in, const void *ctx, uint32_t thread, struct buf *out)
{
	const struct incident_thread *t = &in->threads[thread];

	(void)ctx;
	if (t->tid || *t->name != '(')           /* not of an activity */
		buf_printf(out, "Thread (%" PRIu32 ")%s", t->tid, *t->name ? " " : "");
	utf8_put_clean(out, t->name, strlen(t->name), NAME_BYTES);
}

static void put_frame(const struct incident *in, const void *ctx, uint32_t frame, struct buf *out)
{
	const struct call_options *o = ctx;

	incident_frame_text(in, frame, o->addresses, out);
}

unsigned call_name_fit(const char *name, const char *asked)
{
	const char *mark = strchr(name, '!'), *function = mark ? mark + 1 : name;
	size_t n = strlen(asked);

	if (!strcmp(name, asked))
		return 3;
	if (!strncmp(function, asked, n) && (!function[n] || function[n] == '('))
		return 2;
	return strstr(name, asked) != NULL;
}

/* The only one whose name fits best. Text 0 is the root's. */
static int find_focus(const struct stack_tree *t, const char *focus, uint32_t *out, struct err *err)
{
	unsigned best = 0;
	uint32_t i, several = 0;

	*out = CALL_NONE;
	for (i = 1; i < t->texts.n; i++) {
		unsigned fit = call_name_fit(stack_tree_text(t, i), focus);

		if (!fit || fit < best)
			continue;
		several = fit == best;
		best = fit;
		*out = i;
	}
	if (*out == CALL_NONE)
		return err_set(err, ERR_NOT_FOUND, "no function is called '%s'; "
			       "--by-name lists them all", focus);
	if (several)
		return err_set(err, ERR_NOT_FOUND, "several names contain '%s', for instance '%s'; "
			       "give one in full, as --by-name lists it", focus,
			       stack_tree_text(t, *out));
	return 0;
}

static int build_stacks(const struct incident *in, const struct call_options *o,
			struct stack_tree *out, struct err *err)
{
	const struct stack_tree_style style = {
		.root = "ROOT",
		.process = !o->processes ? NULL : o->by ? put_home : put_process,
		.thread = !o->processes ? NULL : o->by ? put_process : put_thread,
		.frame = o->no_frames ? NULL : put_frame,
	};
	uint32_t text;
	int rc = stack_tree_build(out, in, 1u << o->stream, &style, o, err);

	if (rc || !o->focus)
		return rc;
	rc = find_focus(out, o->focus, &text, err);
	return rc ? rc : stack_tree_focus(out, in, text, o->callers, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static uint32_t when_of(const struct call_tree *t, uint64_t time_ns)
{
	uint64_t span = t->t1_ns > t->t0_ns ? t->t1_ns - t->t0_ns : 1;
	uint64_t at = time_ns > t->t0_ns ? time_ns - t->t0_ns : 0;
	uint32_t part = (uint32_t)((double)at / (double)span * CALL_WHEN);

	return part < CALL_WHEN ? part : CALL_WHEN - 1;
}

/* The column of a sample's incident in a set. */
static uint32_t which_of(const struct call_tree *t, const struct incident *in,
			 const struct incident_sample *s)
{
	uint32_t part = in->processes[in->threads[s->thread].process].part;

	return (uint32_t)((uint64_t)part * t->nwhich / t->nparts);
}

static void put_in_columns(const struct call_tree *t, const struct incident *in,
			   const struct incident_sample *s, double weight, float *columns)
{
	columns[when_of(t, s->time_ns)] += (float)weight;
	if (t->nwhich && s->thread != THREAD_NONE)
		columns[CALL_WHEN + which_of(t, in, s)] += (float)weight;
}

/* no_frames: what has a stack is no cost of the thread itself, though its node is not there. */
static void add_samples(struct call_tree *t, const struct incident *in, bool no_frames)
{
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];
		struct call_cost *cost;

		if (t->stacks.of_sample[i] == STACK_TREE_NONE)
			continue;
		cost = &t->nodes[t->stacks.of_sample[i]].cost;
		if (no_frames && s->stack != STACK_NONE) {
			cost->inclusive += (double)s->weight;
		} else {
			cost->exclusive += (double)s->weight;
			cost->samples++;
		}
		if (s->time_ns < cost->first_ns)
			cost->first_ns = s->time_ns;
		if (s->time_ns > cost->last_ns)
			cost->last_ns = s->time_ns;
	}
}

static void add_columns(float *to, const float *from, uint32_t n)
{
	while (n--)
		*to++ += *from++;
}

/* Add the part of a cost that callers have too, but for its columns. */
static void add_inclusive(struct call_cost *to, const struct call_cost *from)
{
	to->inclusive += from->inclusive;
	if (from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
}

/* Children come after their parents, so one pass from the end is enough. */
static void sum_costs(struct call_tree *t)
{
	uint32_t i;

	for (i = t->nnodes; i-- > 0;) {
		t->nodes[i].cost.inclusive += t->nodes[i].cost.exclusive;
		if (!i)
			break;
		add_inclusive(&t->nodes[t->nodes[i].parent].cost, &t->nodes[i].cost);
	}
}

/* A small node gives its cost to its caller, and has no inclusive cost from then on. */
static void fold_small(struct call_tree *t, double pct)
{
	double least = t->nodes[0].cost.inclusive * pct / 100;
	uint32_t i;

	for (i = t->nnodes; i-- > 1;) {
		struct call_cost *cost = &t->nodes[i].cost;
		struct call_cost *to = &t->nodes[t->nodes[i].parent].cost;

		if (cost->inclusive >= least)
			continue;
		to->exclusive += cost->exclusive;
		to->samples += cost->samples;
		to->folded += cost->folded + 1;
		cost->inclusive = cost->exclusive = 0;
		cost->samples = 0;
	}
}

/*
 * Columns for the root and, of a tree that is shown, for each node that was not folded: there may
 * be a hundred times as many, and columns are three quarters of a node. What was folded has those
 * of its caller.
 */
static int fill_columns(struct call_tree *t, const struct incident *in, bool by_name)
{
	uint32_t i, n = 1, next = 0;

	for (i = 1; i < t->nnodes && !by_name; i++)
		n += t->nodes[i].cost.inclusive > 0;
	t->columns = calloc((size_t)n * t->ncolumns, sizeof(*t->columns));
	if (!t->columns)
		return ERR_MEMORY;
	for (i = 0; i < t->nnodes; i++) {
		struct call_node *node = &t->nodes[i];

		node->cost.columns = !i || (!by_name && node->cost.inclusive > 0)
					     ? t->columns + (size_t)next++ * t->ncolumns
					     : t->nodes[node->parent].cost.columns;
	}
	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (t->stacks.of_sample[i] != STACK_TREE_NONE)
			put_in_columns(t, in, s, (double)s->weight,
				       t->nodes[t->stacks.of_sample[i]].cost.columns);
	}
	for (i = t->nnodes; i-- > 1;) {
		float *to = t->nodes[t->nodes[i].parent].cost.columns;

		if (to != t->nodes[i].cost.columns)
			add_columns(to, t->nodes[i].cost.columns, t->ncolumns);
	}
	return 0;
}

/* The larger one first. */
static int compare_costs(double a, double b)
{
	return a > b ? -1 : a < b;
}

/* By parent, then the most expensive first. */
static int by_cost(const void *a, const void *b)
{
	const struct call_node *m = *(struct call_node *const *)a;
	const struct call_node *n = *(struct call_node *const *)b;
	int order = compare_u64(m->parent, n->parent);

	if (!order)
		order = compare_costs(m->cost.inclusive, n->cost.inclusive);
	return order ? order : strcmp(m->name, n->name);
}

static int link_children(struct call_tree *t)
{
	struct call_node **order = malloc(((size_t)t->nnodes + 1) * sizeof(*order));
	uint32_t i, n = 0;

	if (!order)
		return ERR_MEMORY;
	for (i = 1; i < t->nnodes; i++) {
		if (t->nodes[i].cost.inclusive > 0)
			order[n++] = &t->nodes[i];
	}
	if (n)
		qsort(order, n, sizeof(*order), by_cost);
	for (i = n; i-- > 0;) {
		struct call_node *parent = &t->nodes[order[i]->parent];

		order[i]->next = parent->first_child;
		parent->first_child = (uint32_t)(order[i] - t->nodes);
	}
	free(order);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int add_costs(struct call_tree *t, const struct incident *in, const struct call_options *o)
{
	uint32_t i;

	t->nnodes = t->stacks.nnodes;
	t->nodes = calloc((size_t)t->nnodes + 1, sizeof(*t->nodes));
	t->has_managed = stack_tree_has_managed(&t->stacks);
	t->nparts = in->nparts;
	t->nwhich = in->nparts < CALL_WHICH ? in->nparts : CALL_WHICH;
	t->ncolumns = CALL_WHEN + t->nwhich;
	if (!t->nodes)
		return ERR_MEMORY;
	for (i = 0; i < t->nnodes; i++) {
		t->nodes[i].parent = t->stacks.nodes[i].caller;
		t->nodes[i].name = stack_tree_text(&t->stacks, t->stacks.nodes[i].text);
		t->nodes[i].first_child = t->nodes[i].next = CALL_NONE;
		t->nodes[i].cost.first_ns = UINT64_MAX;
	}
	add_samples(t, in, o->no_frames);
	sum_costs(t);
	fold_small(t, o->fold_pct);
	return fill_columns(t, in, o->by_name) ? ERR_MEMORY : link_children(t);
}

int call_tree_new(const struct incident *in, const struct call_options *o, struct call_tree *out,
		  struct err *err)
{
	struct call_tree t = {.t0_ns = in->head.t0_ns, .t1_ns = in->head.t1_ns,
			      .is_time = stream_is_time(o->stream)};
	int rc = build_stacks(in, o, &t.stacks, err);

	if (!rc && add_costs(&t, in, o))
		rc = err_memory(err, "for the call tree");
	if (rc)
		call_tree_free(&t);
	else
		*out = t;
	return rc;
}

void call_tree_free(struct call_tree *t)
{
	stack_tree_free(&t->stacks);
	free(t->nodes);
	free(t->columns);
	free(t->function_columns);
	memset(t, 0, sizeof(*t));
}

/* ---- by name --------------------------------------------------------------------------------- */

/* Of equals, the one that was on the stack first. */
static int by_exclusive_cost(const void *a, const void *b)
{
	const struct call_function *x = a, *y = b;
	int order = compare_costs(x->cost.exclusive, y->cost.exclusive);

	if (!order)
		order = compare_costs(x->cost.inclusive, y->cost.inclusive);
	if (!order)
		order = compare_u64(x->cost.first_ns, y->cost.first_ns);
	return order ? order : compare_u64(x->text, y->text);
}

static int by_inclusive_cost(const void *a, const void *b)
{
	const struct call_function *x = a, *y = b;
	int order = compare_costs(x->cost.inclusive, y->cost.inclusive);

	return order ? order : by_exclusive_cost(a, b);
}

static void count_node(struct call_tree *t, uint32_t i, struct call_cost *to)
{
	const struct call_cost *cost = &t->nodes[i].cost;

	to->exclusive += cost->exclusive;
	to->samples += cost->samples;
	to->folded += cost->folded;
	if (stack_tree_is_outermost(&t->stacks, i))
		add_inclusive(to, cost);
}

/* A sample counts once for each function of its stack. What was folded is its caller. */
static int fill_function_columns(struct call_tree *t, const struct incident *in)
{
	uint32_t *seen, i, at;
	float *columns = NULL;

	if (t->function_columns)
		return 0;
	seen = calloc((size_t)t->stacks.texts.n + 1, sizeof(*seen));
	if (seen)
		columns = calloc((size_t)t->stacks.texts.n * t->ncolumns + 1, sizeof(*columns));
	for (i = 0; columns && i < in->nsamples; i++) {
		for (at = t->stacks.of_sample[i]; at != CALL_NONE; at = t->nodes[at].parent) {
			uint32_t text = t->stacks.nodes[at].text;

			if (t->nodes[at].cost.inclusive <= 0 || seen[text] == i + 1)
				continue;
			seen[text] = i + 1;
			put_in_columns(t, in, &in->samples[i], (double)in->samples[i].weight,
				       columns + (size_t)text * t->ncolumns);
		}
	}
	free(seen);
	t->function_columns = columns;
	return columns ? 0 : ERR_MEMORY;
}

int call_functions(struct call_tree *t, const struct incident *in, bool by_inclusive,
		   struct call_function **out, uint32_t *n, struct err *err)
{
	struct call_function *all = calloc((size_t)t->stacks.texts.n + 1, sizeof(*all));
	uint32_t i, kept = 0;

	if (!all || fill_function_columns(t, in)) {
		free(all);
		return err_memory(err, "for the functions");
	}
	for (i = 0; i < t->stacks.texts.n; i++) {
		all[i].text = i;
		all[i].name = stack_tree_text(&t->stacks, i);
		all[i].cost.first_ns = UINT64_MAX;
		all[i].cost.columns = t->function_columns + (size_t)i * t->ncolumns;
	}
	for (i = 0; i < t->nnodes; i++) {
		if (t->nodes[i].cost.inclusive > 0)
			count_node(t, i, &all[t->stacks.nodes[i].text].cost);
	}
	for (i = 0; i < t->stacks.texts.n; i++) {
		if (all[i].cost.inclusive > 0)
			all[kept++] = all[i];
	}
	if (kept)
		qsort(all, kept, sizeof(*all),
		      by_inclusive ? by_inclusive_cost : by_exclusive_cost);
	*out = all;
	*n = kept;
	return 0;
}

/* ---- callers and callees --------------------------------------------------------------------- */

/* Where a sample's parts go: a row for each text, as caller and as callee. */
struct around {
	const struct call_tree *t;
	uint32_t focus;                      /* its text */
	struct call_function *as[2], whole;  /* callers, callees */
};

static void add_part(const struct around *a, struct call_function *to, const struct incident *in,
		     const struct incident_sample *s, double weight, bool own)
{
	to->cost.inclusive += weight;
	to->cost.exclusive += own ? weight : 0;
	to->cost.samples += own;
	put_in_columns(a->t, in, s, weight, to->cost.columns);
	if (s->time_ns < to->cost.first_ns)
		to->cost.first_ns = s->time_ns;
	if (s->time_ns > to->cost.last_ns)
		to->cost.last_ns = s->time_ns;
}

static void add_around(struct around *a, const struct incident *in,
		       const struct incident_sample *s, uint32_t leaf)
{
	const struct stack_tree_node *nodes = a->t->stacks.nodes;
	uint32_t below = CALL_NONE, calls = 0, at;
	double part;

	/* What was folded is its caller. */
	while (leaf != CALL_NONE && a->t->nodes[leaf].cost.inclusive <= 0)
		leaf = nodes[leaf].caller;
	for (at = leaf; at != CALL_NONE; at = nodes[at].caller)
		calls += nodes[at].text == a->focus;
	if (!calls)
		return;
	part = (double)s->weight / calls;
	add_part(a, &a->whole, in, s, (double)s->weight, nodes[leaf].text == a->focus);
	for (at = leaf; at != CALL_NONE; below = at, at = nodes[at].caller) {
		uint32_t up = nodes[at].caller;

		if (nodes[at].text != a->focus)
			continue;
		if (up != CALL_NONE)
			add_part(a, &a->as[0][nodes[up].text], in, s, part, false);
		if (below != CALL_NONE)
			add_part(a, &a->as[1][nodes[below].text], in, s, part, below == leaf);
	}
}

/* How many nodes were folded into calls of the function, its callers and callees. */
static void count_folded(struct around *a)
{
	const struct stack_tree_node *nodes = a->t->stacks.nodes;
	uint32_t i;

	for (i = 1; i < a->t->nnodes; i++) {
		uint32_t up = nodes[i].caller, folded = a->t->nodes[i].cost.folded;

		if (a->t->nodes[i].cost.inclusive <= 0)
			continue;
		if (nodes[up].text == a->focus)
			a->as[1][nodes[i].text].cost.folded += folded;
		if (nodes[i].text != a->focus)
			continue;
		a->whole.cost.folded += folded;
		a->as[0][nodes[up].text].cost.folded += a->t->nodes[up].cost.folded;
	}
}

/* Keep rows with a cost, in order. */
static uint32_t keep_rows(const struct around *a, int as)
{
	struct call_function *rows = a->as[as];
	uint32_t n = a->t->stacks.texts.n, i, kept = 0;

	for (i = 0; i < n; i++) {
		rows[i].text = i;
		rows[i].name = stack_tree_text(&a->t->stacks, i);
		if (rows[i].cost.inclusive > 0)
			rows[kept++] = rows[i];
	}
	if (kept)
		qsort(rows, kept, sizeof(*rows), by_inclusive_cost);
	return kept;
}

static int find_around(struct around *a, const struct incident *in, struct call_around *out)
{
	uint32_t n = a->t->stacks.texts.n, ncolumns = a->t->ncolumns, i, as;

	out->columns = calloc(((size_t)n * 2 + 1) * ncolumns, sizeof(*out->columns));
	out->callers = a->as[0] = calloc((size_t)n + 1, sizeof(*a->as[0]));
	out->callees = a->as[1] = calloc((size_t)n + 1, sizeof(*a->as[1]));
	if (!out->columns || !a->as[0] || !a->as[1])
		return ERR_MEMORY;
	a->whole = (struct call_function){.text = a->focus, .cost.first_ns = UINT64_MAX,
					  .cost.columns = out->columns,
					  .name = stack_tree_text(&a->t->stacks, a->focus)};
	for (i = 0; i < 2 * n; i++) {
		as = i >= n;
		a->as[as][i - as * n].cost.first_ns = UINT64_MAX;
		a->as[as][i - as * n].cost.columns = out->columns + (size_t)(i + 1) * ncolumns;
	}
	for (i = 0; i < in->nsamples; i++) {
		if (a->t->stacks.of_sample[i] != CALL_NONE)
			add_around(a, in, &in->samples[i], a->t->stacks.of_sample[i]);
	}
	count_folded(a);
	out->focus = a->whole;
	out->ncallers = keep_rows(a, 0);
	out->ncallees = keep_rows(a, 1);
	return 0;
}

int call_around(const struct call_tree *t, const struct incident *in, const char *focus,
		struct call_around *out, struct err *err)
{
	struct around a = {.t = t};
	int rc = find_focus(&t->stacks, focus, &a.focus, err);

	memset(out, 0, sizeof(*out));
	if (!rc && find_around(&a, in, out)) {
		call_around_free(out);
		rc = err_memory(err, "for callers and callees");
	}
	if (!rc && out->focus.cost.inclusive <= 0) {
		rc = err_set(err, ERR_NOT_FOUND, "all calls of '%.200s' are small, and folded into "
			     "their callers: lower --fold-percent", out->focus.name);
		call_around_free(out);
	}
	return rc;
}

void call_around_free(struct call_around *a)
{
	free(a->callers);
	free(a->callees);
	free(a->columns);
	memset(a, 0, sizeof(*a));
}

/* A share as one letter. Source: PerfView's HistogramController.HistogramString(). */
char call_share_letter(double share)
{
	if (!(share > 0))
		return '_';
	if (share < 0.01)
		return share < 0.001 ? '.' : 'o';
	if (share < 1)
		return (char)('0' + (int)(share * 10));
	return share < 3.5 ? (char)('A' + (int)(share * 10) - 10) : '*';
}

void call_which_text(const float *which, uint32_t n, char out[CALL_WHICH + 1])
{
	double whole = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		whole += which[i];
	for (i = 0; i < n; i++)
		out[i] = which[i] >= whole && whole > 0 ? '9' : call_share_letter(which[i] / whole);
	out[n] = '\0';
}

void call_when_text(const struct call_tree *t, const float when[CALL_WHEN],
		    char out[CALL_WHEN + 1])
{
	double whole = 0;
	unsigned i;

	if (t->is_time)
		whole = (double)(t->t1_ns - t->t0_ns) / CALL_WHEN * (t->nparts ? t->nparts : 1);
	else
		for (i = 0; i < CALL_WHEN; i++)
			whole = when[i] > whole ? (double)when[i] : whole;
	for (i = 0; i < CALL_WHEN; i++)
		out[i] = call_share_letter(whole > 0 ? when[i] / whole : 0);
	out[CALL_WHEN] = '\0';
}
