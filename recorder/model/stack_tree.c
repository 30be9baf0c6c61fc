/*
 * Two steps, because threads of a pool have the same stacks. First the stacks are merged by their
 * texts, whoever took them: that is a shape, and costs each stack of the incident one look-up. Then
 * the shapes are placed below the threads that have samples of them, one thread after the other: an
 * array holds each shape's latest node. Nodes are numbered as they come, so that node is below the
 * thread at hand when its number is one of the thread's: nothing is searched or cleared. Samples of
 * one thread and stack are a pair, which is placed once.
 */
#include "model/stack_tree.h"

#include "model/lists.h"

#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

enum { MARK_NONE, MARK_BROKEN, MARK_TRUNCATED, MARKS };

struct node_list {
	struct stack_tree_node *nodes;
	uint32_t n, capacity;
	struct table table;                  /* those that are found by caller and text */
};

struct building {
	struct stack_tree *t;
	const struct incident *in;
	const struct stack_tree_style *style;
	const void *ctx;
	uint32_t streams;
	struct node_list nodes, shapes;      /* the tree's; the same without threads */
	uint32_t path_capacity;
	uint32_t *twins;                     /* incident_frame_twins() */
	uint32_t *frame_texts;               /* of each frame; STACK_TREE_NONE: not made yet */
	uint32_t *stack_shapes;              /* of each stack; STACK_TREE_NONE: not used */
	uint32_t *leaf_shapes;               /* the same where a sample ends in it */
	uint32_t *roots, *leaf_roots;        /* node of each thread * MARKS + mark */
	struct node_list pairs;              /* caller: a root; text: a stack, in->nstacks = none */
	uint32_t *latest;                    /* the latest pair of each stack */
	struct lists of_root;                /* the pairs of each root */
	uint32_t *placed;                  /* node of each shape below the root at hand, or older */
	uint32_t *path;                      /* shapes on the way up */
	struct buf scratch, escaped;
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* returns  the text, or STACK_TREE_NONE without memory */
static uint32_t with_code(struct stack_tree *t, uint32_t text, enum code_kind kind)
{
	if (text == STACK_TREE_NONE || text < t->ncodes)
		return text;
	if (ARRAY_ROOM(t->codes, t->codes_room, text + 1))
		return STACK_TREE_NONE;
	memset(t->codes + t->ncodes, CODE_NONE, text - t->ncodes);
	t->codes[text] = (uint8_t)kind;
	t->ncodes = text + 1;
	return text;
}

/* The same text where a stack ends in it. */
static uint32_t leaf_text(struct building *b, uint32_t text)
{
	if (!b->style->leaf || text == STACK_TREE_NONE)
		return text;
	buf_reset(&b->scratch);
	buf_put(&b->scratch, stack_tree_text(b->t, text), b->t->texts.items[text].len);
	if (b->scratch.failed)
		return STACK_TREE_NONE;
	if (!b->style->leaf(b->scratch.data, b->scratch.len))
		return text;
	return with_code(b->t, text_table_add(&b->t->texts, b->scratch.data, b->scratch.len),
			 stack_tree_code(b->t, text));
}

/* What stands in scratch, escaped. */
static uint32_t scratch_text(struct building *b)
{
	const struct buf *done = &b->scratch;

	if (b->style->escape) {
		buf_reset(&b->escaped);
		b->style->escape(&b->escaped, buf_text(&b->scratch), b->scratch.len);
		done = &b->escaped;
	}
	if (b->scratch.failed || done->failed)
		return STACK_TREE_NONE;
	return text_table_add(&b->t->texts, buf_text(done), done->len);
}

static uint32_t frame_text(struct building *b, uint32_t frame)
{
	if (b->frame_texts[frame] == STACK_TREE_NONE && b->twins[frame] != frame) {
		b->frame_texts[frame] = frame_text(b, b->twins[frame]);
	} else if (b->frame_texts[frame] == STACK_TREE_NONE) {
		buf_reset(&b->scratch);
		b->style->frame(b->in, b->ctx, frame, &b->scratch);
		b->frame_texts[frame] =
			with_code(b->t, scratch_text(b), incident_frame_code(b->in, frame));
	}
	return b->frame_texts[frame];
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static uint32_t add_node(struct node_list *list, uint32_t caller, uint32_t text)
{
	if (ARRAY_ROOM(list->nodes, list->capacity, list->n + 1))
		return STACK_TREE_NONE;
	list->nodes[list->n] = (struct stack_tree_node){.caller = caller, .text = text};
	return list->n++;
}

static bool same_node(const void *ctx, uint32_t value, const void *key)
{
	const struct stack_tree_node *a = &((const struct stack_tree_node *)ctx)[value], *b = key;

	return a->caller == b->caller && a->text == b->text;
}

static uint64_t hash_node(uint32_t caller, uint32_t text)
{
	return hash_u64((uint64_t)caller << 32 | text);
}

/*
 * Find a node of this caller and text, or add it: a shape; in the tree the root, a process, thread
 * or mark, and after stack_tree_focus() any node. Most have one callee, which was added right after
 * them: it is found there (for roots that is node 0), and only the others are in the table.
 */
static uint32_t find_or_add(struct node_list *list, uint32_t caller, uint32_t text)
{
	struct stack_tree_node node = {.caller = caller, .text = text};
	uint64_t hash = hash_node(caller, text);
	uint32_t found;

	if (text == STACK_TREE_NONE)
		return STACK_TREE_NONE;
	if (caller + 1 < list->n && same_node(list->nodes, caller + 1, &node))
		return caller + 1;
	found = table_find(&list->table, hash, same_node, list->nodes, &node);
	if (found != TABLE_NONE)
		return found;
	found = add_node(list, caller, text);
	if (found != STACK_TREE_NONE && found != caller + 1 &&
	    table_add(&list->table, hash, found))
		return STACK_TREE_NONE;
	return found;
}

/* The same where each caller is a node of the list: the newest one has no callee to be found. */
static uint32_t add_callee(struct node_list *list, uint32_t caller, uint32_t text)
{
	if (list->n && caller + 1 == list->n && text != STACK_TREE_NONE)
		return add_node(list, caller, text);
	return find_or_add(list, caller, text);
}

static bool is_wanted(const struct building *b, const struct incident_sample *s)
{
	return b->streams >> s->stream & 1;
}

/* Mark the stacks that are used, then turn each into its shape; parents come first. */
static int add_shapes(struct building *b)
{
	const struct incident_stack *stacks = b->in->stacks;
	uint32_t *shapes = b->stack_shapes;
	uint32_t i;

	for (i = 0; i < b->in->nsamples; i++) {
		const struct incident_sample *s = &b->in->samples[i];

		if (is_wanted(b, s) && s->stack != STACK_NONE && b->style->frame)
			shapes[s->stack] = 0;
	}
	for (i = b->in->nstacks; i-- > 0;) {
		if (shapes[i] != STACK_TREE_NONE && stacks[i].parent != STACK_NONE)
			shapes[stacks[i].parent] = 0;
	}
	for (i = 0; i < b->in->nstacks; i++) {
		uint32_t parent = stacks[i].parent;

		if (shapes[i] == STACK_TREE_NONE)
			continue;
		shapes[i] = add_callee(&b->shapes,
				       parent == STACK_NONE ? STACK_TREE_NONE : shapes[parent],
				       frame_text(b, stacks[i].frame));
		if (shapes[i] == STACK_TREE_NONE)
			return ERR_MEMORY;
	}
	return 0;
}

static uint32_t leaf_shape(struct building *b, uint32_t stack)
{
	if (!b->style->leaf)
		return b->stack_shapes[stack];
	if (b->leaf_shapes[stack] == STACK_TREE_NONE) {
		struct stack_tree_node shape = b->shapes.nodes[b->stack_shapes[stack]];
		uint32_t text = leaf_text(b, shape.text);

		b->leaf_shapes[stack] = text == shape.text
						? b->stack_shapes[stack]
						: find_or_add(&b->shapes, shape.caller, text);
	}
	return b->leaf_shapes[stack];
}

/* ---- nodes ----------------------------------------------------------------------------------- */

const char *stack_tree_mark(enum stack_quality quality)
{
	if (quality == QUALITY_BROKEN)
		return "BROKEN";
	return quality == QUALITY_TRUNCATED ? "[truncated]" : NULL;
}

static unsigned mark_of(const struct building *b, const struct incident_sample *s)
{
	if (!b->style->marks || !stack_tree_mark((enum stack_quality)s->quality))
		return MARK_NONE;
	return s->quality == QUALITY_BROKEN ? MARK_BROKEN : MARK_TRUNCATED;
}

/* The node of a process or thread; made is the style's function that says its text. */
static uint32_t add_named(struct building *b, uint32_t caller, uint32_t thread,
			  void (*made)(const struct incident *in, const void *ctx, uint32_t thread,
				       struct buf *out))
{
	buf_reset(&b->scratch);
	made(b->in, b->ctx, thread, &b->scratch);
	return find_or_add(&b->nodes, caller, scratch_text(b));
}

/* Of several incidents, the node of the thread's. */
static uint32_t add_part(struct building *b, uint32_t caller, uint32_t thread)
{
	uint32_t part = b->in->processes[b->in->threads[thread].process].part;

	buf_reset(&b->scratch);
	buf_puts(&b->scratch, b->in->parts[part]);
	return find_or_add(&b->nodes, caller, scratch_text(b));
}

static uint32_t add_root(struct building *b, const struct incident_sample *s)
{
	const struct stack_tree_style *style = b->style;
	uint32_t node = style->root ? 0 : STACK_TREE_NONE;

	if (style->process && (s->thread != THREAD_NONE || !style->root)) {
		if (b->in->nparts && s->thread != THREAD_NONE) {
			node = add_part(b, node, s->thread);
			if (node == STACK_TREE_NONE)
				return node;
		}
		node = add_named(b, node, s->thread, style->process);
		if (style->thread && node != STACK_TREE_NONE)
			node = add_named(b, node, s->thread, style->thread);
	}
	if (node == STACK_TREE_NONE || mark_of(b, s) == MARK_NONE)
		return node;
	buf_reset(&b->scratch);
	buf_puts(&b->scratch, stack_tree_mark((enum stack_quality)s->quality));
	return find_or_add(&b->nodes, node, scratch_text(b));
}

/*
 * The node of a shape below a root whose nodes have numbers from `base` on: up to the first caller
 * that is placed, then down, adding.
 */
static uint32_t place(struct building *b, uint32_t root, uint32_t base, uint32_t shape)
{
	uint32_t node = root, depth = 0;

	for (; shape != STACK_TREE_NONE; shape = b->shapes.nodes[shape].caller) {
		if (b->placed[shape] != STACK_TREE_NONE && b->placed[shape] >= base) {
			node = b->placed[shape];
			break;
		}
		if (ARRAY_ROOM(b->path, b->path_capacity, depth + 1))
			return STACK_TREE_NONE;
		b->path[depth++] = shape;
	}
	while (depth && node != STACK_TREE_NONE) {
		shape = b->path[--depth];
		node = add_node(&b->nodes, node, b->shapes.nodes[shape].text);
		b->placed[shape] = node;
	}
	return node;
}

/* The node below which a sample's stack goes, or to which it belongs when it has none. */
static uint32_t top_of(struct building *b, const struct incident_sample *s)
{
	uint32_t slot = s->thread == THREAD_NONE ? b->in->nthreads : s->thread;
	uint32_t group = slot * MARKS + mark_of(b, s);

	if (b->roots[group] == STACK_TREE_NONE)
		b->roots[group] = add_root(b, s);
	if (b->roots[group] == STACK_TREE_NONE || s->stack != STACK_NONE)
		return b->roots[group];
	if (b->leaf_roots[group] == STACK_TREE_NONE) {
		struct stack_tree_node root = b->nodes.nodes[b->roots[group]];

		b->leaf_roots[group] =
			find_or_add(&b->nodes, root.caller, leaf_text(b, root.text));
	}
	return b->leaf_roots[group];
}

/* ---- building -------------------------------------------------------------------------------- */

/* The pair of a root and a stack, whose shape is made with its first pair. */
static uint32_t find_pair(struct building *b, uint32_t root, uint32_t stack)
{
	uint32_t npairs = b->pairs.n, pair = find_or_add(&b->pairs, root, stack);

	if (pair == npairs && stack < b->in->nstacks && leaf_shape(b, stack) == STACK_TREE_NONE)
		return STACK_TREE_NONE;
	return b->latest[stack] = pair;
}

enum { AHEAD = 16 };

/* Prefetch what finding a later sample's pair will look at. */
static void look_ahead(const struct building *b, const struct incident_sample *s)
{
	uint32_t slot = s->thread == THREAD_NONE ? b->in->nthreads : s->thread;
	uint32_t root = b->roots[slot * MARKS + mark_of(b, s)];

	if (s->stack == STACK_NONE)
		return;
	__builtin_prefetch(&b->latest[s->stack]);
	table_prefetch(&b->pairs.table, hash_node(root, s->stack));
}

/* of_sample: the pairs; the root, processes, threads and marks are in the tree then. */
static int add_pairs(struct building *b)
{
	struct stack_tree *t = b->t;
	uint32_t i, root, stack, pair;

	for (i = 0; i < b->in->nsamples; i++) {
		const struct incident_sample *s = &b->in->samples[i];

		if (b->in->nsamples - i > AHEAD)
			look_ahead(b, s + AHEAD);
		if (!is_wanted(b, s))
			continue;
		root = top_of(b, s);
		if (root == STACK_TREE_NONE)
			return ERR_MEMORY;
		stack = s->stack == STACK_NONE || !b->style->frame ? b->in->nstacks : s->stack;
		pair = b->latest[stack];
		if (pair == STACK_TREE_NONE || b->pairs.nodes[pair].caller != root)
			pair = find_pair(b, root, stack);
		if (pair == STACK_TREE_NONE)
			return ERR_MEMORY;
		t->of_sample[i] = pair;
		t->nsamples++;
	}
	table_free(&b->pairs.table);
	return 0;
}

/* For lists_make(). */
static uint32_t root_of(const void *ctx, uint32_t pair)
{
	return ((const struct building *)ctx)->pairs.nodes[pair].caller;
}

/* text of each pair: its node. */
static int place_pairs(struct building *b)
{
	uint32_t ntops = b->nodes.n, root, base, pair;
	struct list list;

	b->placed = array_of_none(b->shapes.n);
	if (!b->placed || lists_make(&b->of_root, ntops, b->pairs.n, root_of, b))
		return ERR_MEMORY;
	for (root = 0; root < ntops; root++) {
		base = b->nodes.n;
		for (list = lists_get(&b->of_root, root); list_next(&list, &pair);) {
			uint32_t *at = &b->pairs.nodes[pair].text;

			*at = place(b, root, base, *at == b->in->nstacks ? STACK_TREE_NONE
									 : leaf_shape(b, *at));
			if (*at == STACK_TREE_NONE)
				return ERR_MEMORY;
		}
	}
	return 0;
}

static int place_samples(struct building *b)
{
	uint32_t *of_sample = b->t->of_sample, i;

	if (add_pairs(b) || place_pairs(b))
		return ERR_MEMORY;
	for (i = 0; i < b->in->nsamples; i++)
		if (of_sample[i] != STACK_TREE_NONE)
			of_sample[i] = b->pairs.nodes[of_sample[i]].text;
	return 0;
}

static int build(struct building *b)
{
	const struct incident *in = b->in;
	size_t ngroups = ((size_t)in->nthreads + 1) * MARKS;
	int rc;

	b->t->of_sample = array_of_none(in->nsamples);
	b->twins = incident_frame_twins(in);
	b->frame_texts = array_of_none(in->nframes);
	b->stack_shapes = array_of_none(in->nstacks);
	b->leaf_shapes = array_of_none(b->style->leaf ? in->nstacks : 0);
	b->roots = array_of_none(ngroups);
	b->leaf_roots = array_of_none(ngroups);
	b->latest = array_of_none((size_t)in->nstacks + 1);
	if (!b->t->of_sample || !b->twins || !b->frame_texts || !b->stack_shapes ||
	    !b->leaf_shapes || !b->roots || !b->leaf_roots || !b->latest)
		return ERR_MEMORY;
	if (b->style->root) {
		buf_puts(&b->scratch, b->style->root);
		if (find_or_add(&b->nodes, STACK_TREE_NONE, scratch_text(b)) == STACK_TREE_NONE)
			return ERR_MEMORY;
	}
	rc = add_shapes(b);
	return rc ? rc : place_samples(b);
}

static void free_building(struct building *b)
{
	table_free(&b->nodes.table);
	table_free(&b->shapes.table);
	free(b->shapes.nodes);
	free(b->twins);
	free(b->frame_texts);
	free(b->stack_shapes);
	free(b->leaf_shapes);
	free(b->roots);
	free(b->leaf_roots);
	free(b->latest);
	table_free(&b->pairs.table);
	free(b->pairs.nodes);
	lists_free(&b->of_root);
	free(b->placed);
	free(b->path);
	buf_free(&b->scratch);
	buf_free(&b->escaped);
}

int stack_tree_build(struct stack_tree *t, const struct incident *in, uint32_t streams,
		     const struct stack_tree_style *style, const void *ctx, struct err *err)
{
	struct stack_tree made = {
		.nlevels = (style->root ? 1u : 0) + (style->process ? 1u : 0) +
			   (style->thread ? 1u : 0) + (style->process && in->nparts ? 1u : 0),
	};
	struct building b = {
		.t = &made, .in = in, .style = style, .ctx = ctx, .streams = streams,
	};
	int rc = build(&b);

	made.nodes = b.nodes.nodes;
	made.nnodes = b.nodes.n;
	free_building(&b);
	if (rc) {
		stack_tree_free(&made);
		return err_memory(err, "while building the call tree");
	}
	*t = made;
	return 0;
}

void stack_tree_drop_samples(struct stack_tree *t)
{
	free(t->of_sample);
	t->of_sample = NULL;
}

void stack_tree_keep_texts(struct stack_tree *t)
{
	stack_tree_drop_samples(t);
	free(t->nodes);
	t->nodes = NULL;
	t->nnodes = t->nsamples = 0;
}

void stack_tree_free(struct stack_tree *t)
{
	stack_tree_keep_texts(t);
	text_table_free(&t->texts);
	free(t->codes);
	memset(t, 0, sizeof(*t));
}

bool stack_tree_has_managed(const struct stack_tree *t)
{
	uint32_t i;

	for (i = 0; i < t->ncodes; i++)
		if (t->codes[i] >= CODE_JAVA && t->codes[i] != CODE_GENERATED)
			break;
	return i < t->ncodes;
}

/* ---- one function ---------------------------------------------------------------------------- */

/*
 * Node 1 below it the callers of a node of the old tree, upwards to the frame that was called
 * first.
 */
static uint32_t add_callers(struct node_list *list, const struct stack_tree *old, uint32_t node)
{
	uint32_t to = 1, up;

	for (up = old->nodes[node].caller; up && to != STACK_TREE_NONE; up = old->nodes[up].caller)
		to = find_or_add(list, to, old->nodes[up].text);
	return to;
}

/* places[node]: the node of the new tree for samples that end at a node of the old one. */
static int focus(struct node_list *list, const struct stack_tree *old, uint32_t text, bool callers,
		 uint32_t *places)
{
	uint32_t i;

	if (find_or_add(list, STACK_TREE_NONE, old->nodes[0].text) == STACK_TREE_NONE ||
	    find_or_add(list, 0, text) == STACK_TREE_NONE)
		return ERR_MEMORY;
	for (i = 1; i < old->nnodes; i++) {
		const struct stack_tree_node *node = &old->nodes[i];

		/* A deeper call of the function begins anew. */
		if (node->text == text)
			places[i] = callers ? add_callers(list, old, i) : 1;
		else if (places[node->caller] == STACK_TREE_NONE)
			continue;
		else
			places[i] = callers ? places[node->caller]
					    : find_or_add(list, places[node->caller], node->text);
		if (places[i] == STACK_TREE_NONE)
			return ERR_MEMORY;
	}
	return 0;
}

int stack_tree_focus(struct stack_tree *t, const struct incident *in, uint32_t text, bool callers,
		     struct err *err)
{
	struct node_list list = {0};
	uint32_t *places = array_of_none(t->nnodes), i;
	int rc = places ? focus(&list, t, text, callers, places) : ERR_MEMORY;

	t->nsamples = 0;
	for (i = 0; !rc && i < in->nsamples; i++) {
		if (t->of_sample[i] != STACK_TREE_NONE)
			t->of_sample[i] = places[t->of_sample[i]];
		t->nsamples += t->of_sample[i] != STACK_TREE_NONE;
	}
	free(places);
	table_free(&list.table);
	free(t->nodes);
	t->nodes = list.nodes;
	t->nnodes = list.n;
	t->nlevels = 1;
	return rc ? err_memory(err, "while building the tree of one function") : 0;
}

/* ---- adding up ------------------------------------------------------------------------------- */

uint64_t *stack_tree_own(const struct stack_tree *t, const struct incident *in,
			 stack_tree_weight *weigh)
{
	uint64_t *own = calloc((size_t)t->nnodes + 1, sizeof(*own));
	uint32_t i;

	for (i = 0; own && i < in->nsamples; i++) {
		if (t->of_sample[i] != STACK_TREE_NONE)
			own[t->of_sample[i]] += weigh(in, &in->samples[i]);
	}
	return own;
}

void stack_tree_add_up(const struct stack_tree *t, uint64_t *weights)
{
	uint32_t i;

	for (i = t->nnodes; i-- > 0;) {
		if (t->nodes[i].caller != STACK_TREE_NONE)
			weights[t->nodes[i].caller] += weights[i];
	}
}

bool stack_tree_is_frame(const struct stack_tree *t, uint32_t node)
{
	uint32_t level;

	for (level = 0; level < t->nlevels && node != STACK_TREE_NONE; level++)
		node = t->nodes[node].caller;
	return node != STACK_TREE_NONE;
}

bool stack_tree_is_outermost(const struct stack_tree *t, uint32_t node)
{
	uint32_t text = t->nodes[node].text;

	for (node = t->nodes[node].caller; node != STACK_TREE_NONE; node = t->nodes[node].caller) {
		if (t->nodes[node].text == text && stack_tree_is_frame(t, node))
			return false;
	}
	return true;
}

int stack_tree_path(const struct stack_tree *t, uint32_t node, uint32_t skip,
		    struct stack_tree_path *path)
{
	uint32_t n = 0, up;

	path->n = 0;
	for (up = node; up != STACK_TREE_NONE; up = t->nodes[up].caller)
		n++;
	if (ARRAY_ROOM(path->texts, path->capacity, n))
		return ERR_MEMORY;
	n -= skip < n ? skip : n - 1;
	path->n = n;
	for (up = node; n-- > 0; up = t->nodes[up].caller)
		path->texts[n] = t->nodes[up].text;
	return 0;
}
