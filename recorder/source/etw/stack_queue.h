/*
 * The queue in which copies of records wait for their stacks. A part of etw/stacks.h.
 *
 * A survey copies nothing, but knows the last QUEUE_KNOWN records, also those that a delivery would
 * have passed on. `first` moves by the same rule in both, so both agree on which parts are late.
 */
#pragma once

#include "source/etw/class.h"

#include <string.h>

#define QUEUE_KNOWN (1u << 16)                /* power of two */
#define QUEUE_HELD (1u << 14)                 /* power of two: the ceiling and slack */
#define QUEUE_RING_BYTES ((size_t)4 << 20)    /* of copies: the ceiling and slack for two */
#define QUEUE_COPY_MAX ((size_t)256 << 10)    /* a larger record waits without its payload */

enum { PART_NONE, PART_COPY, PART_KEPT, PART_NO_KEY };
enum { KERNEL, USER };
enum held_flags { TARGET = 1, HAS = 2 /* << KERNEL or USER */, WANTS_USER = 8, RUNTIME = 16 };

/* A part of a stack: addresses in the queue's copies, or a kept stack. */
struct part {
	uint8_t kind, pointer_bytes;
	uint16_t n;
	uint32_t at;
};

/* By what a record is found: small, because a survey looks through many. */
struct known {
	int64_t ticks;
	uint32_t tid;                        /* of its stack */
	uint16_t cpu;
	uint16_t flags;
};

struct queued {
	uint32_t at, bytes;                  /* of its copy */
	struct part part[2];
	const struct etw_class *class;
};

struct stack_queue {
	struct known all[QUEUE_KNOWN];
	struct queued held[QUEUE_HELD];
	uint64_t first, next;                /* records first to next - 1 are queued */
	uint64_t known;                      /* the oldest record that can be found */
	size_t held_bytes;
	bool survey;
	char *ring;                          /* copies; none in a survey */
	size_t ring_at;
};

static inline struct known *stack_queue_known(struct stack_queue *q, uint64_t number)
{
	return &q->all[number & (QUEUE_KNOWN - 1)];
}

static inline struct queued *stack_queue_at(struct stack_queue *q, uint64_t number)
{
	return &q->held[number & (QUEUE_HELD - 1)];
}

/*
 * Append a record, which becomes its copy, except in a survey.
 * returns  false when it was too large: it is queued without payload and items
 */
bool stack_queue_append(struct stack_queue *q, struct etw_record *record,
			const struct etw_class *class);
bool stack_queue_is_full(const struct stack_queue *q);
/* Remove the first record; *out (NULL allowed) becomes its copy, valid until the next append. */
void stack_queue_pop(struct stack_queue *q, struct etw_record *out);

/*
 * Find the event of a part: it has the same ticks. The part's thread is preferred to an unknown
 * thread, its CPU to another, and an event without such a part to one that has it. false = none.
 */
bool stack_queue_find(struct stack_queue *q, int64_t ticks, uint32_t tid, uint16_t cpu, int which,
	       uint64_t *target);
