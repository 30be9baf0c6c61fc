/* Incidents between firing and store: a list that the merge thread fills and the writer empties. */
#pragma once

#include "model/incident.h"
#include "model/ring.h"

#define MANUAL_RULE UINT32_MAX
#define ENGINE_SIGNATURE_FRAMES 48u      /* searched for 8 named user frames */

struct engine;

struct pending {
	/* under the lock */
	struct pending *next;
	struct frozen window;                /* grows until it is complete */
	uint64_t last_number;                /* of its newest segment */
	bool complete;                       /* the post-window has ended */
	bool discard;                        /* aborted: do not store it */
	bool give_up_logged;
	bool dedup_decided;                  /* written by the writer: `repeats` is known */
	bool begun;                          /* written by the writer: the store has its head */
	uint32_t written;                    /* written by the writer: segments in the store */
	struct incident_head head;           /* the writer's alone once it is complete */

	/* the merge thread's */
	uint32_t rule;                       /* index of the trigger, or MANUAL_RULE; constant */
	bool whole;                          /* a whole file: it ends where the file does */
	uint64_t post_end_ns;
	uint64_t lasted_ns;                  /* until when its cause lasted; 0 = a moment */

	/* the writer's */
	bool repeats;                        /* an incident that is stored; dropped when complete */
	struct frame *at[ENGINE_SIGNATURE_FRAMES];   /* the stack, leaf first; referenced */
	uint32_t nat;
	uint32_t signature;                  /* index of its kept signature; UINT32_MAX = none */
	char process[64];                    /* of the firing event; "" = none */
	uint64_t settle_ns;                  /* time left to wait for names */
	uint64_t retry_at_ns;                /* after a failure */
};

void pending_free(struct pending *p);        /* NULL allowed */
/* Append a sentence to why its window is not as requested. */
void pending_add_reason(struct pending *p, const char *reason);

/* Put it at the end of the list, and wake the writer. Takes the lock. */
void pending_append(struct engine *e, struct pending *p);
/* Take it off the list and free it. Takes the lock. */
void pending_remove(struct engine *e, struct pending *p);

/* Bytes of segments that have left the ring and are held for incidents. Under the lock. */
size_t pending_held_bytes(const struct engine *e, uint64_t evicted_until_ns);
/*
 * Bring held bytes below their ceiling, as the disk is slow. First let go of segments that are in
 * the store already; frames named later get no name there. When that is not enough, the oldest
 * incidents give up their oldest segments, and say so. Under the lock.
 */
void pending_relieve(struct engine *e, uint64_t evicted_until_ns);
