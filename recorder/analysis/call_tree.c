#include "analysis/call_tree.h"

#include "base/array.h"
#include "base/table.h"
#include "base/text.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 1000u                     /* of a process or thread */

struct call_build {
	const struct incident *in;
	const struct call_options *o;
	struct call_tree *t;
	struct table node_index, name_index;
	uint32_t nodes_room, names_room;
	uint32_t *frame_name;                /* frame -> name; CALL_NONE = not asked yet */
	uint32_t *thread_node;               /* thread -> node of it; CALL_NONE */
	uint32_t *stack_node;                /* of the last thread: stack -> node; see stack_thread */
	uint32_t *stack_thread;              /* whose node stands in stack_node */
	uint32_t focus;                      /* name of the focus; CALL_NONE */
};

/* ---- names ---------------------------------------------------------------------------------------- */

static bool same_name(const void *ctx, uint32_t value, const void *key)
{
	return strcmp(((const struct call_tree *)ctx)->names[value], key) == 0;
}

static uint32_t name_number(struct call_build *b, const char *text)
{
	size_t n = strlen(text);
	uint64_t hash = hash_bytes(text, n);
	uint32_t found = table_find(&b->name_index, hash, same_name, b->t, text);
	char *own;

	if (found != TABLE_NONE)
		return found;
	if (ARRAY_ROOM(b->t->names, b->names_room, b->t->nnames + 1))
		return CALL_NONE;
	own = text_dup(text, n);
	if (!own || table_add(&b->name_index, hash, b->t->nnames)) {
		free(own);
		return CALL_NONE;
	}
	b->t->names[b->t->nnames] = own;
	return b->t->nnames++;
}

static uint32_t name_of_frame(struct call_build *b, uint32_t frame)
{
	struct buf text = {0};

	if (b->frame_name[frame] == CALL_NONE) {
		incident_frame_text(b->in, frame, b->o->addresses, &text);
		if (!text.failed)
			b->frame_name[frame] = name_number(b, buf_text(&text));
		buf_free(&text);
	}
	return b->frame_name[frame];
}

/* ---- nodes ---------------------------------------------------------------------------------------- */

static bool same_node(const void *ctx, uint32_t value, const void *key)
{
	const struct call_node *a = &((const struct call_tree *)ctx)->nodes[value], *k = key;

	return a->parent == k->parent && a->name == k->name;
}

static uint32_t child(struct call_build *b, uint32_t parent, uint32_t name)
{
	struct call_node key = {.parent = parent, .name = name};
	uint64_t hash = hash_pair(parent, name);
	uint32_t found;

	if (parent == CALL_NONE && b->t->nnodes)
		return CALL_NONE;                    /* there is one root */
	if (name == CALL_NONE)
		return CALL_NONE;
	found = table_find(&b->node_index, hash, same_node, b->t, &key);
	if (found != TABLE_NONE)
		return found;
	if (ARRAY_ROOM(b->t->nodes, b->nodes_room, b->t->nnodes + 1))
		return CALL_NONE;
	if (table_add(&b->node_index, hash, b->t->nnodes))
		return CALL_NONE;
	key.first_child = key.next = CALL_NONE;
	key.first_ns = UINT64_MAX;
	b->t->nodes[b->t->nnodes] = key;
	return b->t->nnodes++;
}

static uint32_t thread_root(struct call_build *b, uint32_t thread)
{
	const struct incident *in = b->in;
	const struct incident_process *process;
	struct buf text = {0};
	uint32_t node = 0;

	if (!b->o->processes || thread == THREAD_NONE)
		return 0;
	if (b->thread_node[thread] != CALL_NONE)
		return b->thread_node[thread];
	process = &in->processes[in->threads[thread].process];
	buf_puts(&text, "Process ");
	utf8_put_clean(&text, process->name, strlen(process->name), NAME_BYTES);
	buf_printf(&text, " (%" PRIu32 ")", process->pid);
	node = text.failed ? CALL_NONE : child(b, 0, name_number(b, buf_text(&text)));
	buf_reset(&text);
	buf_printf(&text, "Thread (%" PRIu32 ")%s", in->threads[thread].tid,
		   *in->threads[thread].name ? " " : "");
	utf8_put_clean(&text, in->threads[thread].name, strlen(in->threads[thread].name), NAME_BYTES);
	if (node != CALL_NONE)
		node = text.failed ? CALL_NONE : child(b, node, name_number(b, buf_text(&text)));
	buf_free(&text);
	return b->thread_node[thread] = node;
}

