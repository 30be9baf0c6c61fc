#include "analysis/event_samples.h"

#include "analysis/io_samples.h"
#include "analysis/leaf.h"
#include "analysis/reserved.h"
#include "base/array.h"

#include <stdio.h>
#include <string.h>

struct adding {
	struct incident *in;
	struct table sampled;                /* event_samples_list() */
	struct table ticks;                  /* samples of STREAM_ALLOC that were made */
	uint32_t module;
};

/* ---- which events are samples already -------------------------------------------------------- */

struct moment {
	uint64_t time_ns;
	uint32_t thread;
};

static bool same_moment(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_sample *s = &((const struct incident *)ctx)->samples[value];
	const struct moment *m = key;

	return s->time_ns == m->time_ns && s->thread == m->thread;
}

int event_samples_list(const struct incident *in, struct table *out)
{
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		if (in->samples[i].stream == STREAM_EVENT &&
		    table_add(out, hash_pair(in->samples[i].time_ns, in->samples[i].thread), i))
			return ERR_MEMORY;
	}
	return 0;
}

uint32_t event_sample_of(const struct incident *in, const struct table *samples,
			 const struct incident_event *e)
{
	struct moment m = {e->time_ns, e->thread};

	return table_find(samples, hash_pair(m.time_ns, m.thread), same_moment, in, &m);
}

static bool has_views(const struct incident *in)
{
	uint32_t i;

	for (i = 0; i < in->nsamples && !stream_metrics[in->samples[i].stream].view; i++)
		;
	return i < in->nsamples;
}

/* ---- making them ----------------------------------------------------------------------------- */

/* The node of an event below its stack; STACK_NONE = no memory. */
static uint32_t leaf_of(struct adding *a, const struct incident_event *e)
{
	const struct event_field *type = incident_field(a->in, e, "ExceptionType");
	char what[FUNCTION_NAME_MAX];
	bool typed;

	type = type ? type : incident_field(a->in, e, "TypeName");
	typed = type && type->type == FIELD_TEXT;
	snprintf(what, sizeof(what), "%s%s%s", *e->name ? e->name : event_kind_text(e->kind),
		 typed ? " " : "", typed ? type->v.text : "");
	return leaf_add(a->in, a->module, e->stack, what);
}

static int add_one(struct adding *a, const struct incident_event *e)
{
	struct incident_sample s = {.time_ns = e->time_ns, .weight = 1, .thread = e->thread,
				    .cpu = e->cpu, .stream = STREAM_EVENT, .quality = QUALITY_NONE};
	const struct event_field *bytes;
	int rc;

	s.stack = leaf_of(a, e);
	if (s.stack == STACK_NONE)
		return ERR_MEMORY;
	rc = incident_add_sample(a->in, &s);
	if (rc || strcmp(e->name, "GC/AllocationTick") != 0)
		return rc;
	bytes = incident_field(a->in, e, "AllocationAmount64");
	bytes = bytes ? bytes : incident_field(a->in, e, "AllocationAmount");
	if (!bytes || bytes->type != FIELD_UINT)
		return 0;
	s.stream = STREAM_ALLOC;
	s.weight = bytes->v.u;
	if (incident_field_uint(a->in, e, "AllocationKind") == GC_LARGE_OBJECT)
		s.stack = leaf_add(a->in, a->module, s.stack, GC_LARGE_OBJECT_NAME);
	if (s.stack == STACK_NONE)
		return ERR_MEMORY;
	rc = incident_add_sample(a->in, &s);
	return rc ? rc : table_add(&a->ticks, hash_pair(s.time_ns, s.thread), a->in->nsamples - 1);
}

/* An object whose tick had no leaf when it was recorded has that of its type, too. */
static void put_type(const struct adding *a, uint64_t time_ns, uint32_t thread, uint32_t *stack)
{
	const struct moment m = {time_ns, thread};
	uint32_t at = table_find(&a->ticks, hash_pair(time_ns, thread), same_moment, a->in, &m);

	if (at != TABLE_NONE)
		*stack = a->in->samples[at].stack;
}

static void put_types(const struct adding *a)
{
	struct incident *in = a->in;
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		struct incident_sample *s = &in->samples[i];

		if (s->stream == STREAM_HEAP || s->stream == STREAM_HEAP_NET)
			put_type(a, s->time_ns, s->thread, &s->stack);
	}
	for (i = 0; i < in->nfreed; i++)
		put_type(a, in->freed[i].time_ns, in->freed[i].thread, &in->freed[i].stack);
}

static int add_all(struct adding *a)
{
	struct incident *in = a->in;
	uint32_t i;
	int rc = 0;

	a->module = leaf_module(in);
	if (a->module == UINT32_MAX)
		return ERR_MEMORY;
	for (i = 0; !rc && i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->stack != STACK_NONE && e->kind != EVENT_SAMPLE &&
		    strcmp(e->provider, "Recorder") != 0 &&
		    event_sample_of(in, &a->sampled, e) == TABLE_NONE)
			rc = add_one(a, e);
	}
	if (!rc && a->ticks.used)
		put_types(a);
	return rc;
}

int event_samples_add(struct incident *in, struct err *err)
{
	struct adding a = {.in = in};
	bool had_views = has_views(in);
	uint32_t before = in->nsamples;
	int rc = event_samples_list(in, &a.sampled);

	if (!rc)
		rc = add_all(&a);
	if (!rc && !had_views)
		rc = io_samples_add(in, a.module);
	if (!rc && !had_views)
		rc = reserved_samples_add(in);
	if (!rc && in->nsamples > before)
		rc = incident_sort(in);
	table_free(&a.sampled);
	table_free(&a.ticks);
	return rc ? err_memory(err, "for samples of events") : 0;
}
