/*
 * Two steps, because threads of a pool have the same stacks. First the stacks are merged by their
 * texts, whoever took them: that is a shape, and costs each stack of the incident one look-up. Then
 * each sample's shape is placed below its thread; a place that was met before costs one look-up.
 */
#include "export/tree.h"

#include <stdlib.h>
#include <string.h>

/* Where a broken or cut walk shows, right below the thread: see exports-and-store.md, section 1. */
enum { WALK_WHOLE, WALK_BROKEN, WALK_TRUNCATED, WALKS };

/* A node by what it is: below which thread (its node), and which shape. */
struct place {
	uint32_t root, shape;
};

/* Where a stack's sample was placed last: mostly, the next one is of the same thread. */
struct recent {
	uint32_t group, node;
};

struct tree_build {
	const struct incident *in;
	const struct export_options *opt;
	const struct tree_style *style;
	struct table texts, shapes, tops, places;
	struct tree_node *shape_nodes;       /* like nodes, but without a thread */
	struct place *placed;                /* of each node; roots and processes have no shape */
	uint32_t nshapes;
	uint32_t texts_cap, shapes_cap, nodes_cap, placed_cap, path_cap;
	uint32_t *frame_texts;               /* text of each frame; TREE_NONE = not met yet */
	uint32_t *stack_shapes;              /* shape of each stack; TREE_NONE = not used */
	uint32_t *leaf_shapes;               /* the same where a sample ends in it */
	uint32_t *roots, *leaf_roots;        /* node of each thread * WALKS + walk */
	struct recent *recent;               /* of each stack */
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
	uint64_t hash = hash_pair(caller, text);
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

	if (b->leaf_shapes[stack] == TREE_NONE) {
		const struct tree_node *shape = &b->shape_nodes[b->stack_shapes[stack]];

		b->leaf_shapes[stack] = shape_add(b, shape->caller, leaf_text(t, shape->text));
	}
	return b->leaf_shapes[stack];
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static uint32_t node_add(struct tree *t, struct tree_node node, struct place place)
{
	struct tree_build *b = t->build;
	struct place *placed = room(b->placed, t->nnodes, &b->placed_cap, sizeof(*placed));
	struct tree_node *nodes;

	if (!placed)
		return TREE_NONE;
	b->placed = placed;
	nodes = room(t->nodes, t->nnodes, &b->nodes_cap, sizeof(*nodes));
	if (!nodes)
		return TREE_NONE;
	t->nodes = nodes;
	placed[t->nnodes] = place;
	nodes[t->nnodes] = node;
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
	struct place nowhere = {.root = TREE_NONE, .shape = TREE_NONE};
	struct tree_node node = {.caller = caller, .text = text};
	uint64_t hash = hash_pair(caller, text);
	uint32_t found;

	if (text == TREE_NONE)
		return TREE_NONE;
	found = table_find(&t->build->tops, hash, same_top, t, &node);
	if (found != TABLE_NONE)
		return found;
	found = node_add(t, node, nowhere);
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

static bool same_place(const void *ctx, uint32_t value, const void *key)
{
	const struct place *a = &((const struct tree_build *)ctx)->placed[value];
	const struct place *b = key;

	return a->root == b->root && a->shape == b->shape;
}

/* The node of a shape below a root: up to the first caller that is placed, then down, adding. */
static uint32_t place(struct tree *t, uint32_t root, uint32_t shape)
{
	struct tree_build *b = t->build;
	struct place key = {.root = root};
	uint32_t node = root, depth = 0, found;
	uint32_t *path;

	for (; shape != TREE_NONE; shape = b->shape_nodes[shape].caller) {
		key.shape = shape;
		found = table_find(&b->places, hash_pair(root, shape), same_place, b, &key);
		if (found != TABLE_NONE) {
			node = found;
			break;
		}
		path = room(b->path, depth, &b->path_cap, sizeof(*path));
		if (!path)
			return TREE_NONE;
		b->path = path;
		path[depth++] = shape;
	}
	while (depth && node != TREE_NONE) {
		key.shape = b->path[--depth];
		node = node_add(t, (struct tree_node){node, b->shape_nodes[key.shape].text}, key);
		if (node != TREE_NONE && table_add(&b->places, hash_pair(root, key.shape), node))
			return TREE_NONE;
	}
	return node;
}

static unsigned walk_of(const struct incident_sample *s)
{
	if (s->quality == QUALITY_BROKEN)
		return WALK_BROKEN;
	return s->quality == QUALITY_TRUNCATED ? WALK_TRUNCATED : WALK_WHOLE;
}

static uint32_t sample_node(struct tree *t, const struct incident_sample *s)
{
	struct tree_build *b = t->build;
	uint32_t slot = s->thread == THREAD_NONE ? b->in->nthreads : s->thread;
	uint32_t group = slot * WALKS + walk_of(s), shape;
	struct recent *recent;

	if (b->roots[group] == TREE_NONE)
		b->roots[group] = root_add(t, s->thread, walk_of(s));
	if (b->roots[group] == TREE_NONE)
		return TREE_NONE;
	if (s->stack != STACK_NONE) {
		recent = &b->recent[s->stack];
		if (recent->node != TREE_NONE && recent->group == group)
			return recent->node;
		shape = leaf_shape(t, s->stack);
		recent->group = group;
		recent->node = shape == TREE_NONE ? shape : place(t, b->roots[group], shape);
		return recent->node;
	}
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

static int build(struct tree *t)
{
	struct tree_build *b = t->build;
	const struct incident *in = b->in;
	size_t ngroups = ((size_t)in->nthreads + 1) * WALKS;
	uint32_t i;

	t->of_sample = numbers(in->nsamples);
	b->frame_texts = numbers(in->nframes);
	b->stack_shapes = numbers(in->nstacks);
	b->leaf_shapes = numbers(in->nstacks);
	b->recent = malloc(((size_t)in->nstacks + 1) * sizeof(*b->recent));
	b->roots = numbers(ngroups);
	b->leaf_roots = numbers(ngroups);
	if (!t->of_sample || !b->frame_texts || !b->stack_shapes || !b->leaf_shapes || !b->roots ||
	    !b->leaf_roots || !b->recent)
		return ERR_MEMORY;
	memset(b->recent, 0xff, ((size_t)in->nstacks + 1) * sizeof(*b->recent));
	if (add_shapes(t))
		return ERR_MEMORY;
	for (i = 0; i < in->nsamples; i++) {
		if (!export_takes(b->opt, &in->samples[i]))
			continue;
		t->of_sample[i] = sample_node(t, &in->samples[i]);
		if (t->of_sample[i] == TREE_NONE)
			return ERR_MEMORY;
		t->nsamples++;
	}
	return 0;
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
	return rc ? err_set(err, ERR_MEMORY, "out of memory while building the call tree") : 0;
}

void tree_free(struct tree *t)
{
	struct tree_build *b = t->build;

	if (b) {
		table_free(&b->texts);
		table_free(&b->shapes);
		table_free(&b->tops);
		table_free(&b->places);
		free(b->shape_nodes);
		free(b->placed);
		free(b->frame_texts);
		free(b->stack_shapes);
		free(b->leaf_shapes);
		free(b->recent);
		free(b->roots);
		free(b->leaf_roots);
		free(b->path);
		buf_free(&b->scratch);
		buf_free(&b->escaped);
		free(b);
	}
	free(t->texts);
	free(t->nodes);
	free(t->of_sample);
	buf_free(&t->bytes);
	memset(t, 0, sizeof(*t));
}
