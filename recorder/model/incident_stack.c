/*
 * The tree of stacks. A stack is found by a hash of its whole path, which can be computed before
 * its callers are found. So a tree's nodes can be prefetched, and loading does not wait for memory
 * at each of the millions of nodes that an incident's segments have in common.
 */
#include "model/incident_build_private.h"

#include "base/array.h"

#include <stdlib.h>

#define AHEAD 256u

static bool same_stack(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_stack *a = &((const struct incident *)ctx)->stacks[value];
	const struct incident_stack *b = key;

	return a->parent == b->parent && a->frame == b->frame;
}

/* The hash of a stack from its caller's hash; 0 for the caller of roots. */
static uint32_t hash_stack(uint32_t caller_hash, uint32_t frame)
{
	uint64_t v = ((uint64_t)caller_hash << 32 | frame) * 0x9e3779b97f4a7c15ULL;

	return (uint32_t)(v >> 32) ^ (uint32_t)(v >> 52);
}

/* Neither has the newest stack a callee, nor is its first one in the table. */
static uint32_t append(struct incident *in, uint32_t parent, uint32_t frame, uint32_t hash)
{
	struct incident_build *b = in->build;

	if (ARRAY_ROOM(in->stacks, b->stacks.capacity, in->nstacks + 1) ||
	    ARRAY_ROOM(b->stack_hashes, b->hashes_cap, in->nstacks + 1))
		return UINT32_MAX;
	if (in->nstacks != parent + 1 && table_add(&b->stacks.table, hash, in->nstacks))
		return UINT32_MAX;
	in->stacks[in->nstacks] = (struct incident_stack){.parent = parent, .frame = frame};
	b->stack_hashes[in->nstacks] = hash;
	return in->nstacks++;
}

/* A stack that is not right after its caller. */
static uint32_t find_or_add(struct incident *in, uint32_t parent, uint32_t frame, uint32_t hash)
{
	struct incident_stack node = {.parent = parent, .frame = frame};
	uint32_t found = TABLE_NONE;

	if (parent + 1 != in->nstacks)
		found = table_find(&in->build->stacks.table, hash, same_stack, in, &node);
	return found != TABLE_NONE ? found : append(in, parent, frame, hash);
}

/*
 * Most stacks have one callee, added right after them: it is found there, and only the others are
 * in the table. For roots, parent + 1 is 0, the first stack.
 */
static inline bool is_next(const struct incident_stack *stacks, uint32_t n, uint32_t parent,
			   uint32_t frame)
{
	return parent + 1 < n && stacks[parent + 1].parent == parent &&
	       stacks[parent + 1].frame == frame;
}

uint32_t incident_add_stack(struct incident *in, uint32_t parent, uint32_t frame)
{
	if (frame >= in->nframes || (parent != STACK_NONE && parent >= in->nstacks))
		return UINT32_MAX;
	if (is_next(in->stacks, in->nstacks, parent, frame))
		return parent + 1;
	return find_or_add(
		in, parent, frame,
		hash_stack(parent == STACK_NONE ? 0 : in->build->stack_hashes[parent], frame));
}

/*
 * Hash the nodes [from, to), and prefetch what finding the first node of each chain will look at:
 * the others mostly stand right after their callers.
 */
static void look_ahead(const struct incident *in, const struct incident_stack *nodes, uint32_t from,
		       uint32_t to, const uint32_t *frames, uint32_t *hashes)
{
	const struct table table = in->build->stacks.table;
	const struct incident_stack *stacks = in->stacks;
	uint32_t firsts[AHEAD], nfirsts = 0, hash = from ? hashes[from - 1] : 0, i, guess;

	for (i = from; i < to; i++) {
		uint32_t parent = nodes[i].parent;

		if (parent + 1 != i || !i) {
			hash = hash_stack(parent == STACK_NONE ? 0 : hashes[parent],
					  frames[nodes[i].frame]);
			table_prefetch(&table, hash);
			firsts[nfirsts++] = hash;
		} else {
			hash = hash_stack(hash, frames[nodes[i].frame]);
		}
		hashes[i] = hash;
	}
	for (i = 0; i < nfirsts; i++) {
		guess = table_guess(&table, firsts[i]);
		if (guess != TABLE_NONE)
			__builtin_prefetch(&stacks[guess]);
	}
}

static int add_nodes(struct incident *in, const struct incident_stack *nodes, uint32_t from,
		     uint32_t to, const uint32_t *frames, const uint32_t *hashes, uint32_t *stacks)
{
	uint32_t at = from ? stacks[from - 1] : STACK_NONE, i;

	for (i = from; i < to; i++) {
		uint32_t parent = nodes[i].parent, frame = frames[nodes[i].frame];

		if (stacks[i] == STACK_NONE)
			continue;
		if (parent + 1 != i || !i)
			at = parent == STACK_NONE ? STACK_NONE : stacks[parent];
		if (is_next(in->stacks, in->nstacks, at, frame))
			at++;
		else
			at = find_or_add(in, at, frame, hashes[i]);
		if (at == UINT32_MAX)
			return ERR_MEMORY;
		stacks[i] = at;
	}
	return 0;
}

int incident_add_tree(struct incident *in, const struct incident_stack *nodes, uint32_t n,
		      const uint32_t *frames, uint32_t *stacks)
{
	uint32_t *hashes = malloc(((size_t)n + 1) * sizeof(*hashes)), from, to;
	int rc = hashes ? 0 : ERR_MEMORY;

	for (from = 0; !rc && from < n; from = to) {
		to = n - from < AHEAD ? n : from + AHEAD;
		look_ahead(in, nodes, from, to, frames, hashes);
		rc = add_nodes(in, nodes, from, to, frames, hashes, stacks);
	}
	free(hashes);
	return rc;
}

void incident_restack(struct incident *in, const uint32_t *to)
{
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		if (in->samples[i].stack != STACK_NONE)
			in->samples[i].stack = to[in->samples[i].stack];
	}
	for (i = 0; i < in->nevents; i++) {
		if (in->events[i].stack != STACK_NONE)
			in->events[i].stack = to[in->events[i].stack];
	}
	for (i = 0; i < in->nfreed; i++) {
		struct incident_freed *f = &in->freed[i];

		f->stack = f->stack == STACK_NONE ? STACK_NONE : to[f->stack];
		f->freed_by = f->freed_by == STACK_NONE ? STACK_NONE : to[f->freed_by];
	}
}
