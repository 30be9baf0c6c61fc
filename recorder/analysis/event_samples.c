#include "analysis/event_samples.h"

#include "base/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct adding {
	struct incident *in;
	struct table sampled;                /* by time and thread: indices of samples of events */
	uint32_t module;
};

struct moment {
	uint64_t time_ns;
	uint32_t thread;
};

static uint64_t moment_hash(const struct moment *m)
{
	return hash_pair(m->time_ns, m->thread);
}

static bool same_moment(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_sample *s = &((const struct incident *)ctx)->samples[value];
	const struct moment *m = key;

	return s->time_ns == m->time_ns && s->thread == m->thread;
}

static int list_sampled(struct adding *a)
{
	const struct incident *in = a->in;
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		struct moment m = {in->samples[i].time_ns, in->samples[i].thread};

		if (in->samples[i].stream == STREAM_EVENT &&
		    table_add(&a->sampled, moment_hash(&m), i))
			return ERR_MEMORY;
	}
	return 0;
}

static const struct event_field *field_of(const struct incident *in,
					  const struct incident_event *e, const char *name)
{
	const struct event fields = {.fields = in->fields + e->first_field, .nfields = e->nfields};

	return event_field(&fields, name);
}

/* The node of an event below its stack; STACK_NONE = no memory. */
static uint32_t leaf_of(struct adding *a, const struct incident_event *e)
{
	const struct event_field *type = field_of(a->in, e, "ExceptionType");
	struct incident_frame frame = {.module = a->module, .flags = FRAME_JIT};
	char what[FUNCTION_NAME_MAX];
	uint32_t number;
	bool typed;

	type = type ? type : field_of(a->in, e, "TypeName");
	typed = type && type->type == FIELD_TEXT;
	snprintf(what, sizeof(what), "%s%s%s", *e->name ? e->name : event_kind_text(e->kind),
		 typed ? " " : "", typed ? type->v.text : "");
	frame.function = what;
	frame.offset = hash_bytes(what, strlen(what));
	number = incident_add_frame(a->in, &frame);
	return number == UINT32_MAX ? STACK_NONE : incident_add_stack(a->in, e->stack, number);
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
	bytes = field_of(a->in, e, "AllocationAmount64");
	bytes = bytes ? bytes : field_of(a->in, e, "AllocationAmount");
	if (!bytes || bytes->type != FIELD_UINT)
		return 0;
	s.stream = STREAM_ALLOC;
	s.weight = bytes->v.u;
	return incident_add_sample(a->in, &s);
}

static int add_all(struct adding *a)
{
	const struct incident_module module = {.kind = OBJECT_JIT, .name = "event",
					       .path = "[event]"};
	struct incident *in = a->in;
	uint32_t i;
	int rc = 0;

	a->module = incident_add_module(in, &module);
	if (a->module == UINT32_MAX)
		return ERR_MEMORY;
	for (i = 0; !rc && i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		struct moment m = {e->time_ns, e->thread};

		if (e->stack != STACK_NONE && e->kind != EVENT_SAMPLE &&
		    strcmp(e->provider, "Recorder") != 0 &&
		    table_find(&a->sampled, moment_hash(&m), same_moment, in, &m) == TABLE_NONE)
			rc = add_one(a, e);
	}
	return rc;
}

/* Two runs that are in order each, the second from `middle` on: one. */
static int put_in_order(struct incident *in, uint32_t middle)
{
	struct incident_sample *merged = malloc(((size_t)in->nsamples + 1) * sizeof(*merged));
	uint32_t i = 0, k = middle, n = 0;

	if (!merged)
		return ERR_MEMORY;
	while (n < in->nsamples) {
		bool first = k == in->nsamples ||
			     (i < middle && in->samples[i].time_ns <= in->samples[k].time_ns);

		merged[n++] = in->samples[first ? i++ : k++];
	}
	if (n)
		memcpy(in->samples, merged, n * sizeof(*merged));
	free(merged);
	return 0;
}

int event_samples_add(struct incident *in, struct err *err)
{
	struct adding a = {.in = in};
	uint32_t before = in->nsamples;
	int rc = list_sampled(&a);

	if (!rc)
		rc = add_all(&a);
	if (!rc && in->nsamples > before)
		rc = put_in_order(in, before);
	table_free(&a.sampled);
	return rc ? err_memory(err, "for samples of events") : 0;
}
