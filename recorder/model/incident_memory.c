#include "model/incident_build_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* Page faults and blocks of heaps by (CPU, tick), and what the marks say of each. */
struct faults {
	struct incident *in;
	struct table index;
	uint8_t *marks;                      /* of each sample: a bit for each enum memory_mark */
	struct growth *processes;
	bool sizes_known;
	uint32_t n;
	uint32_t freed_cap;
};

struct growth {                              /* of a process */
	bool ended;                          /* its memory has gone with it */
	bool sized;
	bool killed;                         /* for lack of memory: that is what it is about */
	double from_kb, to_kb;               /* of its anonymous memory, in the window */
	double net;                          /* bytes by page faults */
};

struct fault_key {
	bool heap;
	uint16_t cpu;
	uint64_t tick;
};

static bool is_heap(const struct incident_sample *s)
{
	return s->stream == STREAM_HEAP || s->stream == STREAM_HEAP_MARK;
}

static uint64_t hash_of(const struct fault_key *key)
{
	return hash_pair(key->cpu + (key->heap ? 0x10000u : 0), key->tick);
}

static struct fault_key key_of(const struct incident_sample *s)
{
	return (struct fault_key){is_heap(s), s->cpu, s->time_ns / FAULT_TICK_NS};
}

static bool is_fault(const void *ctx, uint32_t value, const void *key)
{
	const struct fault_key *wanted = key;
	struct fault_key is = key_of(&((const struct incident *)ctx)->samples[value]);

	return is.heap == wanted->heap && is.cpu == wanted->cpu && is.tick == wanted->tick;
}

static int find_faults(struct faults *f)
{
	uint32_t i;

	for (i = 0; i < f->in->nsamples; i++) {
		struct fault_key key = key_of(&f->in->samples[i]);

		if (f->in->samples[i].stream != STREAM_RSS &&
		    f->in->samples[i].stream != STREAM_HEAP)
			continue;
		f->n++;
		if (table_add(&f->index, hash_of(&key), i))
			return ERR_MEMORY;
	}
	return 0;
}

static int add_freed(struct faults *f, const struct incident_sample *block,
		     const struct incident_sample *mark)
{
	struct incident *in = f->in;

	if (ARRAY_ROOM(in->freed, f->freed_cap, in->nfreed + 1))
		return ERR_MEMORY;
	in->freed[in->nfreed++] = (struct incident_freed){
		.thread = block->thread, .stack = block->stack, .freed_by = mark->stack,
		.cpu = block->cpu, .weight = block->weight, .time_ns = block->time_ns,
		.freed_ns = mark->time_ns};
	return 0;
}

/* A mark of a fault before the window finds nothing, and counts for nothing. */
static int read_mark(struct faults *f, const struct incident_sample *s)
{
	uint64_t tick = s->time_ns / FAULT_TICK_NS, age = s->weight / 2;
	struct fault_key key = {is_heap(s), s->cpu, tick - age};
	uint32_t at;

	if (age > tick)
		return 0;
	at = table_find(&f->index, hash_of(&key), is_fault, f->in, &key);
	if (at == TABLE_NONE)
		return 0;
	f->marks[at] |= (uint8_t)(1u << (s->weight & 1));
	return key.heap ? add_freed(f, &f->in->samples[at], s) : 0;
}

static void read_size(struct faults *f, const struct incident_event *e)
{
	struct growth *g = &f->processes[f->in->threads[e->thread].process];

	if (!g->sized)
		g->from_kb = (double)incident_field_uint(f->in, e, "BeforeKb");
	g->to_kb = (double)incident_field_uint(f->in, e, "AnonKb");
	g->killed |= incident_field_uint(f->in, e, "Killed") > 0;
	g->sized = f->sizes_known = true;
}

/* A process that called exec is another one, whose memory the marks of the first say gone. */
static void read_events(struct faults *f)
{
	const struct incident *in = f->in;
	uint64_t least_ns = in->head.trigger_ns > MEMORY_ENDED_NS ?
				    in->head.trigger_ns - MEMORY_ENDED_NS : 0;
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->thread == THREAD_NONE)
			continue;
		if (e->kind == EVENT_PROCESS_EXIT && e->time_ns < least_ns)
			f->processes[in->threads[e->thread].process].ended = true;
		if (e->kind == EVENT_GENERIC && strcmp(e->name, "RSS") == 0 &&
		    strcmp(e->provider, "Memory") == 0)
			read_size(f, e);
	}
}

