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
#pragma once

#include "base/table.h"
#include "model/segment.h"

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
	uint32_t nodes, frames, threads;
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
