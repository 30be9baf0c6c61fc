/*
 * Which samples of an asked window the ring had given up before the firing, by second and CPU, for the
 * ledger. Only what may still be asked for is kept: nothing where the ring reaches farther back than the
 * window, as it does by far as it comes. Merge thread.
 */
#include "engine/engine_private.h"

#include "model/own_event.h"

#include <stdlib.h>
#include <string.h>

#define ITEMS (1u << 19)                     /* 4 MB; at 4,000 samples a second the last 131 s */
#define ROWS 256u                            /* events for one firing; a process's share holds them */
#define CPUS 256u                            /* by themselves; those above count for none */
#define TICK 100u

static uint64_t time_of(const struct engine *e, uint64_t item)
{
	return e->start_ns + (item >> 16) * TICK;
}

static void add(struct engine *e, const struct segment_sample *s)
{
	struct evicted_samples *v = &e->evicted;
	uint64_t since = s->time_ns > e->start_ns ? s->time_ns - e->start_ns : 0;

	if (v->count == ITEMS) {
		if (!v->forgotten++)
			v->forgotten_ns = time_of(e, v->items[v->first]);
		v->first = (v->first + 1) % ITEMS;
		v->count--;
	}
	v->items[(v->first + v->count++) % ITEMS] = since / TICK << 16 | s->cpu;
}

void engine_evicted_note(void *engine, const struct segment *segment)
{
	struct segment_content content = {0};
	struct engine *e = engine;
	struct evicted_samples *v = &e->evicted;
	/* Without rules the incident at the end is all that there was. */
	uint64_t reach_ns = e->cfg->ntriggers ? e->cfg->capture.pre_ns : UINT64_MAX;
	uint64_t wanted_ns = e->now_ns > reach_ns ? e->now_ns - reach_ns : 0;
	uint32_t i;

	if (e->cfg->capture.file || segment->t1_ns < wanted_ns)
		return;
	if (!v->items && !(v->items = malloc(ITEMS * sizeof(*v->items))))
		return;
	while (v->count && time_of(e, v->items[v->first]) + NS_PER_SEC < wanted_ns) {
		v->first = (v->first + 1) % ITEMS;
		v->count--;
	}
	if (segment_decode(segment->bytes, segment->nbytes, &content, NULL) != 0)
		return;
	for (i = 0; i < content.nsamples; i++) {
		if (content.samples[i].stream == STREAM_CPU)
			add(e, &content.samples[i]);
	}
	segment_content_free(&content);
}

/* ---- telling ------------------------------------------------------------------------------------ */

struct telling {
	struct engine *e;
	uint64_t from_ns, trigger_ns;
	int64_t width_s;                     /* of a row */
	bool per_cpu, silent;                /* silent: only count the rows */
	uint32_t rows;
	int64_t second;                      /* of the counts */
	uint64_t n[CPUS + 1];                /* the last: of no CPU */
};

static void end_row(struct telling *t)
{
	struct event_field fields[] = {
		{.name = OWN_EVICTED_SECOND, .type = FIELD_INT, .v.i = t->second},
		{.name = OWN_EVICTED_SAMPLES, .type = FIELD_UINT},
	};
	unsigned i;

	for (i = 0; i <= CPUS; i++) {
		if (!t->n[i])
			continue;
		t->rows++;
		fields[1].v.u = t->n[i];
		if (!t->silent)
			engine_own_put(t->e, t->trigger_ns, i < CPUS ? (uint16_t)i : CPU_NONE, OWN_EVICTED,
				       fields, 2);
		t->n[i] = 0;
	}
}

static int64_t second_at(const struct telling *t, uint64_t time_ns)
{
	/* All lie before the trigger, or in its moment: rounded down, and to the row's first second. */
	int64_t width_ns = t->width_s * (int64_t)NS_PER_SEC;
	int64_t ns = (int64_t)(t->trigger_ns - time_ns);

	return -((ns + width_ns - 1) / width_ns) * t->width_s;
}

static uint32_t tell_rows(struct telling *t)
{
	const struct evicted_samples *v = &t->e->evicted;
	uint32_t i;

	t->rows = 0;
	/* Of all that is asked for, or it is not known how many of them are. */
	if (v->forgotten && v->forgotten_ns >= t->from_ns) {
		t->second = second_at(t, v->forgotten_ns);
		t->n[CPUS] = v->forgotten;
	}
	for (i = 0; i < v->count; i++) {
		uint64_t item = v->items[(v->first + i) % ITEMS], time_ns = time_of(t->e, item);
		unsigned cpu = item & UINT16_MAX;
		int64_t second;

		if (time_ns + TICK <= t->from_ns || time_ns > t->trigger_ns)
			continue;
		second = second_at(t, time_ns);
		if (second != t->second)
			end_row(t);
		t->second = second;
		t->n[t->per_cpu && cpu < CPUS ? cpu : CPUS]++;
	}
	end_row(t);
	return t->rows;
}

/* Row for row; where those were too many, without CPUs, and then of several seconds each. */
void engine_evicted_tell(struct engine *e, uint64_t from_ns, uint64_t trigger_ns)
{
	struct telling t = {.e = e, .from_ns = from_ns, .trigger_ns = trigger_ns, .width_s = 1,
			    .per_cpu = true, .silent = true};

	if (!e->evicted.count)
		return;
	if (tell_rows(&t) > ROWS) {
		t.per_cpu = false;
		while (tell_rows(&t) > ROWS)
			t.width_s *= 2;
	}
	t.silent = false;
	tell_rows(&t);
}
