/*
 * Blocks of heaps, as the probes otel_memory:alloc and otel_memory:free tell of them: those of
 * librecorder-heap.so (recorder/preload/heap.c), or of an allocator that brings them along; and the
 * library's probes of frees that are mistakes. On Windows: as the heap's own events tell (etw).
 *
 * A sampled allocation becomes a sample of the stream heap, whose weight is the probe's. When the
 * block is freed, the sample gets a mark (model/event.h), with thread and stack of who freed it. So
 * what has no mark is still in use. A second free of a block is an event Heap/DoubleFree, which
 * says when it was allocated and freed first; a free of a pointer that no allocation gave is
 * Heap/UnknownFree.
 *
 * One thread, except heap_blocks_forgotten().
 */
#pragma once

#include "base/slots.h"
#include "base/table.h"
#include "model/event.h"

#define HEAP_FREED_MAX 4096u                 /* blocks whose first free is remembered */
#define HEAP_FIELDS 4u
#define HEAP_BLOCKS_MAX (1u << 18)           /* of all processes, 72 bytes each with their index */
#define HEAP_BLOCKS_ALL (1u << 21)

struct heap_blocks {
	struct slots all;
	struct table by_address;
	uint32_t hand;                       /* the next one to be forgotten */
	_Atomic uint64_t forgotten;          /* no longer followed: they count as in use */
	struct heap_freed *freed;            /* HEAP_FREED_MAX, in turn */
	uint32_t freed_hand;
	struct event_field fields[HEAP_FIELDS];      /* of the last mistake */
};

enum heap_probe { HEAP_NONE, HEAP_ALLOC, HEAP_FREE, HEAP_DOUBLE_FREE, HEAP_UNKNOWN_FREE };

/* What a probe of this provider and name ("/PATH:otel_memory:alloc") tells. */
enum heap_probe heap_probe_of(const char *provider, const char *name);

/* max: HEAP_BLOCKS_MAX, or HEAP_BLOCKS_ALL where each block is told of. 0 or ERR_MEMORY */
int heap_blocks_init(struct heap_blocks *h, uint32_t max);
void heap_blocks_free(struct heap_blocks *h);
/*
 * Turn the event of such a probe (process, time_ns, cpu, fields Arg1 ...) into the sample, mark or
 * event that is to be delivered; its fields are borrowed until the next call.
 * returns  false = it tells nothing new
 */
bool heap_blocks_take(struct heap_blocks *h, enum heap_probe what, struct event *e);
/*
 * One more block of a heap that is destroyed (the allocation's field Heap), from *at on, which
 * begins with 0 and moves: as if *e freed it. returns  false = there is none
 */
bool heap_blocks_destroy(struct heap_blocks *h, uint64_t heap, uint32_t *at, struct event *e);
