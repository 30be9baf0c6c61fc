/*
 * What the recorder says about itself among the events of an incident; see model/own_event.h. It
 * goes into a queue of its own, from which the merge loop takes it like the events of any source.
 * Merge thread.
 */
#include "engine/engine_private.h"

#include "base/array.h"
#include "model/own_event.h"

#include <inttypes.h>
#include <stdio.h>

void own_event_put(struct engine *e, uint64_t time_ns, uint16_t cpu, const char *name,
		   const struct event_field *fields, uint32_t nfields)
{
	const struct event event = {.time_ns = time_ns, .kind = EVENT_GENERIC, .cpu = cpu,
			      .stack = STACK_NONE, .provider = OWN_PROVIDER, .name = name,
			      .fields = fields, .nfields = nfields};

	queue_put(e->merge.own, &event);
}

const char *engine_flooded_text(uint64_t flooded, char out[ENGINE_FLOODED_BYTES])
{
	out[0] = '\0';
	if (flooded)
		snprintf(out, ENGINE_FLOODED_BYTES, ", %" PRIu64 " events of floods left out",
			 flooded);
	return out;
}

double ring_bytes_per_sample(const struct ring_use *use)
{
	return use->samples ? (double)use->bytes / (double)use->samples : 0;
}

void own_event_put_ring(struct engine *e, uint64_t time_ns)
{
	struct event_field fields[] = {
		{.name = OWN_RING_SECONDS, .type = FIELD_DOUBLE},
		{.name = OWN_RING_BYTES, .type = FIELD_UINT},
		{.name = OWN_RING_SAMPLES, .type = FIELD_UINT},
		{.name = OWN_RING_BYTES_PER_SAMPLE, .type = FIELD_DOUBLE},
	};
	uint64_t oldest_ns = segment_first_ns(e->merge.builder);
	struct ring_use use;

	ring_use(e->ring, &use);
	if (use.oldest_ns)
		oldest_ns = use.oldest_ns;
	if (oldest_ns && time_ns > oldest_ns)
		fields[0].v.d = (double)(time_ns - oldest_ns) / 1e9;
	fields[1].v.u = use.bytes + segment_open_bytes(e->merge.builder);
	fields[2].v.u = use.samples + segment_open_samples(e->merge.builder);
	fields[3].v.d = ring_bytes_per_sample(&use);
	own_event_put(e, time_ns, CPU_NONE, OWN_RING, fields, COUNT_OF(fields));
}
