/* The open segment: its frames, and the tree of its stacks. */
#include "model/segment_builder_private.h"

#include "base/array.h"

#include <string.h>

/* ---- lists ----------------------------------------------------------------------------------- */

static bool number_same(const void *ctx, uint32_t value, const void *key)
{
	const struct id_list *list = ctx;

	return list->numbers[value] == *(const uint32_t *)key;
}

uint32_t id_list_find(const struct id_list *list, uint32_t number)
{
	return table_find(&list->index, hash_u64(number), number_same, list, &number);
}

uint32_t id_list_add(struct id_list *list, uint32_t number)
{
	if (ARRAY_ROOM(list->numbers, list->room, list->count + 1) ||
	    table_add(&list->index, hash_u64(number), list->count))
		return UINT32_MAX;
	list->numbers[list->count] = number;
	return list->count++;
}

static uint32_t local_frame(struct segment_builder *b, uint32_t number)
{
	uint32_t local = id_list_find(&b->frame_list, number);

	if (local != TABLE_NONE)
		return local;
	local = id_list_add(&b->frame_list, number);
	if (local != UINT32_MAX)
		frame_ref(frame_get(b->frames, number));
	return local;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static bool node_same(const void *ctx, uint32_t value, const void *key)
{
	const struct segment_builder *b = ctx;
	const struct incident_stack *k = key;

	return b->nodes[value].parent == k->parent && b->nodes[value].frame == k->frame;
}

static uint64_t node_hash(uint32_t parent, uint32_t frame)
{
	return hash_u64(((uint64_t)parent << 32) | frame);
}

/* Find a node; STACK_NONE when there is none. */
static uint32_t node_find(const struct segment_builder *b, uint32_t parent, uint32_t frame)
{
	struct incident_stack key = {parent, frame};
	uint32_t node;

	/* Most nodes have one callee, added right after them: found without the table. */
	if (parent != STACK_NONE && parent + 1 < b->nnodes && node_same(b, parent + 1, &key))
		return parent + 1;
	node = table_find(&b->node_index, node_hash(parent, frame), node_same, b, &key);
	return node == TABLE_NONE ? STACK_NONE : node;
}

static uint32_t node_get(struct segment_builder *b, uint32_t parent, uint32_t frame)
{
	struct incident_stack key = {parent, frame};
	uint32_t node = node_find(b, parent, frame);

	if (node != STACK_NONE)
		return node;
	if (b->nnodes == SEGMENT_MAX_NODES)
		return STACK_NONE;
	if (ARRAY_ROOM(b->nodes, b->nodes_room, b->nnodes + 1))
		return STACK_NONE;
	if (table_add(&b->node_index, node_hash(parent, frame), b->nnodes))
		return STACK_NONE;
	b->nodes[b->nnodes] = key;
	return b->nnodes++;
}

static bool same_step(const struct frame_ref *a, const struct frame_ref *b)
{
	return a->object == b->object && a->offset == b->offset && a->flags == b->flags;
}

/*
 * The frame "[more]" is the recorder's own: it names it, and keeps it as long as the builder lives.
 */
static uint32_t more_frame(struct segment_builder *b)
{
	static const struct object_key key = {.kind = OBJECT_JIT, .path = "[recorder]"};
	struct frame_ref ref = {.object = b->more_frame ? NULL : objects_get(b->frames, &key, 0)};
	uint32_t number = FRAME_NONE;
	struct frame *frame;
	bool fresh;

	if (b->more_frame)
		return b->more_frame - 1;
	if (ref.object)
		number = frames_intern(b->frames, &ref, &fresh);
	if (number == FRAME_NONE)
		return FRAME_NONE;
	frame = frame_get(b->frames, number);
	frame_ref(frame);
	atomic_store(&frame->asked, true);
	frame_set_function(b->frames, frame, 0, "[more]", NULL, NULL);
	b->more_frame = number + 1;
	return number;
}

static uint32_t more_node(struct segment_builder *b, uint32_t parent)
{
	uint32_t number = more_frame(b);
	uint32_t local = number == FRAME_NONE ? UINT32_MAX : local_frame(b, number);

	return local == UINT32_MAX ? STACK_NONE : node_get(b, parent, local);
}

/* A stack of a process over its quota: the known part, then "[more]". */
static uint32_t known_stack(struct segment_builder *b, const struct frame_ref *leaf_first,
			    uint32_t n, uint32_t node)
{
	while (n--) {
		uint32_t number = frames_find(b->frames, &leaf_first[n]);
		uint32_t local =
			number == FRAME_NONE ? TABLE_NONE : id_list_find(&b->frame_list, number);
		uint32_t next = local == TABLE_NONE ? STACK_NONE : node_find(b, node, local);

		if (next == STACK_NONE)
			return more_node(b, node);
		node = next;
	}
	return node;
}

static bool is_flood(struct quota_use *use, const struct segment_quota *limit)
{
	if (!use->flooded && (quota_over(use->nodes, limit->nodes) ||
			      quota_over(use->frames, limit->frames)))
		use->flooded = use->nodes >= (uint64_t)limit->nodes_each * use->stacks;
	return use->flooded;
}

/* Where a node's step is kept: other steps may be there. */
static struct known_step *step_of(struct segment_builder *b, uint32_t node,
				  const struct frame_ref *ref)
{
	uint64_t mixed = (node + ref->offset + (uintptr_t)ref->object) * 0x9e3779b97f4a7c15u;

	return &b->steps[mixed >> (64 - SEGMENT_STEPS_BITS)];
}

/* The node of a frame that was called from a node; STACK_NONE when a table is full. */
static uint32_t next_node(struct segment_builder *b, uint32_t node, const struct frame_ref *ref,
			  struct quota_use *use,
			  void (*fresh)(void *ctx, struct frame *frame), void *ctx)
{
	struct known_step *known = step_of(b, node, ref);
	uint32_t number, local, next, nodes = b->nnodes;
	bool is_fresh;

	if (known->parent == node && same_step(&known->ref, ref))
		return known->node;
	number = frames_intern(b->frames, ref, &is_fresh);
	local = number == FRAME_NONE ? UINT32_MAX : local_frame(b, number);
	if (is_fresh && fresh)
		fresh(ctx, frame_get(b->frames, number));
	next = local == UINT32_MAX ? STACK_NONE : node_get(b, node, local);
	if (next == STACK_NONE)
		return STACK_NONE;
	use->frames += is_fresh;
	use->nodes += b->nnodes - nodes;
	*known = (struct known_step){node, next, *ref};
	return next;
}

/* How many frames of the two stacks are equal, from the root on. */
static uint32_t equal_depth(const struct last_stack *last, const struct frame_ref *leaf_first,
			    uint32_t n)
{
	const struct frame_ref *a = last->refs + STACK_MAX_FRAMES, *b = leaf_first + n;
	uint32_t most = last->n < n ? last->n : n, depth = 0;

	if (most && memcmp(a - most, b - most, most * sizeof(*a)) == 0)
		return most;
	while (depth < most && same_step(a - 1 - depth, b - 1 - depth))
		depth++;
	return depth;
}

static uint32_t find_stack(struct segment_builder *b, const struct event *e, struct quota_use *use,
			   void (*fresh)(void *ctx, struct frame *frame), void *ctx)
{
	const struct segment_quota *limit = &b->quota.limit;
	struct last_stack *last =
		&b->last[(e->thread ? e->thread->number : 0) % SEGMENT_LAST_STACKS];
	const struct frame_ref *leaf_first = e->stack_frames;
	uint32_t node = STACK_NONE, n = e->nstack_frames, at;

	last->n = equal_depth(last, leaf_first, n);
	at = STACK_MAX_FRAMES - last->n;
	node = last->n ? last->nodes[at] : STACK_NONE;
	n -= last->n;
	while (n--) {
		if (is_flood(use, limit))
			return known_stack(b, leaf_first, n + 1, node);
		node = next_node(b, node, &leaf_first[n], use, fresh, ctx);
		if (node == STACK_NONE)
			return STACK_NONE;
		if (at) {
			last->refs[--at] = leaf_first[n];
			last->nodes[at] = node;
			last->n++;
		}
	}
	return node;
}

uint32_t segment_stack_of(struct segment_builder *b, const struct event *e,
			  void (*fresh)(void *ctx, struct frame *frame), void *ctx)
{
	struct known_stack *known = &b->known[e->stack_id % SEGMENT_KNOWN_STACKS];
	struct quota_use none = {0}, *use;
	uint32_t node;

	if (!b->quota.limit.processes && e->stack_id && known->id == e->stack_id)
		return known->node;
	use = quota_of(&b->quota, e->process, e->time_ns);
	if (!use && b->quota.limit.processes)
		return known_stack(b, e->stack_frames, e->nstack_frames, STACK_NONE);
	use = use ? use : &none;
	use->stacks++;
	if (e->stack_id && known->id == e->stack_id)
		return known->node;
	node = find_stack(b, e, use, fresh, ctx);
	/* That of a flood may be cut. */
	if (e->stack_id && node != STACK_NONE && !use->flooded)
		*known = (struct known_stack){e->stack_id, node};
	return node;
}

/* Room for all nodes of the other builder; what it had before its last reset is not known. */
static bool twins_of(struct segment_builder *b, const struct segment_builder *other)
{
	struct twins *t = &b->twins;

	if (t->of != other || t->nresets != other->nresets)
		t->count = 0;
	t->of = other;
	t->nresets = other->nresets;
	if (ARRAY_ROOM(t->nodes, t->room, other->nnodes))
		return false;
	memset(t->nodes + t->count, 0, (other->nnodes - t->count) * sizeof(*t->nodes));
	t->count = other->nnodes;
	return true;
}

/* Does a process's stack end in "[more]" there? Here it may have room. */
static bool is_cut(const struct segment_builder *b, uint32_t node)
{
	return b->frame_list.numbers[b->nodes[node].frame] + 1 == b->more_frame;
}

static uint32_t twin_stack(struct segment_builder *b, const struct segment_builder *other,
			   const struct event *e, struct quota_use *use)
{
	uint32_t path[STACK_MAX_FRAMES], depth = 0, at = e->stack, node, nodes = b->nnodes;

	while (at != STACK_NONE && !b->twins.nodes[at] && depth < STACK_MAX_FRAMES) {
		path[depth++] = at;
		at = other->nodes[at].parent;
	}
	node = at == STACK_NONE ? STACK_NONE : b->twins.nodes[at] - 1;
	while (depth--) {
		const struct incident_stack *of = &other->nodes[path[depth]];
		uint32_t local;

		if (is_flood(use, &b->quota.limit))
			return known_stack(b, e->stack_frames, e->nstack_frames, STACK_NONE);
		local = local_frame(b, other->frame_list.numbers[of->frame]);
		node = local == UINT32_MAX ? STACK_NONE : node_get(b, node, local);
		if (node == STACK_NONE)
			return STACK_NONE;
		use->nodes += b->nnodes - nodes;
		nodes = b->nnodes;
		b->twins.nodes[path[depth]] = node + 1;
	}
	return node;
}

uint32_t segment_stack_again(struct segment_builder *b, const struct segment_builder *other,
			     const struct event *e)
{
	struct quota_use none = {0}, *use;

	if (e->stack >= other->nnodes || is_cut(other, e->stack) ||
	    e->nstack_frames > STACK_MAX_FRAMES || !twins_of(b, other))
		return segment_stack_of(b, e, NULL, NULL);
	use = quota_of(&b->quota, e->process, e->time_ns);
	if (!use && b->quota.limit.processes)
		return known_stack(b, e->stack_frames, e->nstack_frames, STACK_NONE);
	use = use ? use : &none;
	use->stacks++;
	return twin_stack(b, other, e, use);
}

uint32_t segment_stack(struct segment_builder *b, const struct frame_ref *leaf_first, uint32_t n,
		       void (*fresh)(void *ctx, struct frame *frame), void *ctx)
{
	const struct event e = {.stack_frames = leaf_first, .nstack_frames = n};

	return segment_stack_of(b, &e, fresh, ctx);
}
