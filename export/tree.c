/*
 * Two steps, because threads of a pool have the same stacks. First the stacks are merged by their
 * texts, whoever took them: that is a shape, and costs each stack of the incident one look-up. Then
 * the samples' shapes are placed thread by thread: where a shape has its node below the thread at
 * hand stands in an array, and nodes are numbered as they come, so a node below this thread is one
 * with a number from the thread's first on, and nothing is searched or cleared.
 */
#include "export/tree.h"

#include <stdlib.h>
#include <string.h>

/* Where a broken or cut walk shows, right below the thread: see exports-and-store.md, section 1. */
enum { WALK_WHOLE, WALK_BROKEN, WALK_TRUNCATED, WALKS };

struct tree_build {
	const struct incident *in;
	const struct export_options *opt;
	const struct tree_style *style;
	struct table texts, shapes, tops;
	struct tree_node *shape_nodes;       /* like nodes, but without a thread */
	uint32_t nshapes;
	uint32_t texts_cap, shapes_cap, nodes_cap, path_cap;
	uint32_t *frame_texts;               /* text of each frame; TREE_NONE = not met yet */
	uint32_t *stack_shapes;              /* shape of each stack; TREE_NONE = not used */
	uint32_t *leaf_shapes;               /* the same where a sample ends in it */
	uint32_t *roots, *leaf_roots;        /* node of each thread * WALKS + walk */
	uint32_t *first, *order;             /* samples with a stack, by root: where each begins */
	uint32_t *placed;                    /* node of each shape below the root at hand, or older */
	uint32_t *path;                      /* shapes on the way up */
	struct buf scratch, escaped;
};

/* items with room for one more, at the same place or another; NULL without memory. */
static void *room(void *items, uint32_t n, uint32_t *cap, size_t item_bytes)
{
	uint32_t bigger = *cap ? *cap * 2 : 64;

	if (n < *cap)
		return items;
	if (n >= UINT32_MAX / 2 || bigger > SIZE_MAX / item_bytes)
		return NULL;
	items = realloc(items, bigger * item_bytes);
	if (items)
		*cap = bigger;
	return items;
}

/* ---- texts and nodes ------------------------------------------------------------------------- */

struct text_key {
	const char *text;
	size_t n;
};

static bool same_text(const void *ctx, uint32_t value, const void *key)
{
	const struct tree *t = ctx;
	const struct text_key *k = key;

	return t->texts[value].len == k->n && memcmp(tree_text(t, value), k->text, k->n) == 0;
}

static uint32_t text_add(struct tree *t, const char *text, size_t n)
{
	struct text_key key = {.text = text, .n = n};
	uint64_t hash = hash_bytes(text, n);
	uint32_t found = table_find(&t->build->texts, hash, same_text, t, &key);
	struct tree_text *items;

	if (found != TABLE_NONE)
		return found;
	items = room(t->texts, t->ntexts, &t->build->texts_cap, sizeof(*items));
	if (!items)
		return TREE_NONE;
	t->texts = items;
	items[t->ntexts].at = (uint32_t)t->bytes.len;
	items[t->ntexts].len = (uint32_t)n;
	buf_put(&t->bytes, text, n);
	if (t->bytes.failed || table_add(&t->build->texts, hash, t->ntexts))
		return TREE_NONE;
	return t->ntexts++;
}

/* The same text where a stack ends in it. */
static uint32_t leaf_text(struct tree *t, uint32_t text)
{
	struct tree_build *b = t->build;

	if (!b->style->leaf || text == TREE_NONE)
		return text;
	buf_reset(&b->scratch);
	buf_put(&b->scratch, tree_text(t, text), t->texts[text].len);
	if (b->scratch.failed)
		return TREE_NONE;
	if (!b->style->leaf(b->scratch.data, b->scratch.len))
		return text;
	return text_add(t, b->scratch.data, b->scratch.len);
}

/* What the style has put into scratch, escaped, as a text of the tree. */
static uint32_t scratch_text(struct tree *t)
{
	struct tree_build *b = t->build;
	const struct buf *done = &b->scratch;

	if (b->style->escape) {
		buf_reset(&b->escaped);
		b->style->escape(&b->escaped, buf_text(&b->scratch), b->scratch.len);
		done = &b->escaped;
	}
	if (b->scratch.failed || done->failed)
		return TREE_NONE;
	return text_add(t, buf_text(done), done->len);
}

