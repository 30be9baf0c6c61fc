/*
 * What .NET programs tell of their objects, in any order: each event is {u8 what, u8 argument, u8
 * bytes, bytes}. The sums must hold: each object is there, dead, forgotten or of a program that
 * ended.
 */
#include "base/bytes.h"
#include "model/process.h"
#include "source/runtime/gc_objects.h"

#include <stdlib.h>

#define CLR "Microsoft-Windows-DotNETRuntime"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
	uint64_t now_ns;
	uint32_t nsamples, ndead;
};

static void put(void *ctx, const struct event *e)
{
	struct seen *seen = ctx;

	if (e->kind != EVENT_SAMPLE || e->nfields || !e->process)
		abort();
	if (e->stream == STREAM_HEAP_MARK && e->value < 0)
		abort();
	*(e->stream == STREAM_HEAP ? &seen->nsamples : &seen->ndead) += 1;
}

static uint64_t number(const uint8_t *data, size_t n, size_t at)
{
	return at + 8 <= n ? le64(data + at) : at < n ? data[at] * 16u : 0;
}

static void take(struct gc_objects *g, struct seen *seen, uint8_t what, uint8_t argument,
		 const uint8_t *data, uint32_t n)
{
	static const uint8_t ids[] = {10, 1, 2, 21, 22, 23, 1, 99};
	static struct process processes[] = {{.pid = 1}, {.pid = 2}};
	const struct event_field fields[] = {
		{.name = "Count", .type = FIELD_UINT, .v.u = argument % 4},
		{.name = "Depth", .type = FIELD_UINT, .v.u = argument / 4 % 4},
		{.name = "Type", .type = FIELD_UINT, .v.u = argument / 16 % 2},
		{.name = "AllocationKind", .type = FIELD_UINT, .v.u = argument % 3},
		{.name = "Generation", .type = FIELD_UINT, .v.u = argument % 5},
		{.name = "Address", .type = FIELD_UINT, .v.u = number(data, n, 0)},
		{.name = "RangeStart", .type = FIELD_UINT, .v.u = number(data, n, 0)},
		{.name = "RangeUsedLength", .type = FIELD_UINT, .v.u = number(data, n, 8)},
		{.name = argument & 64 ? "AllocationAmount" : "AllocationAmount64",
		 .type = FIELD_UINT, .v.u = number(data, n, 8)}};
	uint32_t id = ids[what & 7];
	struct event e = {.time_ns = seen->now_ns, .kind = EVENT_GENERIC, .cpu = what >> 6,
			  .process = &processes[argument >> 7], .provider = CLR,
			  .name = id == 10 ? "GC/AllocationTick" : "", .fields = fields,
			  .nfields = what & 8 ? 9 : argument % 9, .nstack_frames = 1,
			  .flags = EVENT_FLAG_ID | id << EVENT_ID_SHIFT};

	seen->now_ns += what & 16 ? 1000 : 10;
	gc_objects_collect(g, &e, data, n, what & 32 ? 4 : 8, put, seen);
	gc_objects_alloc(g, &e, put, seen);
	if (id == 99 && argument & 1)
		gc_objects_lost(g, seen->now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gc_objects g = {.on = true};
	struct seen seen = {.now_ns = 1000000};
	size_t at, nbytes;

	for (at = 0; at + 3 <= n; at += 3 + nbytes) {
		nbytes = data[at + 2] < n - at - 3 ? data[at + 2] : n - at - 3;
		take(&g, &seen, data[at], data[at + 1], data + at + 3, (uint32_t)nbytes);
	}
	if (seen.nsamples != g.nobjects + seen.ndead + g.forgotten)
		abort();
	gc_objects_gone(&g, 1);
	gc_objects_free(&g);
	if (g.nobjects)
		abort();
	return 0;
}