static bool is_there(const struct faults *f, uint32_t i)
{
	uint32_t thread = f->in->samples[i].thread;

	const struct growth *g;

	if (f->marks[i] & 1u << MARK_GONE)
		return false;
	if (thread == THREAD_NONE)
		return !f->sizes_known;
	g = &f->processes[f->in->threads[thread].process];
	return g->killed || !g->ended;
}

static uint64_t weight_of(const struct faults *f, uint32_t i)
{
	uint64_t weight = f->in->samples[i].weight;

	return f->marks[i] & 1u << MARK_HUGE && weight <= INT64_MAX / HUGE_PAGES
		       ? weight * HUGE_PAGES : weight;
}

/* in->memory_factors, from the sums of the processes. */
static int find_factors(struct faults *f)
{
	struct incident *in = f->in;
	uint32_t i;

	if (!f->sizes_known)
		return 0;
	in->memory_factors = calloc((size_t)in->nprocesses + 1, sizeof(*in->memory_factors));
	if (!in->memory_factors)
		return ERR_MEMORY;
	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == STREAM_RSS && s->thread != THREAD_NONE && is_there(f, i))
			f->processes[in->threads[s->thread].process].net +=
				(double)weight_of(f, i);
	}
	for (i = 0; i < in->nprocesses; i++) {
		const struct growth *g = &f->processes[i];

		if (g->net > 0 && g->to_kb > g->from_kb)
			in->memory_factors[i] = (g->to_kb - g->from_kb) * 1024 / g->net;
	}
	return 0;
}

static uint64_t scaled(const struct incident *in, const struct incident_sample *s)
{
	double factor = in->memory_factors && s->thread != THREAD_NONE
				? in->memory_factors[in->threads[s->thread].process] : 1;

	return memory_scales(factor) ? (uint64_t)((double)s->weight * factor) : s->weight;
}

/* The samples again, in order: without marks, and with those of what is still there. */
static int put_samples(struct faults *f)
{
	struct incident *in = f->in;
	size_t room = (size_t)in->nsamples + f->n + 1;
	struct incident_sample *to = malloc(room * sizeof(*to));
	uint32_t i, n = 0;

	if (!to)
		return ERR_MEMORY;
	for (i = 0; i < in->nsamples; i++) {
		struct incident_sample s = in->samples[i];
		bool heap = s.stream == STREAM_HEAP;

		if (stream_is_mark(s.stream))
			continue;
		s.weight = s.stream == STREAM_RSS ? weight_of(f, i) : s.weight;
		to[n++] = s;
		if ((s.stream != STREAM_RSS && !heap) || !is_there(f, i))
			continue;
		s.stream = heap ? STREAM_HEAP_NET : STREAM_RSS_NET;
		s.weight = heap ? s.weight : scaled(in, &s);
		if (s.weight)
			to[n++] = s;
	}
	free(in->samples);
	in->samples = to;
	in->nsamples = n;
	in->build->samples_cap = (uint32_t)room;
	return 0;
}

int incident_memory(struct incident *in)
{
	struct faults f = {.in = in};
	bool any = false;
	uint32_t i;
	int rc;

	for (i = 0; i < in->nsamples && !any; i++)
		any = in->samples[i].stream == STREAM_RSS ||
		      in->samples[i].stream == STREAM_HEAP || stream_is_mark(in->samples[i].stream);
	if (!any)
		return 0;
	f.marks = calloc((size_t)in->nsamples + 1, sizeof(*f.marks));
	f.processes = calloc((size_t)in->nprocesses + 1, sizeof(*f.processes));
	rc = f.marks && f.processes ? find_faults(&f) : ERR_MEMORY;
	for (i = 0; i < in->nsamples && !rc; i++)
		if (stream_is_mark(in->samples[i].stream))
			rc = read_mark(&f, &in->samples[i]);
	if (!rc) {
		read_events(&f);
		rc = find_factors(&f);
	}
	if (!rc)
		rc = put_samples(&f);
	table_free(&f.index);
	free(f.marks);
	free(f.processes);
	return rc;
}
