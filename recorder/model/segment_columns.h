/*
 * The columns of a segment in their order, and what writing and reading them share; private to
 * segment_build.c, segment_seal.c and segment_read.c.
 */
#ifndef MODEL_SEGMENT_COLUMNS_H
#define MODEL_SEGMENT_COLUMNS_H

#include "model/segment.h"

enum segment_column {
	COLUMN_SAMPLE_WEIGHT,
	COLUMN_SAMPLE_STREAM,
	COLUMN_SAMPLE_CPU,
	COLUMN_SAMPLE_TIME,
	COLUMN_SAMPLE_THREAD,
	COLUMN_SAMPLE_STACK,
	COLUMN_SAMPLE_QUALITY,
	COLUMN_NODE_PARENT,
	COLUMN_NODE_FRAME,
	COLUMN_EVENT_TIME,
	COLUMN_EVENT_KIND,
	COLUMN_EVENT_FLAGS,
	COLUMN_EVENT_CPU,
	COLUMN_EVENT_THREAD,
	COLUMN_EVENT_STACK,
	COLUMN_EVENT_PROVIDER,
	COLUMN_EVENT_NAME,
	COLUMN_EVENT_VALUE,
	COLUMN_EVENT_FIELDS,
	COLUMN_NAMES,
};

enum segment_codec { SEGMENT_CODEC_RAW, SEGMENT_CODEC_ZLIB };

/* When a sample is expected: the sampling clock ticks per CPU. CPUs beyond share a slot. */
#define CLOCK_CPUS 1024u
#define CLOCK_MAX_WEIGHT_NS (4 * 1000000000ULL)

struct sample_clock {
	uint64_t last_tick[CLOCK_CPUS + 1];
};

static inline void clock_start(struct sample_clock *c, uint64_t base_tick)
{
	unsigned i;

	for (i = 0; i <= CLOCK_CPUS; i++)
		c->last_tick[i] = base_tick;
}

static inline uint64_t *clock_of(struct sample_clock *c, uint64_t cpu)
{
	return &c->last_tick[cpu < CLOCK_CPUS ? cpu : CLOCK_CPUS];
}

static inline uint64_t clock_step(uint64_t stream, uint64_t weight)
{
	return stream == STREAM_CPU && weight < CLOCK_MAX_WEIGHT_NS ? weight / SEGMENT_TICK_NS : 0;
}

_Static_assert(COLUMN_NAMES + 1 == SEGMENT_COLUMNS, "segment.h counts the columns");

#endif