/* Root first: the frames of a stack; n is at most `room`. */
static uint32_t unroll(const struct incident *in, uint32_t stack, uint32_t *frames, uint32_t room)
{
	uint32_t n = 0, i;

	for (; stack != STACK_NONE && n < room; stack = in->stacks[stack].parent)
		frames[n++] = in->stacks[stack].frame;
	for (i = 0; i < n / 2; i++) {
		uint32_t swap = frames[i];

		frames[i] = frames[n - 1 - i];
		frames[n - 1 - i] = swap;
	}
	return n;
}

/* The leaf node of a stack in the tree; CALL_NONE - 1: the focus is not in it. */
#define NOT_FOCUSED (CALL_NONE - 1)
enum { DEPTH_MAX = 4096 };

static uint32_t focus_node(struct call_build *b, uint32_t stack)
{
	uint32_t frames[DEPTH_MAX], n = unroll(b->in, stack, frames, DEPTH_MAX), at, node;

	for (at = 0; at < n && name_of_frame(b, frames[at]) != b->focus; at++)
		;
	if (at == n)
		return NOT_FOCUSED;
	node = child(b, 0, b->focus);
	if (b->o->callers) {
		while (node != CALL_NONE && at--)
			node = child(b, node, name_of_frame(b, frames[at]));
		return node;
	}
	for (at++; node != CALL_NONE && at < n; at++)
		node = child(b, node, name_of_frame(b, frames[at]));
	return node;
}

static uint32_t plain_node(struct call_build *b, uint32_t thread, uint32_t stack)
{
	uint32_t frames[DEPTH_MAX], n = unroll(b->in, stack, frames, DEPTH_MAX), i;
	uint32_t node = thread_root(b, thread);

	for (i = 0; i < n && node != CALL_NONE; i++)
		node = child(b, node, name_of_frame(b, frames[i]));
	return node;
}

/* Samples of a thread come in runs and repeat their stacks: the last answer is kept per stack. */
static uint32_t leaf_of(struct call_build *b, const struct incident_sample *s)
{
	uint32_t thread = b->o->processes ? s->thread : 0, node;

	if (s->stack == STACK_NONE)
		return b->o->focus ? NOT_FOCUSED : thread_root(b, s->thread);
	if (b->stack_node[s->stack] != CALL_NONE && b->stack_thread[s->stack] == thread)
		return b->stack_node[s->stack];
	node = b->o->focus ? focus_node(b, s->stack) : plain_node(b, s->thread, s->stack);
	b->stack_node[s->stack] = node;
	b->stack_thread[s->stack] = thread;
	return node;
}

static uint32_t when_of(const struct call_tree *t, uint64_t time_ns)
{
	uint64_t span = t->t1_ns > t->t0_ns ? t->t1_ns - t->t0_ns : 1;
	uint64_t at = time_ns > t->t0_ns ? time_ns - t->t0_ns : 0;
	uint32_t part = (uint32_t)((double)at / (double)span * CALL_WHEN);

	return part < CALL_WHEN ? part : CALL_WHEN - 1;
}

static int add_samples(struct call_build *b)
{
	uint32_t i;

	for (i = 0; i < b->in->nsamples; i++) {
		const struct incident_sample *s = &b->in->samples[i];
		struct call_node *node;
		uint32_t leaf;

		if (s->stream != b->o->stream)
			continue;
		leaf = leaf_of(b, s);
		if (leaf == CALL_NONE)
			return ERR_MEMORY;
		if (leaf == NOT_FOCUSED)
			continue;
		node = &b->t->nodes[leaf];
		node->exclusive += s->weight;
		node->samples++;
		node->when[when_of(b->t, s->time_ns)] += s->weight;
		if (s->time_ns < node->first_ns)
			node->first_ns = s->time_ns;
		if (s->time_ns > node->last_ns)
			node->last_ns = s->time_ns;
	}
	return 0;
}

/* ---- sums and order -------------------------------------------------------------------------------- */

