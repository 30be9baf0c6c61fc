/*
 * The columns of a segment in their order, and what writing and reading them share; private to
 * segment_build.c, segment_seal.c and segment_read.c.
 */
#pragma once

#include "model/segment.h"

#include <string.h>

enum segment_column {
	COLUMN_SAMPLE_WEIGHT,
	COLUMN_SAMPLE_STREAM,
	COLUMN_SAMPLE_CPU,
	COLUMN_SAMPLE_TIME,
	COLUMN_SAMPLE_THREAD,
	COLUMN_SAMPLE_STACK,
	COLUMN_SAMPLE_QUALITY,
	COLUMN_NODE_PARENT,
	COLUMN_NODE_FRAME,
	COLUMN_EVENT_TIME,
	COLUMN_EVENT_KIND,
	COLUMN_EVENT_FLAGS,
	COLUMN_EVENT_CPU,
	COLUMN_EVENT_THREAD,
	COLUMN_EVENT_STACK,
	COLUMN_EVENT_PROVIDER,
	COLUMN_EVENT_NAME,
	COLUMN_EVENT_VALUE,
	COLUMN_EVENT_FIELDS,
	COLUMN_NAMES,
	COLUMN_NODE_CHAIN,
};

enum segment_codec { SEGMENT_CODEC_RAW, SEGMENT_CODEC_ZLIB, SEGMENT_CODEC_PLANES };

/* Columns of varints whose differences are mostly chance. */
static inline bool segment_is_numbers(unsigned column)
{
	return (column >= COLUMN_SAMPLE_TIME && column <= COLUMN_SAMPLE_STACK) ||
	       column == COLUMN_NODE_PARENT || column == COLUMN_NODE_FRAME ||
	       column == COLUMN_NODE_CHAIN || column == COLUMN_EVENT_TIME;
}

static inline bool segment_is_of_events(unsigned column)
{
	return column >= COLUMN_EVENT_TIME && column <= COLUMN_NAMES;
}

/* The expected time of samples: the sampling clock ticks per CPU. CPUs beyond share a slot. */
#define CLOCK_CPUS 1024u
#define CLOCK_MAX_WEIGHT_NS (4 * 1000000000ULL)

struct sample_clock {
	uint64_t last_tick[CLOCK_CPUS + 1];
};

static inline void clock_start(struct sample_clock *c, uint64_t base_tick)
{
	unsigned i;

	for (i = 0; i <= CLOCK_CPUS; i++)
		c->last_tick[i] = base_tick;
}

static inline uint64_t *clock_of(struct sample_clock *c, uint64_t cpu)
{
	return &c->last_tick[cpu < CLOCK_CPUS ? cpu : CLOCK_CPUS];
}

static inline uint64_t clock_step(uint64_t stream, uint64_t weight)
{
	return stream == STREAM_CPU && weight < CLOCK_MAX_WEIGHT_NS ? weight / SEGMENT_TICK_NS : 0;
}

/* ---- threads by recency, the most recent first ----------------------------------------------- */

#define RECENT_THREADS 64u

struct recent {
	uint32_t n;
	uint32_t values[RECENT_THREADS];
};

/* Move the value at `at` to the front; at == n: add it, dropping the last one when full. */
static inline void recent_front(struct recent *r, uint32_t at, uint32_t value)
{
	if (at == r->n) {
		if (r->n < RECENT_THREADS)
			r->n++;
		else
			at--;
	}
	if (at)
		memmove(&r->values[1], &r->values[0], at * sizeof(r->values[0]));
	r->values[0] = value;
}

/* ---- the frames that followed each frame, the most recent first ------------------------------ */

#define RECENT_CALLEES 32u                  /* are searched; more may exist */

struct callee {
	uint32_t frame;
	uint32_t next;                      /* index + 1, 0 = none */
};

struct callees {
	/*
	 * By caller; the last entry is for roots. `next` is the first callee, and `frame` is its
	 * frame: mostly nothing else is looked at.
	 */
	struct callee *first;
	struct callee *items;               /* room for one per node */
	uint32_t n;
};

static inline void callees_add(struct callees *c, uint32_t caller, uint32_t frame)
{
	c->items[c->n] = (struct callee){frame, c->first[caller].next};
	c->first[caller] = (struct callee){frame, ++c->n};
}

/* Move the callee that the link at *at leads to to the front; returns its frame. */
static inline uint32_t callees_front(struct callees *c, uint32_t caller, uint32_t *at)
{
	uint32_t found = *at;

	*at = c->items[found - 1].next;
	c->items[found - 1].next = c->first[caller].next;
	c->first[caller] = (struct callee){c->items[found - 1].frame, found};
	return c->first[caller].frame;
}

/* ---- chains ---------------------------------------------------------------------------------- */

/*
 * A chain is a node and the nodes right after it that are each the callee of the previous one:
 * mostly what a new stack added. Returns the last node of the chain that `node` is in.
 */
static inline uint32_t chain_end(const struct incident_stack *nodes, uint32_t nnodes, uint32_t node)
{
	while (node + 1 < nnodes && nodes[node + 1].parent == node)
		node++;
	return node;
}

/*
 * The most likely stack of a sample that repeats no earlier sample's: the end of the first chain
 * after the highest node used so far.
 */
struct new_stack {
	uint32_t highest;                   /* highest node + 1; 0 = none yet */
	uint32_t expected;           /* valid while `highest` is at most this: still in its chain */
};

static inline uint32_t new_stack_expected(struct new_stack *s, const struct incident_stack *nodes,
					  uint32_t nnodes)
{
	if (s->highest > s->expected || !s->highest)
		s->expected = s->highest < nnodes ? chain_end(nodes, nnodes, s->highest) : 0;
	return s->expected;
}

static inline void new_stack_seen(struct new_stack *s, uint32_t stack)
{
	if (stack >= s->highest)
		s->highest = stack + 1;
}

_Static_assert(COLUMN_NODE_CHAIN + 1 == SEGMENT_COLUMNS, "segment.h counts the columns");
