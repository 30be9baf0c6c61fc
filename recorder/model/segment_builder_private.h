/* The inside of the open segment, for segment_build.c, which fills it, and segment_seal.c. */
#pragma once

#include "model/segment_columns_private.h"

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
 * A thread's last stack, leaf first as sources deliver it, its root at the end of the arrays. Its
 * next stack mostly begins alike, and each equal frame then costs a comparison instead of three
 * look-ups in tables that are no longer in the cache. Empty after sealing. It need not be the right
 * thread's: the frames are compared.
 */
struct last_stack {
	uint32_t n;                          /* the last ones */
	struct frame_ref refs[STACK_MAX_FRAMES];
	uint32_t nodes[STACK_MAX_FRAMES];
};

/*
 * A frame that was called from a node, and the node that it led to: instead of three look-ups in
 * large tables. Empty after sealing.
 */
struct known_step {
	uint32_t parent, node;
	struct frame_ref ref;                /* no object: empty */
};

/* The node of a stack with an id; 0 = none. Empty after sealing. */
struct known_stack {
	uint64_t id;
	uint32_t node;
};

/* The index of a name that stays there (event.names_stay). Empty after sealing. */
struct known_name {
	const char *at;
	uint32_t local;
};

/* ---- segment_quota.c ------------------------------------------------------------------------- */

/*
 * How much of a segment one process may take, so that a process that floods (a fork bomb, 100,000
 * threads, endless new code or events) does not push the others' history out of the ring and the
 * tables. Samples are never refused: over its quota, a process's stacks end in a frame "[more]"
 * where they would continue into frames new to the segment, and its samples belong to a thread
 * "[more]". Events over the quota are refused.
 *
 * The number of new processes in a segment is limited. A process that a segment has listed before
 * takes no new room, so long-running ones keep their names in a flood of short ones. Processes with
 * events only have limits of their own, one for starts and ends and one for other events, and do
 * not use up that of the processes with samples. Belongs to the builder; merge thread.
 */
#define QUOTA_SAVED_S 60u
#define QUOTA_GC_SHARE 6u                    /* times as many garbage collection events as others */

/* Events of one sort do not use up the share of another sort. */
enum quota_sort {
	QUOTA_COLLECTIONS,   /* garbage collections: a rule wants them; 4 to 40 similar ones each */
	QUOTA_ALLOCATIONS,     /* GC/AllocationTick: a busy .NET program sends thousands a second */
	QUOTA_OTHERS,
	QUOTA_SORTS,
};

struct quota_use {
	uint32_t process;                    /* number; UINT32_MAX = events without a process */
	uint32_t stacks, nodes, frames, threads;
	bool flooded;                        /* no new nodes for it in this segment */
	uint32_t events[QUOTA_SORTS], event_bytes[QUOTA_SORTS];
};

/* New things taken in this segment, and what a rate still allows, across segments. */
struct quota_count {
	uint32_t taken;
	double saved;
	uint64_t filled_ns;                  /* 0 = nothing was taken yet, so all is available */
};

struct quota_book {
	struct segment_quota limit;
	struct quota_use *uses;
	uint32_t nuses, room;
	struct quota_count fresh;            /* processes with samples that no segment had listed */
	struct quota_count eventful;         /* the same with events other than starts and ends */
	struct quota_count sideband;         /* starts and ends */
	struct table index;
};

void quota_free(struct quota_book *q);
void quota_reset(struct quota_book *q);
/*
 * For a sample: what its process has used in this segment, added when it is new. NULL without
 * memory, over `processes`, or without any quotas.
 */
struct quota_use *quota_of(struct quota_book *q, const struct process *process, uint64_t now_ns);
bool quota_is_sideband(enum event_kind kind);
/* Count an event if it fits. quota_event_took() adds the bytes that its fields took. */
bool quota_event(struct quota_book *q, const struct event *e);
void quota_event_took(struct quota_book *q, const struct event *e, size_t bytes);

