/*
 * Blocks of heaps, as the probes otel_memory:alloc and otel_memory:free tell of them: those of
 * librecorder-heap.so (recorder/preload/heap.c), or of an allocator that brings them along.
 *
 * A sampled allocation becomes a sample of the stream heap, whose weight is the probe's. When the
 * block is freed, the sample gets a mark (model/event.h). So what has no mark is still in use.
 *
 * One thread, except heap_blocks_forgotten().
 */
#pragma once

#include "base/slots.h"
#include "base/table.h"
#include "model/event.h"

#define HEAP_BLOCKS_MAX (1u << 18)           /* of all processes, 64 bytes each with their index */

struct heap_blocks {
	struct slots all;
	struct table by_address;
	uint32_t hand;                       /* the next one to be forgotten */
	_Atomic uint64_t forgotten;          /* no longer followed: they count as in use */
};

enum heap_probe { HEAP_NONE, HEAP_ALLOC, HEAP_FREE };

/* What a probe of this provider and name ("/PATH:otel_memory:alloc") tells. */
enum heap_probe heap_probe_of(const char *provider, const char *name);

int heap_blocks_init(struct heap_blocks *h);         /* 0 or ERR_MEMORY */
void heap_blocks_free(struct heap_blocks *h);
/*
 * Turn the event of such a probe (process, time_ns, cpu, fields Arg1 ...) into the sample or mark
 * that is to be delivered. returns  false = it tells nothing new
 */
bool heap_blocks_take(struct heap_blocks *h, enum heap_probe what, struct event *e);
