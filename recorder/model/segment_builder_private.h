/* The inside of the open segment, for segment_build.c, which fills it, and segment_seal.c. */
#pragma once

#include "model/segment_columns_private.h"
#include "model/segment_quota_private.h"

#include "base/deflate.h"
#include "base/text_table.h"
#include "base/varint.h"

struct column {
	struct buf bytes;
	uint64_t previous;                  /* or the highest so far */
	uint64_t run_length;                /* length of the run of `previous`, not written yet */
};

struct id_list {                            /* local index -> number, and back */
	uint32_t *numbers;
	uint32_t count, room;
	struct table index;
};

/*
 * A thread's last stack, root first. Its next stack mostly begins alike, and each equal frame then
 * costs a comparison instead of three look-ups in tables that are no longer in the cache. Empty
 * after sealing. It need not be the right thread's: the frames are compared.
 */
struct last_stack {
	uint32_t n;
	struct { struct frame_ref ref; uint32_t node; } steps[STACK_MAX_FRAMES];
};

/*
 * Threads that take turns on a few CPUs. 260 KB, of which only the depth of real stacks is touched.
 */
#define SEGMENT_LAST_STACKS 16u

struct segment_builder {
	struct frames *frames;
	struct processes *processes;
	uint64_t next_number;
	uint64_t period_ns[STREAMS_MAX];

	uint64_t base_tick, t0_tick, t1_tick;
	uint32_t nsamples, nevents;
	struct column columns[SEGMENT_COLUMNS];
	struct sample_clock clock;
	struct recent recent_threads;
	struct buf sample_stacks;           /* uint32_t each, until all nodes are there */
	struct id_list threads, frame_list;

	struct incident_stack *nodes;         /* frame: local index */
	uint32_t nnodes, nodes_room;
	struct table node_index;

	struct last_stack last[SEGMENT_LAST_STACKS];    /* by thread number */

	struct text_table names;

	struct quota_book quota;
	struct thread *more_thread;    /* for samples of processes over the quota; NULL = not yet */
	uint32_t more_frame;                /* number + 1 of the frame "[more]"; 0 = not yet */

	struct deflater *deflater;          /* for sealing; kept, with its buffers */
	struct buf head, lists, packed, planes, callee_first, callee_items, last_samples;
};

static inline void put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX_BYTES];

	buf_put(b, bytes, varint_put(bytes, v));
}

static inline void column_plain(struct column *c, uint64_t v)
{
	put_varint(&c->bytes, v);
}

static inline void column_end_run(struct column *c)
{
	if (!c->run_length)
		return;
	put_varint(&c->bytes, c->run_length);
	put_varint(&c->bytes, c->previous);
	c->run_length = 0;
}

/* Empty it after its references were passed on (segment_seal.c) or dropped. */
void segment_builder_reset(struct segment_builder *b);
void segment_builder_drop_refs(struct segment_builder *b);