static void add_up(struct call_node *to, const struct call_node *from)
{
	unsigned i;

	to->inclusive += from->inclusive;
	for (i = 0; i < CALL_WHEN; i++)
		to->when[i] += from->when[i];
	if (from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
}

/* Children come after their parents, so one pass from the end sums up. */
static void sum(struct call_tree *t)
{
	uint32_t i;

	for (i = t->nnodes; i-- > 0;) {
		t->nodes[i].inclusive += t->nodes[i].exclusive;
		if (i)
			add_up(&t->nodes[t->nodes[i].parent], &t->nodes[i]);
	}
}

/* What is too small gives its cost to its caller; nodes that went have no inclusive cost. */
static void fold_small(struct call_tree *t, double pct)
{
	double least = (double)t->nodes[0].inclusive * pct / 100;
	uint32_t i;

	for (i = t->nnodes; i-- > 1;) {
		struct call_node *node = &t->nodes[i], *parent = &t->nodes[node->parent];

		if ((double)node->inclusive >= least)
			continue;
		parent->exclusive += node->exclusive;
		parent->samples += node->samples;
		parent->folded += node->folded + 1;
		node->inclusive = node->exclusive = node->samples = 0;
	}
}

struct order {
	uint32_t node;
	const struct call_tree *t;
};

static int by_cost(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	const struct call_node *m = &x->t->nodes[x->node], *n = &y->t->nodes[y->node];

	if (m->parent != n->parent)
		return m->parent < n->parent ? -1 : 1;
	if (m->inclusive != n->inclusive)
		return m->inclusive > n->inclusive ? -1 : 1;
	return strcmp(x->t->names[m->name], y->t->names[n->name]);
}

static int link_children(struct call_tree *t)
{
	struct order *order = malloc(((size_t)t->nnodes + 1) * sizeof(*order));
	uint32_t i, n = 0;

	if (!order)
		return ERR_MEMORY;
	for (i = 1; i < t->nnodes; i++) {
		if (t->nodes[i].inclusive)
			order[n++] = (struct order){i, t};
	}
	if (n)
		qsort(order, n, sizeof(*order), by_cost);
	for (i = n; i-- > 0;) {
		struct call_node *node = &t->nodes[order[i].node];

		node->next = t->nodes[node->parent].first_child;
		t->nodes[node->parent].first_child = order[i].node;
	}
	free(order);
	return 0;
}

/* ---- life ----------------------------------------------------------------------------------------- */

static uint32_t *filled(uint32_t n)
{
	uint32_t *items = malloc(((size_t)n + 1) * sizeof(*items));

	if (items)
		memset(items, 0xff, ((size_t)n + 1) * sizeof(*items));
	return items;
}

/* The focus by its whole name, else the only one that contains it. */
static int find_focus(struct call_build *b, struct err *err)
{
	uint32_t i, found = CALL_NONE, several = 0;

	for (i = 0; i < b->in->nframes; i++) {
		uint32_t name = name_of_frame(b, i);

		if (name == CALL_NONE)
			return err_memory(err, "for the call tree");
		if (!strcmp(b->t->names[name], b->o->focus)) {
			b->focus = name;
			return 0;
		}
		if (strstr(b->t->names[name], b->o->focus) && name != found) {
			several += found != CALL_NONE;
			found = name;
		}
	}
	if (found == CALL_NONE)
		return err_set(err, ERR_NOT_FOUND, "no frame is called '%s'; --by-name lists them",
			       b->o->focus);
	if (several)
		return err_set(err, ERR_NOT_FOUND, "'%s' is part of several names, for instance '%s'; "
			       "give one of them whole, as --by-name lists them", b->o->focus,
			       b->t->names[found]);
	b->focus = found;
	return 0;
}

static int build(struct call_build *b, struct err *err)
{
	int rc = 0;

	b->frame_name = filled(b->in->nframes);
	b->thread_node = filled(b->in->nthreads);
	b->stack_node = filled(b->in->nstacks);
	b->stack_thread = filled(b->in->nstacks);
	b->focus = CALL_NONE;
	if (!b->frame_name || !b->thread_node || !b->stack_node || !b->stack_thread ||
	    child(b, CALL_NONE, name_number(b, "ROOT")) == CALL_NONE)
		return err_memory(err, "for the call tree");
	if (b->o->focus)
		rc = find_focus(b, err);
	if (rc)
		return rc;
	rc = add_samples(b);
	if (!rc) {
		sum(b->t);
		fold_small(b->t, b->o->fold_pct);
		rc = link_children(b->t);
	}
	return rc ? err_memory(err, "for the call tree") : 0;
}

int call_tree_new(const struct incident *in, const struct call_options *o, struct call_tree *out,
		  struct err *err)
{
	struct call_tree t = {.t0_ns = in->head.t0_ns, .t1_ns = in->head.t1_ns};
	struct call_build b = {.in = in, .o = o, .t = &t};
	int rc = build(&b, err);

	table_free(&b.node_index);
	table_free(&b.name_index);
	free(b.frame_name);
	free(b.thread_node);
	free(b.stack_node);
	free(b.stack_thread);
	if (rc)
		call_tree_free(&t);
	else
		*out = t;
	return rc;
}

void call_tree_free(struct call_tree *t)
{
	uint32_t i;

	for (i = 0; i < t->nnames; i++)
		free(t->names[i]);
	free(t->names);
	free(t->nodes);
	memset(t, 0, sizeof(*t));
}

/* ---- by name --------------------------------------------------------------------------------------- */

static int by_exclusive_cost(const void *a, const void *b)
{
	const struct call_function *x = a, *y = b;

	if (x->exclusive != y->exclusive)
		return x->exclusive > y->exclusive ? -1 : 1;
	if (x->inclusive != y->inclusive)
		return x->inclusive > y->inclusive ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int by_inclusive_cost(const void *a, const void *b)
{
	const struct call_function *x = a, *y = b;

	if (x->inclusive != y->inclusive)
		return x->inclusive > y->inclusive ? -1 : 1;
	return by_exclusive_cost(a, b);
}

/* Whether a caller of the node has its name: then its inclusive cost is counted there already. */
static bool is_recursion(const struct call_tree *t, uint32_t node)
{
	uint32_t up;

	for (up = t->nodes[node].parent; up != CALL_NONE; up = t->nodes[up].parent) {
		if (t->nodes[up].name == t->nodes[node].name)
			return true;
	}
	return false;
}

static void count_node(const struct call_tree *t, uint32_t i, struct call_function *f)
{
	const struct call_node *node = &t->nodes[i];
	unsigned part;

	f->name = node->name;
	f->exclusive += node->exclusive;
	f->samples += node->samples;
	f->folded += node->folded;
	if (is_recursion(t, i))
		return;
	f->inclusive += node->inclusive;
	for (part = 0; part < CALL_WHEN; part++)
		f->when[part] += node->when[part];
	if (node->first_ns < f->first_ns)
		f->first_ns = node->first_ns;
	if (node->last_ns > f->last_ns)
		f->last_ns = node->last_ns;
}

int call_functions(const struct call_tree *t, bool by_inclusive, struct call_function **out,
		   uint32_t *n, struct err *err)
{
	struct call_function *all = calloc((size_t)t->nnames + 1, sizeof(*all));
	uint32_t i, kept = 0;

	if (!all)
		return err_memory(err, "for the functions");
	for (i = 0; i < t->nnames; i++)
		all[i].first_ns = UINT64_MAX;
	for (i = 0; i < t->nnodes; i++) {
		if (t->nodes[i].inclusive)
			count_node(t, i, &all[t->nodes[i].name]);
	}
	for (i = 0; i < t->nnames; i++) {
		if (all[i].inclusive)
			all[kept++] = all[i];
	}
	if (kept)
		qsort(all, kept, sizeof(*all), by_inclusive ? by_inclusive_cost : by_exclusive_cost);
	*out = all;
	*n = kept;
	return 0;
}

void call_when_text(const struct call_tree *t, const uint64_t when[CALL_WHEN],
		    char out[CALL_WHEN + 1])
{
	double part_ns = (double)(t->t1_ns - t->t0_ns) / CALL_WHEN;
	unsigned i;

	for (i = 0; i < CALL_WHEN; i++) {
		double share = part_ns > 0 ? (double)when[i] / part_ns : 0;

		out[i] = !when[i] ? '_' : share < 0.01 ? '.' : share < 0.1 ? 'o' :
			 share >= 1 ? '9' : (char)('0' + (int)(share * 10));
	}
	out[CALL_WHEN] = '\0';
}