static inline bool quota_over(uint32_t used, uint32_t limit)
{
	return limit && used >= limit;
}

/* ---- segment_stack.c ------------------------------------------------------------------------- */

/* The local index of a number; TABLE_NONE = it is not listed. */
uint32_t id_list_find(const struct id_list *list, uint32_t number);
/* UINT32_MAX = no memory. */
uint32_t id_list_add(struct id_list *list, uint32_t number);

/* ---- segment_seal.c -------------------------------------------------------------------------- */

/* What was in the builder, until it is compressed; its buffers are kept. */
struct sealing {
	bool begun;
	struct segment is;                   /* all but its bytes */
	struct buf columns[SEGMENT_COLUMNS];
	struct buf head, lists, packed, planes;
	struct deflater *deflater;
};

/* ---- the builder ----------------------------------------------------------------------------- */

/*
 * Threads that take turns on a few CPUs. 260 KB, of which only the depth of real stacks is touched.
 */
#define SEGMENT_LAST_STACKS 16u
#define SEGMENT_STEPS_BITS 11                /* 80 KB */
#define SEGMENT_KNOWN_STACKS 256u
#define SEGMENT_POINTERS 256u
#define SEGMENT_THREADS 64u
#define SEGMENT_MAX_NAMES 4096u              /* that make it full */

/* Which node, + 1, a node of another builder is here: segment_stack_again(); 0 = not known. */
struct twins {
	const struct segment_builder *of;
	uint64_t nresets;                    /* of that one */
	uint32_t *nodes, count, room;
};

struct segment_builder {
	struct frames *frames;
	struct processes *processes;
	uint64_t next_number;
	uint64_t period_ns[STREAMS_MAX];

	uint64_t base_tick, t0_tick, t1_tick;
	uint32_t nsamples, ncpu_samples, nevents, nlosses;
	uint32_t quality[QUALITIES];        /* see struct segment */
	uint32_t appends_left;              /* for which all columns have room */
	struct column columns[SEGMENT_COLUMNS];
	struct sample_clock clock;
	struct recent recent_threads;
	struct buf sample_stacks;           /* uint32_t each, until all nodes are there */
	struct id_list threads, frame_list;

	struct incident_stack *nodes;         /* frame: local index */
	uint32_t nnodes, nodes_room;
	struct table node_index;
	struct twins twins;
	uint64_t nresets;

	struct last_stack last[SEGMENT_LAST_STACKS];    /* by thread number */
	struct known_step steps[1u << SEGMENT_STEPS_BITS];
	struct known_stack known[SEGMENT_KNOWN_STACKS];

	struct text_table names;
	uint32_t at_thread[SEGMENT_THREADS];    /* index of a thread, if it is still in the list */
	struct known_name stayed[SEGMENT_POINTERS];
	uint32_t next_name[SEGMENT_MAX_NAMES];  /* what followed a name in the last event with it */
	size_t columns_most;                /* the columns have no more bytes than these */

	struct quota_book quota;
	struct thread *more_thread;    /* for samples of processes over the quota; NULL = not yet */
	uint32_t more_frame;                /* number + 1 of the frame "[more]"; 0 = not yet */

	struct buf callee_first, callee_items, last_samples;         /* for sealing; kept */
	struct sealing sealing;
};

void put_varint_late(struct buf *b, uint64_t v);     /* when there may be no room */

static inline void put_varint(struct buf *b, uint64_t v)
{
	uint8_t *at;
	size_t n = 1;

	if (b->failed || b->cap - b->len <= VARINT_MAX_BYTES) {
		put_varint_late(b, v);
		return;
	}
	at = (uint8_t *)b->data + b->len;
	if (v < 0x80)
		at[0] = (uint8_t)v;
	else
		n = varint_put(at, v);
	at[n] = '\0';
	b->len += n;
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

void sealing_free(struct sealing *s);
/* Empty it after its references were passed on (segment_seal.c) or dropped. */
void segment_builder_reset(struct segment_builder *b);
void segment_builder_drop_refs(struct segment_builder *b);
