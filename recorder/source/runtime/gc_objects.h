/*
 * Which sampled objects of .NET are still there: each GC/AllocationTick names one by its address,
 * and GC/BulkSurvivingObjectRanges and GC/BulkMovedObjectRanges say between GC/Start and GC/Stop
 * which addresses live on, and where. So a tick becomes a sample of the stream heap, and it gets a
 * mark (model/event.h) at the end of the collection that did not find its object alive. What has no
 * mark is still there, or was not collected yet.
 *
 * An object dies only where that is certain: it was there when the collection began, its generation
 * is one that was collected, the runtime told of survivals then (the keyword is on if it tells the
 * bounds of generations, GC/GenerationRange), and none of its events was lost since the object was
 * seen last. Other objects that are not found again are forgotten: they count as still there, and
 * in `forgotten`.
 *
 * A collection of generation 2 may go on in the background while younger ones begin and end, and
 * tells of its own objects while the next one waits for it. What is told while two are open counts
 * as alive for both: an object may be found dead one collection later, and none too early.
 *
 * Sources: ClrEtwAll.man of the .NET runtime; PerfView's GCHeapSimulator reads the same events (it
 * knows one collection at a time, and guesses generations). One thread.
 */
#pragma once

#include "base/log.h"
#include "model/event.h"

#define GC_OBJECTS_KEYWORD 0x400000u         /* GCHeapSurvivalAndMovement */
#define GC_OBJECTS_PROGRAMS_MAX 256u
#define GC_OBJECTS_MAX (1u << 16)            /* of one program; 100 KB each were allocated */
#define GC_OBJECTS_ALL_MAX (1u << 18)        /* 48 bytes each */
#define GC_OBJECTS_CPUS 64u

/* Starts as {0}: nothing is followed. */
struct gc_objects {
	bool on;                             /* set it where survivals are told */
	struct log *log;                     /* told once that some were forgotten; NULL = none */
	struct gc_program *programs;
	uint32_t nprograms, nobjects;
	uint64_t lost_ns;
	uint64_t ticks[GC_OBJECTS_CPUS];     /* of a CPU's last sample: each has its own */
	uint64_t forgotten;
};

typedef void gc_objects_put(void *ctx, const struct event *e);

/* Whether this event exists only where survivals are told. */
bool gc_objects_tells(const char *provider, uint32_t event_id);
/* A GC/AllocationTick with its stack, which put() gets as a sample. Other events are ignored. */
void gc_objects_alloc(struct gc_objects *g, const struct event *e, gc_objects_put *put, void *ctx);
/*
 * What a collection tells; at its end put() gets the marks. payload: as recorded, of a program
 * whose pointers have that many bytes.
 *
 * returns  whether it is one of the many events that only say what lives on: live recordings do
 *          not keep them
 */
bool gc_objects_collect(struct gc_objects *g, const struct event *e, const uint8_t *payload,
			uint32_t nbytes, uint32_t pointer_bytes, gc_objects_put *put, void *ctx);
/* Events of before that time were lost, of any program. */
void gc_objects_lost(struct gc_objects *g, uint64_t now_ns);
/* The processes of this number have ended. */
void gc_objects_gone(struct gc_objects *g, uint32_t pid);
void gc_objects_free(struct gc_objects *g);
