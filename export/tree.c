#include "export/tree.h"

#include <stdlib.h>
#include <string.h>

/* Where a broken or cut walk shows, right below the thread: see exports-and-store.md, section 1. */
enum { WALK_WHOLE, WALK_BROKEN, WALK_TRUNCATED, WALKS };

/* A stack below one thread and walk; its ancestors have places too, so walks up end early. */
struct place {
	uint32_t group, stack, node;
};

struct tree_build {
	const struct incident *in;
	const struct export_options *opt;
	const struct tree_style *style;
	struct table texts, nodes, places;
	struct place *placed;
	uint32_t nplaces;
	uint32_t texts_cap, nodes_cap, places_cap, path_cap;
	uint32_t *frame_texts;               /* text of each frame; TREE_NONE = not met yet */
	uint32_t *roots;                     /* node of each group: thread * WALKS + walk */
	uint32_t *path;                      /* stacks on the way up */
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

/* ---- texts and nodes -------------------------------------------------------------------------- */

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

static bool same_node(const void *ctx, uint32_t value, const void *key)
{
	const struct tree_node *a = &((const struct tree *)ctx)->nodes[value];
	const struct tree_node *b = key;

	return a->caller == b->caller && a->text == b->text;
}

static uint32_t node_add(struct tree *t, uint32_t caller, uint32_t text)
{
	struct tree_node node = {.caller = caller, .text = text}, *items;
	uint64_t hash = hash_pair(caller, text);
	uint32_t found;

	if (text == TREE_NONE)
		return TREE_NONE;
	found = table_find(&t->build->nodes, hash, same_node, t, &node);
	if (found != TABLE_NONE)
		return found;
	items = room(t->nodes, t->nnodes, &t->build->nodes_cap, sizeof(*items));
	if (!items)
		return TREE_NONE;
	t->nodes = items;
	items[t->nnodes] = node;
	if (table_add(&t->build->nodes, hash, t->nnodes))
		return TREE_NONE;
	return t->nnodes++;
}

uint32_t tree_add(struct tree *t, uint32_t caller, const char *text, size_t n)
{
	return node_add(t, caller, text_add(t, text, n));
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

/* ---- stacks ----------------------------------------------------------------------------------- */

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
	process = node_add(t, TREE_NONE, scratch_text(t));
	if (process == TREE_NONE)
		return TREE_NONE;
	buf_reset(&b->scratch);
	b->style->thread(b->in, b->opt, thread, &b->scratch);
	node = node_add(t, process, scratch_text(t));
	if (node != TREE_NONE && walks[walk])
		node = tree_add(t, node, walks[walk], strlen(walks[walk]));
	return node;
}

/* The node below which the stacks of a thread and walk stand; its number too. */
static uint32_t root_of(struct tree *t, uint32_t thread, unsigned walk, uint32_t *group)
{
	struct tree_build *b = t->build;
	uint32_t slot = thread == THREAD_NONE ? b->in->nthreads : thread;

	*group = slot * WALKS + walk;
	if (b->roots[*group] == TREE_NONE)
		b->roots[*group] = root_add(t, thread, walk);
	return b->roots[*group];
}

static bool same_place(const void *ctx, uint32_t value, const void *key)
{
	const struct place *a = &((const struct tree_build *)ctx)->placed[value];
	const struct place *b = key;

	return a->group == b->group && a->stack == b->stack;
}

static uint32_t place_find(const struct tree_build *b, uint32_t group, uint32_t stack)
{
	struct place key = {.group = group, .stack = stack};
	uint32_t found = table_find(&b->places, hash_pair(group, stack), same_place, b, &key);

	return found == TABLE_NONE ? TREE_NONE : b->placed[found].node;
}

static bool place_add(struct tree_build *b, uint32_t group, uint32_t stack, uint32_t node)
{
	struct place *items = room(b->placed, b->nplaces, &b->places_cap, sizeof(*items));

	if (!items)
		return false;
	b->placed = items;
	items[b->nplaces] = (struct place){.group = group, .stack = stack, .node = node};
	if (table_add(&b->places, hash_pair(group, stack), b->nplaces))
		return false;
	b->nplaces++;
	return true;
}

/* The node of a stack: up to the first ancestor that has a place, then down again, adding. */
static uint32_t stack_node(struct tree *t, uint32_t group, uint32_t root, uint32_t stack)
{
	struct tree_build *b = t->build;
	uint32_t node = root, depth = 0;
	uint32_t *path;

	for (; stack != STACK_NONE; stack = b->in->stacks[stack].parent) {
		uint32_t found = place_find(b, group, stack);

		if (found != TREE_NONE) {
			node = found;
			break;
		}
		path = room(b->path, depth, &b->path_cap, sizeof(*path));
		if (!path)
			return TREE_NONE;
		b->path = path;
		path[depth++] = stack;
	}
	while (depth && node != TREE_NONE) {
		stack = b->path[--depth];
		node = node_add(t, node, frame_text(t, b->in->stacks[stack].frame));
		if (node != TREE_NONE && !place_add(b, group, stack, node))
			return TREE_NONE;
	}
	return node;
}

static uint32_t sample_node(struct tree *t, const struct incident_sample *s)
{
	unsigned walk = WALK_WHOLE;
	uint32_t root, group;

	if (s->quality == QUALITY_BROKEN)
		walk = WALK_BROKEN;
	else if (s->quality == QUALITY_TRUNCATED)
		walk = WALK_TRUNCATED;
	root = root_of(t, s->thread, walk, &group);
	return root == TREE_NONE ? TREE_NONE : stack_node(t, group, root, s->stack);
}

/* ---- building --------------------------------------------------------------------------------- */

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
	const struct incident *in = t->build->in;
	uint32_t i;

	t->of_sample = numbers(in->nsamples);
	t->build->frame_texts = numbers(in->nframes);
	t->build->roots = numbers(((size_t)in->nthreads + 1) * WALKS);
	if (!t->of_sample || !t->build->frame_texts || !t->build->roots)
		return ERR_MEMORY;
	for (i = 0; i < in->nsamples; i++) {
		if (in->samples[i].stream != STREAM_CPU)
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
		table_free(&b->nodes);
		table_free(&b->places);
		free(b->placed);
		free(b->frame_texts);
		free(b->roots);
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
