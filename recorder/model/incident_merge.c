#include "model/incident_build_private.h"

#include "base/array.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

/* Merging a segment: its indices are local; its tree becomes part of the incident's tree. */

struct merge {
	struct incident *in;
	const struct segment_content *c;
	const uint32_t *threads, *frames;
	uint32_t *stacks;                    /* local node -> stack; STACK_NONE = not needed */
	bool uneven;                     /* some CPU samples weigh more or less than their period */
	struct err *err;
};

static int points_nowhere(struct merge *m, const char *what, uint32_t index)
{
	return err_set(m->err, ERR_FORMAT, "a segment is damaged: %s %u points nowhere", what,
		       index);
}

/* The content comes from a file through a decoder; trust neither. */
static int check_lists(struct merge *m)
{
	const struct segment_content *c = m->c;
	uint32_t i;

	for (i = 0; i < c->nthreads; i++) {
		if (m->threads[i] >= m->in->nthreads)
			return points_nowhere(m, "thread", i);
	}
	for (i = 0; i < c->nframes; i++) {
		if (m->frames[i] >= m->in->nframes)
			return points_nowhere(m, "frame", i);
	}
	return 0;
}

static void mark_needed(struct merge *m, uint32_t node)
{
	if (node != STACK_NONE)
		m->stacks[node] = 0;
}

/* Check all samples and events, and mark the stacks that the window uses. */
static int check_content(struct merge *m)
{
	const struct segment_content *c = m->c;
	uint32_t i;

	for (i = 0; i < c->nsamples; i++) {
		const struct incident_sample *s = &c->samples[i];

		if (!sample_is_sound(s, c->nthreads, c->nnodes))
			return points_nowhere(m, "sample", i);
		if (incident_reaches(&m->in->head, s->time_ns))
			mark_needed(m, s->stack);
	}
	for (i = 0; i < c->nevents; i++) {
		const struct incident_event *e = &c->events[i];

		if (!event_is_sound(e, c->nthreads, c->nnodes) || e->first_field > c->nfields ||
		    e->nfields > c->nfields - e->first_field)
			return points_nowhere(m, "event", i);
		if (incident_reaches(&m->in->head, e->time_ns))
			mark_needed(m, e->stack);
	}
	return 0;
}

/* Check all nodes, and mark the callers of those that are needed, which precede them. */
static int check_nodes(struct merge *m)
{
	const struct segment_content *c = m->c;
	uint32_t i;

	for (i = c->nnodes; i-- > 0;) {
		struct incident_stack node = c->nodes[i];

		if (!index_exists(node.parent, i) || node.frame >= c->nframes)
			return points_nowhere(m, "stack", i);
		if (m->stacks[i] != STACK_NONE)
			mark_needed(m, node.parent);
	}
	return 0;
}

static uint32_t thread_of(const struct merge *m, uint32_t local)
{
	return local == THREAD_NONE ? THREAD_NONE : m->threads[local];
}

static uint32_t stack_of(const struct merge *m, uint32_t local)
{
	return local == STACK_NONE ? STACK_NONE : m->stacks[local];
}

/* Does a sample weigh its period, but for rounding? Sources that measure CPU time differ. */
static bool weighs(uint64_t weight_ns, uint64_t period_ns)
{
	uint64_t apart_ns = weight_ns > period_ns ? weight_ns - period_ns : period_ns - weight_ns;

	return apart_ns <= period_ns / 100;
}

static int make_room_for_samples(struct merge *m)
{
	struct incident *in = m->in;
	size_t n = (size_t)in->nsamples + m->c->nsamples;

	if (n <= in->build->samples_cap)
		return 0;
	if (ARRAY_ROOM(in->samples, in->build->samples_cap, n))
		return ERR_MEMORY;
	os_use_large_pages(in->samples, in->build->samples_cap * sizeof(*in->samples));
	return 0;
}

static int add_samples(struct merge *m)
{
	const struct incident_head *head = &m->in->head;
	uint64_t period_ns = m->c->period_ns[STREAM_CPU];
	struct incident *in = m->in;
	struct incident_sample *to;
	uint32_t i;

	if (!m->c->nsamples)
		return 0;
	if (make_room_for_samples(m))
		return ERR_MEMORY;
	to = in->samples + in->nsamples;
	for (i = 0; i < m->c->nsamples; i++) {
		const struct incident_sample *s = &m->c->samples[i];

		if (!incident_reaches(&m->in->head, s->time_ns))
			continue;
		*to = *s;
		to->thread = thread_of(m, s->thread);
		to->stack = stack_of(m, s->stack);
		/* A wait that ends in the window and began before it: keep the part within. */
		if (s->stream == STREAM_OFF_CPU && to->weight > s->time_ns - head->t0_ns)
			to->weight = s->time_ns - head->t0_ns;
		if (s->weight != period_ns && s->weight && s->stream == STREAM_CPU)
			m->uneven |= !weighs(s->weight, period_ns);
		to++;
	}
	in->nsamples = (uint32_t)(to - in->samples);
	return 0;
}

static int add_events(struct merge *m)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < m->c->nevents && !rc; i++) {
		struct incident_event e = m->c->events[i];

		if (!incident_reaches(&m->in->head, e.time_ns))
			continue;
		e.thread = thread_of(m, e.thread);
		e.stack = stack_of(m, e.stack);
		rc = incident_add_event(m->in, &e, m->c->fields + e.first_field);
	}
	return rc;
}

uint64_t incident_units(const struct incident *in, const struct incident_sample *s)
{
	return in->several_periods ? s->weight / 1000 + (s->weight % 1000 >= 500) : 1;
}

/* Segments end where the rate changes; samples outside the window do not count. */
static void note_period(struct merge *m)
{
	uint64_t period_ns = m->c->period_ns[STREAM_CPU];
	struct incident *in = m->in;

	if (!period_ns)
		return;
	in->several_periods |= m->uneven || (in->cpu_period_ns && in->cpu_period_ns != period_ns);
	in->cpu_period_ns = in->cpu_period_ns ? in->cpu_period_ns : period_ns;
}

int incident_add_segment(struct incident *in, const struct segment_content *c,
			 const uint32_t *threads, const uint32_t *frames, struct err *err)
{
	struct merge m = {.in = in, .c = c, .threads = threads, .frames = frames, .err = err};
	unsigned stream;
	uint32_t nsamples;
	int rc;

	m.stacks = malloc(((size_t)c->nnodes + 1) * sizeof(*m.stacks));
	if (!m.stacks)
		return err_memory(err, "while loading an incident");
	memset(m.stacks, 0xff, c->nnodes * sizeof(*m.stacks));
	rc = check_lists(&m);
	if (!rc)
		rc = check_content(&m);
	if (!rc)
		rc = check_nodes(&m);
	if (rc) {
		free(m.stacks);
		return rc;
	}
	rc = incident_add_tree(in, c->nodes, c->nnodes, frames, m.stacks);
	nsamples = in->nsamples;
	if (!rc)
		rc = add_samples(&m);
	if (!rc && in->nsamples > nsamples)
		note_period(&m);
	if (!rc)
		rc = add_events(&m);
	for (stream = 0; stream < STREAMS_MAX && !rc; stream++) {
		if (!in->head.period_ns[stream])
			in->head.period_ns[stream] = c->period_ns[stream];
	}
	free(m.stacks);
	return rc ? err_memory(err, "while loading an incident") : 0;
}
