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
#include <stdlib.h>

#define EVICTED_MAX (1u << 19)               /* 4 MB; at 4,000 samples a second the last 131 s */
#define ROWS 256u                            /* for one firing; the quota of a process holds them */
#define CPUS 256u                            /* those above count as without a CPU */

void own_event_put(struct engine *e, uint64_t time_ns, uint16_t cpu, const char *name,
		   const struct event_field *fields, uint32_t nfields)
{
	const struct event event = {.time_ns = time_ns, .kind = EVENT_GENERIC, .cpu = cpu,
			      .stack = STACK_NONE, .provider = OWN_PROVIDER, .name = name,
			      .fields = fields, .nfields = nfields};

	queue_put(e->merge.own, &event);
}

void own_event_say(struct engine *e, enum log_level level, const char *name, const char *text)
{
	const struct event_field field = {.name = OWN_TEXT, .type = FIELD_TEXT, .v.text = text};

	log_line(e->log, level, "%s", text);
	if (e->merge.started)
		own_event_put(e, e->merge.now_ns, CPU_NONE, name, &field, 1);
}

void own_event_put_marks(struct engine *e)
{
	struct event_field field = {.name = OWN_TEXT, .type = FIELD_TEXT};
	struct mark *marks, *next, *mark, *first = NULL;

	if (!e->merge.started)
		return;
	os_mutex_lock(e->shared.lock);
	marks = e->shared.marks;
	e->shared.marks = NULL;
	e->shared.nmarks = 0;
	os_mutex_unlock(e->shared.lock);
	for (mark = marks; mark; mark = next) {
		next = mark->next;
		mark->next = first;
		first = mark;
	}
	for (mark = first; mark; mark = next) {
		next = mark->next;
		field.v.text = mark->text;
		own_event_put(e, mark->time_ns, CPU_NONE, OWN_MARK, &field, 1);
		free(mark);
	}
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

/*
 * ---- samples of a requested window that the ring had given up before the firing ----------------
 *
 * By second and CPU, for the ledger. Only samples that a window may still reach are noted: none
 * where the ring reaches farther back than the window, as it does by default.
 */

static uint64_t time_of(const struct engine *e, uint64_t item)
{
	return e->merge.start_ns + (item >> 16) * SEGMENT_TICK_NS;
}

static void note_sample(struct engine *e, const struct incident_sample *s)
{
	struct evicted_samples *v = &e->merge.evicted;
	uint64_t since = s->time_ns > e->merge.start_ns ? s->time_ns - e->merge.start_ns : 0;

	if (v->count == EVICTED_MAX) {
		if (!v->forgotten++)
			v->forgotten_ns = time_of(e, v->items[v->first]);
		v->first = (v->first + 1) % EVICTED_MAX;
		v->count--;
	}
	v->items[(v->first + v->count++) % EVICTED_MAX] = since / SEGMENT_TICK_NS << 16 | s->cpu;
}

void evicted_note(void *engine, const struct segment *segment)
{
	struct segment_content content = {0};
	struct engine *e = engine;
	struct evicted_samples *v = &e->merge.evicted;
	/* Without rules the incident at the end reaches back to the start. */
	uint64_t reach_ns = e->cfg->ntriggers ? e->capture->pre_ns : UINT64_MAX;
	uint64_t wanted_ns = e->merge.now_ns > reach_ns ? e->merge.now_ns - reach_ns : 0;
	uint32_t i;

	if (e->policy->loses_nothing || segment->t1_ns < wanted_ns)
		return;
	if (!v->items && !(v->items = malloc(EVICTED_MAX * sizeof(*v->items))))
		return;
	while (v->count && time_of(e, v->items[v->first]) + NS_PER_SEC < wanted_ns) {
		v->first = (v->first + 1) % EVICTED_MAX;
		v->count--;
	}
	if (!segment->ncpu_samples ||
	    segment_decode_times(segment->bytes, segment->nbytes, &content, NULL) != 0)
		return;
	for (i = 0; i < content.nsamples; i++)
		if (content.samples[i].stream == STREAM_CPU)
			note_sample(e, &content.samples[i]);
	segment_content_free(&content);
}

struct rows {
	struct engine *e;
	uint64_t from_ns, trigger_ns;
	int64_t width_s;                     /* of a row */
	bool per_cpu, count_only;
	uint32_t n;
	int64_t second;                      /* that samples[] is about */
	uint64_t samples[CPUS + 1];          /* by CPU; the last: without one */
};

static void end_row(struct rows *r)
{
	struct event_field fields[] = {
		{.name = OWN_EVICTED_SECOND, .type = FIELD_INT, .v.i = r->second},
		{.name = OWN_EVICTED_SAMPLES, .type = FIELD_UINT},
	};
	unsigned i;

	for (i = 0; i <= CPUS; i++) {
		if (!r->samples[i])
			continue;
		r->n++;
		fields[1].v.u = r->samples[i];
		if (!r->count_only)
			own_event_put(r->e, r->trigger_ns, i < CPUS ? (uint16_t)i : CPU_NONE,
				      OWN_EVICTED, fields, COUNT_OF(fields));
		r->samples[i] = 0;
	}
}

/* The first second of the row for a moment, none of which lies behind the trigger. */
static int64_t second_at(const struct rows *r, uint64_t time_ns)
{
	int64_t width_ns = r->width_s * (int64_t)NS_PER_SEC;
	int64_t ns = (int64_t)(r->trigger_ns - time_ns);

	return -((ns + width_ns - 1) / width_ns) * r->width_s;
}

static uint32_t put_rows(struct rows *r)
{
	const struct evicted_samples *v = &r->e->merge.evicted;
	uint32_t i;

	r->n = 0;
	/* Where the window reaches back to forgotten samples, it is taken to hold all of them. */
	if (v->forgotten && v->forgotten_ns >= r->from_ns) {
		r->second = second_at(r, v->forgotten_ns);
		r->samples[CPUS] = v->forgotten;
	}
	for (i = 0; i < v->count; i++) {
		uint64_t item = v->items[(v->first + i) % EVICTED_MAX];
		uint64_t time_ns = time_of(r->e, item);
		unsigned cpu = item & UINT16_MAX;
		int64_t second;

		if (time_ns + SEGMENT_TICK_NS <= r->from_ns || time_ns > r->trigger_ns)
			continue;
		second = second_at(r, time_ns);
		if (second != r->second)
			end_row(r);
		r->second = second;
		r->samples[r->per_cpu && cpu < CPUS ? cpu : CPUS]++;
	}
	end_row(r);
	return r->n;
}

/* A row for each second and CPU; when those are too many, without CPUs, then of several seconds. */
void evicted_put(struct engine *e, uint64_t from_ns, uint64_t trigger_ns)
{
	struct rows r = {.e = e, .from_ns = from_ns, .trigger_ns = trigger_ns, .width_s = 1,
			 .per_cpu = true, .count_only = true};

	if (!e->merge.evicted.count)
		return;
	if (put_rows(&r) > ROWS) {
		r.per_cpu = false;
		while (put_rows(&r) > ROWS)
			r.width_s *= 2;
	}
	r.count_only = false;
	put_rows(&r);
}
