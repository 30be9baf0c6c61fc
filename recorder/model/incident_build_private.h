/*
 * The tables that find an incident's things by contents while it is built; private to incident*.c.
 */
#pragma once

#include "model/incident.h"

#include "base/text_table.h"

/* Finds the things of one kind by contents; with the capacity of their array in the incident. */
struct incident_index {
	struct table table;
	uint32_t capacity;
};

struct incident_build {
	struct text_table texts;
	struct incident_index processes, threads, modules, frames, stacks;
	uint32_t *stack_hashes;              /* one for each stack */
	uint32_t hashes_cap, samples_cap, events_cap, fields_cap;
};

_Static_assert(THREAD_NONE == UINT32_MAX && STACK_NONE == UINT32_MAX, "none + 1 is 0");

/* One of n, or none. */
static inline bool index_exists(uint32_t index, uint32_t n)
{
	return index + 1 <= n;
}

/* Do the parts of samples and events exist, among so many threads and stacks? */
static inline bool sample_is_sound(const struct incident_sample *s, uint32_t nthreads,
				   uint32_t nstacks)
{
	return index_exists(s->thread, nthreads) && index_exists(s->stack, nstacks) &&
	       s->stream < STREAMS_MAX && s->quality < QUALITIES;
}

static inline bool event_is_sound(const struct incident_event *e, uint32_t nthreads,
				  uint32_t nstacks)
{
	return index_exists(e->thread, nthreads) && index_exists(e->stack, nstacks) &&
	       (unsigned)e->kind < EVENT_KINDS && e->nfields <= EVENT_MAX_FIELDS;
}

/*
 * Add the wanted nodes of a segment's tree; callers precede callees, here and there.
 *
 * nodes   checked: callers come before their callees, and are wanted with them
 * frames  local index -> index in the incident
 * stacks  in: STACK_NONE = not wanted; out: the stack of each wanted node
 * returns 0 or ERR_MEMORY
 */
int incident_add_tree(struct incident *in, const struct incident_stack *nodes, uint32_t n,
		      const uint32_t *frames, uint32_t *stacks);

/* Give each sample and event that has a stack the one that `to` has for it. */
void incident_restack(struct incident *in, const uint32_t *to);
