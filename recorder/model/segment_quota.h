/*
 * How much of a segment one process may take, so that one that floods (a fork bomb, 100,000 threads, code
 * made anew all the time, events without end) does not push the others' history out of the ring and of
 * the tables. Samples are never refused: over its quota a process's stacks end in a frame "[more]", where
 * they would go on into what is new to the segment, and its samples belong to a thread "[more]". Events
 * over it are refused. Of processes only so many are new in a segment; one that a segment has listed before takes
 * no more room, however many there are, so that what runs for long keeps its name in a flood of those that do not.
 * Processes that are known by events only have numbers of their own, starts and ends one and the others another, and
 * leave that of the processes with samples alone. The builder's own; merge thread.
 */
#ifndef MODEL_SEGMENT_QUOTA_H
#define MODEL_SEGMENT_QUOTA_H

#include "base/table.h"
#include "model/segment.h"

#define QUOTA_SAVED_S 60u
#define QUOTA_GC_SHARE 6u                    /* times as many events of collections as of others */

/* Events of one sort do not use up what another sort may take. */
enum quota_sort {
	QUOTA_COLLECTIONS,                   /* of garbage: what a rule asked for, four to forty a piece, and alike */
	QUOTA_ALLOCATIONS,                   /* GC/AllocationTick: thousands a second of a busy .NET program */
	QUOTA_OTHERS,
	QUOTA_SORTS,
};

struct quota_use {
	uint32_t process;                    /* number; UINT32_MAX = events of none */
	uint32_t nodes, frames, threads;
	uint32_t events[QUOTA_SORTS], event_bytes[QUOTA_SORTS];
};

/* What is new: in this segment, and left of what a rate gives, which goes on from segment to segment. */
struct quota_count {
	uint32_t taken;
	double saved;
	uint64_t filled_ns;                  /* 0 = nothing has been taken yet, and all is there */
};

struct quota_book {
	struct segment_quota limit;
	struct quota_use *uses;
	uint32_t nuses, room;
	struct quota_count fresh;            /* processes with samples that no segment had listed */
	struct quota_count eventful;         /* the same with other events than starts and ends */
	struct quota_count sideband;         /* starts and ends */
	struct table index;
};

void quota_free(struct quota_book *q);
void quota_reset(struct quota_book *q);
/*
 * For a sample: what its process has used in this segment, added when it is new; NULL without memory, over
 * `processes`, or without any quotas.
 */
struct quota_use *quota_of(struct quota_book *q, const struct process *process, uint64_t now_ns);
bool quota_is_sideband(enum event_kind kind);
/* Whether an event fits, and if so count it; quota_event_took: the bytes that its fields have become. */
bool quota_event(struct quota_book *q, const struct event *e);
void quota_event_took(struct quota_book *q, const struct event *e, size_t bytes);

static inline bool quota_over(uint32_t used, uint32_t limit)
{
	return limit && used >= limit;
}

#endif
