/*
 * The tables that find an incident's things by contents while it is built; private to incident*.c.
 */
#pragma once

#include "model/incident.h"

#include "base/table.h"

struct incident_build {
	struct text_block *blocks;           /* the first one has room */
	const char **texts;
	uint32_t ntexts;
	struct table text_table, process_table, thread_table, module_table;
	struct table frame_table, stack_table;
	uint32_t *stack_hashes;              /* one for each stack */
	uint32_t texts_cap, processes_cap, threads_cap, modules_cap, frames_cap, stacks_cap,
		hashes_cap;
	uint32_t samples_cap, events_cap, fields_cap;
};

/*
 * Add the wanted nodes of a segment's tree; callers precede callees, here and there.
 *
 * nodes   checked: callers come before their callees, and are wanted with them
 * frames  local index -> index in the incident
 * stacks  in: STACK_NONE = not wanted; out: the stack of each wanted node
 * returns 0 or ERR_MEMORY
 */
int incident_add_tree(struct incident *in, const struct segment_node *nodes, uint32_t n,
		      const uint32_t *frames, uint32_t *stacks);

/* Give each sample and event that has a stack the one that `to` has for it. */
void incident_restack(struct incident *in, const uint32_t *to);
