/*
 * The ring: the recent past as a queue of sealed segments, bounded by bytes.
 *
 * Putting a segment evicts the oldest until the ring fits again. Freezing takes references:
 * microseconds, no copy; an evicted segment that an incident holds lives on, counted as held.
 * Threads: all functions lock inside; ring_put() is called by the merge thread.
 */
#ifndef MODEL_RING_H
#define MODEL_RING_H

#include "model/segment.h"

struct ring;

struct frozen {                      /* references on segments, oldest first */
	struct segment **segments;
	uint32_t nsegments;
};

int ring_new(size_t max_bytes, struct ring **out, struct err *err);
void ring_free(struct ring *ring);

/* Called for each segment that leaves, before its reference is dropped; by who puts it out. */
void ring_on_evict(struct ring *ring, void (*evicted)(void *ctx, const struct segment *segment), void *ctx);

/* Takes the reference. Evicts the oldest segments beyond max_bytes (the newest always stays). */
void ring_put(struct ring *ring, struct segment *segment);

/*
 * References on every segment that overlaps [t0_ns, t1_ns]; drop with frozen_free().
 * returns  0 or ERR_MEMORY
 */
int ring_freeze(struct ring *ring, uint64_t t0_ns, uint64_t t1_ns, struct frozen *out,
		struct err *err);
int frozen_add(struct frozen *f, struct segment *segment);       /* takes a reference of its own */
void frozen_free(struct frozen *f);

/* Let go of the oldest segment, so that what it lists can be forgotten; false when there is none. */
bool ring_evict_oldest(struct ring *ring);

/* Another ceiling; what is beyond it goes, the newest stays. */
void ring_set_max(struct ring *ring, size_t max_bytes);

struct ring_use {
	uint32_t segments;
	size_t bytes, max_bytes;
	uint64_t samples;
	uint64_t oldest_ns, newest_ns;       /* 0 when empty */
	uint64_t evicted_segments, evicted_samples;
	uint64_t evicted_until_ns;           /* nothing before this is in the ring; 0 = none evicted */
};
void ring_use(struct ring *ring, struct ring_use *out);

#endif
