/*
 * The line in which records wait for their stacks: copies, in the order they came. Inside of
 * etw/stacks.h.
 *
 * A survey copies nothing but knows LINE_KNOWN records back, also those that a delivery would have
 * let go by then; line.first moves in both by the same rule, so both agree on what is late.
 */
#ifndef SOURCE_ETW_STACK_LINE_H
#define SOURCE_ETW_STACK_LINE_H

#include "source/etw/class.h"

#include <string.h>

#define LINE_KNOWN (1u << 16)                /* power of two */
#define LINE_RING_BYTES ((size_t)4 << 20)    /* of copies: what may be held, and slack for two */
#define LINE_COPY_MAX ((size_t)256 << 10)    /* a larger record waits without its payload */

enum { PART_NONE, PART_COPY, PART_KEPT, PART_NO_KEY };
enum { KERNEL, USER };
enum held_flags { TARGET = 1, HAS = 2 /* << KERNEL or USER */, WANTS_USER = 8, RUNTIME = 16 };

/* A part of a stack: addresses in the line's copies, or a kept stack. */
struct part {
	uint8_t kind, pointer_bytes;
	uint16_t n;
	uint32_t at;
};

struct held {
	int64_t ticks;
	uint32_t tid;                        /* whose stack it takes */
	uint16_t cpu;
	uint16_t flags;
	uint32_t at, bytes;                  /* of its copy */
	struct part part[2];
	const struct etw_class *class;
};

struct line {
	struct held held[LINE_KNOWN];
	uint64_t first, next;                /* records first to next - 1 are in the line */
	uint64_t known;                      /* the oldest that can be asked for */
	size_t held_bytes;
	bool survey;
	char *ring;                          /* copies; none in a survey */
	size_t ring_at;
};

static inline struct held *line_at(struct line *line, uint64_t number)
{
	return &line->held[number & (LINE_KNOWN - 1)];
}

/*
 * The record takes its place at the end.
 * returns  false when it was too large: what leaves the line has no payload and no items
 */
bool line_append(struct line *line, const struct etw_record *record, const struct etw_class *class);
/* Where bytes of the record that was appended last stand in the ring. */
uint32_t line_place(struct line *line, const struct etw_record *record, const uint8_t *bytes);
bool line_is_full(const struct line *line);
/* The first leaves; *out (NULL allowed) becomes its copy, good until the next append. */
void line_leave(struct line *line, struct etw_record *out);

/*
 * The event of a part: the same ticks; its own thread before one that is not known, the part's CPU
 * before another, one without that part before one that has it. false = there is none.
 */
bool line_find(struct line *line, int64_t ticks, uint32_t tid, uint16_t cpu, int which,
	       uint64_t *target);

#endif
