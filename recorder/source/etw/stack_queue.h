/*
 * The line in which records wait for their stacks: copies, in the order they came. Inside of
 * etw/stacks.h.
 *
 * A survey copies nothing but knows QUEUE_KNOWN records back, also those that a delivery would have
 * let go by then; line.first moves in both by the same rule, so both agree on what is late.
 */
#ifndef SOURCE_ETW_STACK_QUEUE_H
#define SOURCE_ETW_STACK_QUEUE_H

#include "source/etw/class.h"

#include <string.h>

#define QUEUE_KNOWN (1u << 16)                /* power of two */
#define QUEUE_RING_BYTES ((size_t)4 << 20)    /* of copies: what may be held, and slack for two */
#define QUEUE_COPY_MAX ((size_t)256 << 10)    /* a larger record waits without its payload */

enum { PART_NONE, PART_COPY, PART_KEPT, PART_NO_KEY };
enum { KERNEL, USER };
enum held_flags { TARGET = 1, HAS = 2 /* << KERNEL or USER */, WANTS_USER = 8, RUNTIME = 16 };

/* A part of a stack: addresses in the line's copies, or a kept stack. */
struct part {
	uint8_t kind, pointer_bytes;
	uint16_t n;
	uint32_t at;
};

struct queued {
	int64_t ticks;
	uint32_t tid;                        /* whose stack it takes */
	uint16_t cpu;
	uint16_t flags;
	uint32_t at, bytes;                  /* of its copy */
	struct part part[2];
	const struct etw_class *class;
};

struct stack_queue {
	struct queued held[QUEUE_KNOWN];
	uint64_t first, next;                /* records first to next - 1 are in the line */
	uint64_t known;                      /* the oldest that can be asked for */
	size_t held_bytes;
	bool survey;
	char *ring;                          /* copies; none in a survey */
	size_t ring_at;
};

static inline struct queued *stack_queue_at(struct stack_queue *q, uint64_t number)
{
	return &q->held[number & (QUEUE_KNOWN - 1)];
}

/*
 * The record takes its place at the end.
 * returns  false when it was too large: what leaves the line has no payload and no items
 */
bool stack_queue_append(struct stack_queue *q, const struct etw_record *record, const struct etw_class *class);
/* Where bytes of the record that was appended last stand in the ring. */
uint32_t stack_queue_place(struct stack_queue *q, const struct etw_record *record, const uint8_t *bytes);
bool stack_queue_is_full(const struct stack_queue *q);
/* The first leaves; *out (NULL allowed) becomes its copy, good until the next append. */
void stack_queue_pop(struct stack_queue *q, struct etw_record *out);

/*
 * The event of a part: the same ticks; its own thread before one that is not known, the part's CPU
 * before another, one without that part before one that has it. false = there is none.
 */
bool stack_queue_find(struct stack_queue *q, int64_t ticks, uint32_t tid, uint16_t cpu, int which,
	       uint64_t *target);

#endif
