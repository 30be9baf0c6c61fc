#include "analysis/event_samples.h"

#include "analysis/reserved.h"
#include "base/array.h"

#include <stdio.h>
#include <string.h>

struct adding {
	struct incident *in;
	struct table sampled;                /* event_samples_list() */
	struct table asked;                  /* requests to a disk, by Irp: indices of events */
	uint32_t module;
	bool has_views;                      /* from an earlier call */
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

/* A frame that is no code, below a stack; STACK_NONE = no memory. */
static uint32_t add_leaf(struct adding *a, uint32_t stack, const char *what)
{
	struct incident_frame frame = {.module = a->module, .flags = FRAME_JIT, .function = what,
				       .offset = hash_bytes(what, strlen(what))};
	uint32_t number = incident_add_frame(a->in, &frame);

	return number == UINT32_MAX ? STACK_NONE : incident_add_stack(a->in, stack, number);
}

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
	return add_leaf(a, e->stack, what);
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
		s.stack = add_leaf(a, s.stack, GC_LARGE_OBJECT_NAME);
	if (s.stack == STACK_NONE)
		return ERR_MEMORY;
	return incident_add_sample(a->in, &s);
}

/* ---- disks ----------------------------------------------------------------------------------- */

static bool same_request(const void *ctx, uint32_t value, const void *key)
{
	const struct incident *in = ctx;

	return incident_field_uint(in, &in->events[value], "Irp") == *(const uint64_t *)key;
}

/* The request that an event ends or, of a new one, that its Irp was used for before. */
static uint32_t take_request(struct adding *a, uint64_t irp)
{
	uint32_t found = table_find(&a->asked, hash_u64(irp), same_request, a->in, &irp);

	if (found != TABLE_NONE)
		table_remove(&a->asked, hash_u64(irp), found);
	return found;
}

static int add_io(struct adding *a, const struct incident_event *e)
{
	const struct event_field *bytes = incident_field(a->in, e, "TransferSize");
	const struct event_field *took = incident_field(a->in, e, "DiskServiceTimeMSec");
	const struct event_field *file = incident_field(a->in, e, "FileName");
	uint32_t asked = take_request(a, incident_field_uint(a->in, e, "Irp"));
	struct incident_sample s = {.time_ns = e->time_ns, .thread = e->thread, .cpu = e->cpu,
				    .stream = STREAM_IO_BYTES, .quality = QUALITY_NONE};
	char name[FUNCTION_NAME_MAX];
	int rc = 0;

	s.stack = asked == TABLE_NONE ? STACK_NONE : a->in->events[asked].stack;
	s.stack = add_leaf(a, s.stack, e->name);
	snprintf(name, sizeof(name), "%s", file && file->type == FIELD_TEXT ? file->v.text : "?");
	if (s.stack != STACK_NONE)
		s.stack = add_leaf(a, s.stack, name);
	if (s.stack == STACK_NONE)
		return ERR_MEMORY;
	if (bytes && bytes->type == FIELD_UINT) {
		s.weight = bytes->v.u;
		rc = incident_add_sample(a->in, &s);
	}
	if (rc || !took || took->type != FIELD_DOUBLE || !(took->v.d >= 0 && took->v.d < 1e12))
		return rc;
	s.stream = STREAM_IO_TIME;
	s.weight = (uint64_t)(took->v.d * 1e6);
	return incident_add_sample(a->in, &s);
}

/* The disks' part of an event. */
static int add_disk(struct adding *a, uint32_t event)
{
	const struct incident_event *e = &a->in->events[event];
	uint64_t irp;

	if (strncmp(e->name, "DiskIO/", 7) != 0)
		return 0;
	if (!strcmp(e->name, "DiskIO/Read") || !strcmp(e->name, "DiskIO/Write"))
		return add_io(a, e);
	irp = incident_field_uint(a->in, e, "Irp");
	if (strcmp(e->name, "DiskIO/ReadInit") != 0 && strcmp(e->name, "DiskIO/WriteInit") != 0)
		return 0;
	take_request(a, irp);
	return table_add(&a->asked, hash_u64(irp), event);
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

		if (e->stack != STACK_NONE && e->kind != EVENT_SAMPLE &&
		    strcmp(e->provider, "Recorder") != 0 &&
		    event_sample_of(in, &a->sampled, e) == TABLE_NONE)
			rc = add_one(a, e);
		if (!rc && !a->has_views)
			rc = add_disk(a, i);
	}
	return rc;
}

int event_samples_add(struct incident *in, struct err *err)
{
	struct adding a = {.in = in, .has_views = has_views(in)};
	uint32_t before = in->nsamples;
	int rc = event_samples_list(in, &a.sampled);

	if (!rc)
		rc = add_all(&a);
	if (!rc && !a.has_views)
		rc = reserved_samples_add(in);
	if (!rc && in->nsamples > before)
		rc = incident_sort(in);
	table_free(&a.sampled);
	table_free(&a.asked);
	return rc ? err_memory(err, "for samples of events") : 0;
}
