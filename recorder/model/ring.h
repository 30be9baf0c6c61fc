/*
 * The ring: the recent past as a queue of sealed segments, bounded by bytes.
 *
 * Putting a segment evicts the oldest ones until the ring fits again. Freezing takes references:
 * microseconds, no copy. A segment that an incident holds lives on after its eviction, counted as
 * held. Threads: all functions lock inside; the merge thread calls ring_put().
 */
#pragma once

#include "model/segment.h"

struct ring;

struct frozen {                      /* references to segments, oldest first */
	struct segment **segments;
	uint32_t nsegments;
};

int ring_new(size_t max_bytes, struct ring **out, struct err *err);
void ring_free(struct ring *ring);

/* Called for each evicted segment before its reference is dropped, on the evicting thread. */
void ring_on_evict(struct ring *ring, void (*evicted)(void *ctx, const struct segment *segment),
		   void *ctx);

/* Takes the reference. Evicts the oldest segments beyond max_bytes; the newest always stays. */
void ring_put(struct ring *ring, struct segment *segment);

/*
 * Take a reference to every segment that overlaps [t0_ns, t1_ns]; drop them with frozen_free().
 * returns  0 or ERR_MEMORY
 */
int ring_freeze(struct ring *ring, uint64_t t0_ns, uint64_t t1_ns, struct frozen *out,
		struct err *err);
int frozen_add(struct frozen *f, struct segment *segment);       /* takes a reference of its own */
void frozen_free(struct frozen *f);

/* Evict the oldest segment, so that what it lists can be forgotten; false when there is none. */
bool ring_give_up_oldest(struct ring *ring);

/* Change the ceiling, evicting what exceeds it; the newest segment stays. */
void ring_set_max(struct ring *ring, size_t max_bytes);

struct ring_use {
	uint32_t segments;
	size_t bytes, max_bytes;
	uint64_t samples;
	uint64_t oldest_ns, newest_ns;       /* 0 when empty */
	uint64_t evicted_segments, evicted_samples;
	uint64_t evicted_until_ns;           /* nothing before this is in it; 0 = none evicted */
	uint64_t given_up_until_ns;          /* the same, of ring_give_up_oldest() */
};
void ring_use(struct ring *ring, struct ring_use *out);