static uint32_t frame_text(struct tree *t, uint32_t frame)
{
	struct tree_build *b = t->build;

	if (b->frame_texts[frame] == TREE_NONE) {
		buf_reset(&b->scratch);
		b->style->frame(b->in, b->opt, frame, &b->scratch);
		b->frame_texts[frame] = scratch_text(t);
	}
	return b->frame_texts[frame];
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static bool same_shape(const void *ctx, uint32_t value, const void *key)
{
	const struct tree_node *a = &((const struct tree_build *)ctx)->shape_nodes[value];
	const struct tree_node *b = key;

	return a->caller == b->caller && a->text == b->text;
}

static uint32_t shape_add(struct tree_build *b, uint32_t caller, uint32_t text)
{
	struct tree_node shape = {.caller = caller, .text = text}, *items;
	uint64_t hash = hash_u64((uint64_t)caller << 32 | text);
	uint32_t found;

	if (text == TREE_NONE)
		return TREE_NONE;
	found = table_find(&b->shapes, hash, same_shape, b, &shape);
	if (found != TABLE_NONE)
		return found;
	items = room(b->shape_nodes, b->nshapes, &b->shapes_cap, sizeof(*items));
	if (!items)
		return TREE_NONE;
	b->shape_nodes = items;
	items[b->nshapes] = shape;
	if (table_add(&b->shapes, hash, b->nshapes))
		return TREE_NONE;
	return b->nshapes++;
}

/* Mark the stacks that are used, then turn each into its shape; parents come first. */
static int add_shapes(struct tree *t)
{
	struct tree_build *b = t->build;
	const struct incident_stack *stacks = b->in->stacks;
	uint32_t *shapes = b->stack_shapes;
	uint32_t i;

	for (i = 0; i < b->in->nsamples; i++) {
		const struct incident_sample *s = &b->in->samples[i];

		if (export_takes(b->opt, s) && s->stack != STACK_NONE)
			shapes[s->stack] = 0;
	}
	for (i = b->in->nstacks; i-- > 0;) {
		if (shapes[i] != TREE_NONE && stacks[i].parent != STACK_NONE)
			shapes[stacks[i].parent] = 0;
	}
	for (i = 0; i < b->in->nstacks; i++) {
		uint32_t parent = stacks[i].parent;

		if (shapes[i] == TREE_NONE)
			continue;
		shapes[i] = shape_add(b, parent == STACK_NONE ? TREE_NONE : shapes[parent],
				      frame_text(t, stacks[i].frame));
		if (shapes[i] == TREE_NONE)
			return ERR_MEMORY;
	}
	return 0;
}

static uint32_t leaf_shape(struct tree *t, uint32_t stack)
{
	struct tree_build *b = t->build;

	if (!b->style->leaf)
		return b->stack_shapes[stack];
	if (b->leaf_shapes[stack] == TREE_NONE) {
		const struct tree_node *shape = &b->shape_nodes[b->stack_shapes[stack]];

		b->leaf_shapes[stack] = shape_add(b, shape->caller, leaf_text(t, shape->text));
	}
	return b->leaf_shapes[stack];
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static uint32_t node_add(struct tree *t, uint32_t caller, uint32_t text)
{
	struct tree_node *nodes = room(t->nodes, t->nnodes, &t->build->nodes_cap, sizeof(*nodes));

	if (!nodes)
		return TREE_NONE;
	t->nodes = nodes;
	nodes[t->nnodes] = (struct tree_node){.caller = caller, .text = text};
	return t->nnodes++;
}

static bool same_top(const void *ctx, uint32_t value, const void *key)
{
	const struct tree_node *a = &((const struct tree *)ctx)->nodes[value];
	const struct tree_node *b = key;

	return a->caller == b->caller && a->text == b->text;
}

/* A process, thread or walk. */
static uint32_t top_add(struct tree *t, uint32_t caller, uint32_t text)
{
	struct tree_node node = {.caller = caller, .text = text};
	uint64_t hash = hash_pair(caller, text);
	uint32_t found;

	if (text == TREE_NONE)
		return TREE_NONE;
	found = table_find(&t->build->tops, hash, same_top, t, &node);
	if (found != TABLE_NONE)
		return found;
	found = node_add(t, caller, text);
	if (found != TREE_NONE && table_add(&t->build->tops, hash, found))
		return TREE_NONE;
	return found;
}

static uint32_t root_add(struct tree *t, uint32_t thread, unsigned walk)
{
	static const char *const walks[WALKS] = {
		[WALK_BROKEN] = "BROKEN",
		[WALK_TRUNCATED] = "[truncated]",
	};
	struct tree_build *b = t->build;
	uint32_t process, node;

	buf_reset(&b->scratch);
	b->style->process(b->in, b->opt, thread, &b->scratch);
	process = top_add(t, TREE_NONE, scratch_text(t));
	if (process == TREE_NONE)
		return TREE_NONE;
	buf_reset(&b->scratch);
	b->style->thread(b->in, b->opt, thread, &b->scratch);
	node = top_add(t, process, scratch_text(t));
	if (node == TREE_NONE || !walks[walk])
		return node;
	buf_reset(&b->scratch);
	buf_puts(&b->scratch, walks[walk]);
	return top_add(t, node, scratch_text(t));
}

/*
 * The node of a shape below a root whose nodes have numbers from `base` on: up to the first caller
 * that is placed, then down, adding.
 */
static uint32_t place(struct tree *t, uint32_t root, uint32_t base, uint32_t shape)
{
	struct tree_build *b = t->build;
	uint32_t node = root, depth = 0;
	uint32_t *path;

	for (; shape != TREE_NONE; shape = b->shape_nodes[shape].caller) {
		if (b->placed[shape] != TREE_NONE && b->placed[shape] >= base) {
			node = b->placed[shape];
			break;
		}
		path = room(b->path, depth, &b->path_cap, sizeof(*path));
		if (!path)
			return TREE_NONE;
		b->path = path;
		path[depth++] = shape;
	}
	while (depth && node != TREE_NONE) {
		shape = b->path[--depth];
		node = node_add(t, node, b->shape_nodes[shape].text);
		b->placed[shape] = node;
	}
	return node;
}

static unsigned walk_of(const struct incident_sample *s)
{
	if (s->quality == QUALITY_BROKEN)
		return WALK_BROKEN;
	return s->quality == QUALITY_TRUNCATED ? WALK_TRUNCATED : WALK_WHOLE;
}

/* The node below which a sample's stack goes, or to which it belongs when it has none. */
static uint32_t top_of(struct tree *t, const struct incident_sample *s)
{
	struct tree_build *b = t->build;
	uint32_t slot = s->thread == THREAD_NONE ? b->in->nthreads : s->thread;
	uint32_t group = slot * WALKS + walk_of(s);

	if (b->roots[group] == TREE_NONE)
		b->roots[group] = root_add(t, s->thread, walk_of(s));
	if (b->roots[group] == TREE_NONE || s->stack != STACK_NONE)
		return b->roots[group];
	if (b->leaf_roots[group] == TREE_NONE) {
		struct tree_node root = t->nodes[b->roots[group]];

		b->leaf_roots[group] = top_add(t, root.caller, leaf_text(t, root.text));
	}
	return b->leaf_roots[group];
}

/* ---- building -------------------------------------------------------------------------------- */

/* n numbers, all TREE_NONE; at least one, so that NULL means no memory. */
static uint32_t *numbers(size_t n)
{
	uint32_t *items = malloc((n + 1) * sizeof(*items));

	if (items)
		memset(items, 0xff, (n + 1) * sizeof(*items));
	return items;
}

/* of_sample: processes, threads and walks; and the shapes of the stacks that samples end in. */
static int add_tops(struct tree *t)
{
	struct tree_build *b = t->build;
	uint32_t i;

	for (i = 0; i < b->in->nsamples; i++) {
		const struct incident_sample *s = &b->in->samples[i];

		if (!export_takes(b->opt, s))
			continue;
		t->of_sample[i] = top_of(t, s);
		if (t->of_sample[i] == TREE_NONE ||
		    (s->stack != STACK_NONE && leaf_shape(t, s->stack) == TREE_NONE))
			return ERR_MEMORY;
		t->nsamples++;
	}
	return 0;
}

static bool has_stack(const struct tree *t, uint32_t sample)
{
	return t->of_sample[sample] != TREE_NONE &&
	       t->build->in->samples[sample].stack != STACK_NONE;
}

/* first[root] becomes where the samples of a root begin in order, which is by root, then time. */
static int order_samples(struct tree *t)
{
	struct tree_build *b = t->build;
	uint32_t ntops = t->nnodes, i;

	b->first = calloc((size_t)ntops + 2, sizeof(*b->first));
	b->order = malloc(((size_t)t->nsamples + 1) * sizeof(*b->order));
	if (!b->first || !b->order)
		return ERR_MEMORY;
	for (i = 0; i < b->in->nsamples; i++) {
		if (has_stack(t, i))
			b->first[t->of_sample[i] + 2]++;
	}
	for (i = 2; i < ntops + 2; i++)
		b->first[i] += b->first[i - 1];
	for (i = 0; i < b->in->nsamples; i++) {
		if (has_stack(t, i))
			b->order[b->first[t->of_sample[i] + 1]++] = i;
	}
	return 0;
}

static int place_samples(struct tree *t)
{
	struct tree_build *b = t->build;
	const struct incident_sample *samples = b->in->samples;
	uint32_t ntops = t->nnodes, root, base, i;

	b->placed = numbers(b->nshapes);
	if (!b->placed)
		return ERR_MEMORY;
	for (root = 0; root < ntops; root++) {
		base = t->nnodes;
		for (i = b->first[root]; i < b->first[root + 1]; i++) {
			uint32_t sample = b->order[i];
			uint32_t node = place(t, root, base, leaf_shape(t, samples[sample].stack));

			if (node == TREE_NONE)
				return ERR_MEMORY;
			t->of_sample[sample] = node;
		}
	}
	return 0;
}

static int build(struct tree *t)
{
	struct tree_build *b = t->build;
	const struct incident *in = b->in;
	size_t ngroups = ((size_t)in->nthreads + 1) * WALKS;
	int rc;

	t->of_sample = numbers(in->nsamples);
	b->frame_texts = numbers(in->nframes);
	b->stack_shapes = numbers(in->nstacks);
	b->leaf_shapes = numbers(b->style->leaf ? in->nstacks : 0);
	b->roots = numbers(ngroups);
	b->leaf_roots = numbers(ngroups);
	if (!t->of_sample || !b->frame_texts || !b->stack_shapes || !b->leaf_shapes || !b->roots ||
	    !b->leaf_roots)
		return ERR_MEMORY;
	rc = add_shapes(t);
	if (!rc)
		rc = add_tops(t);
	if (!rc)
		rc = order_samples(t);
	return rc ? rc : place_samples(t);
}

static void build_free(struct tree_build *b)
{
	if (!b)
		return;
	table_free(&b->texts);
	table_free(&b->shapes);
	table_free(&b->tops);
	free(b->shape_nodes);
	free(b->frame_texts);
	free(b->stack_shapes);
	free(b->leaf_shapes);
	free(b->roots);
	free(b->leaf_roots);
	free(b->first);
	free(b->order);
	free(b->placed);
	free(b->path);
	buf_free(&b->scratch);
	buf_free(&b->escaped);
	free(b);
}

int tree_build(struct tree *t, const struct incident *in, const struct export_options *opt,
	       const struct tree_style *style, struct err *err)
{
	int rc = ERR_MEMORY;

	t->build = calloc(1, sizeof(*t->build));
	if (t->build) {
		t->build->in = in;
		t->build->opt = opt;
		t->build->style = style;
		rc = build(t);
	}
	build_free(t->build);
	t->build = NULL;
	return rc ? err_memory(err, "while building the call tree") : 0;
}

void tree_free(struct tree *t)
{
	free(t->texts);
	free(t->nodes);
	free(t->of_sample);
	buf_free(&t->bytes);
	memset(t, 0, sizeof(*t));
}
