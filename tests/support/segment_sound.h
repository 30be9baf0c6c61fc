/*
 * What every decoded segment must be, whatever bytes it came from. For tests and the fuzz target.
 */
#pragma once

#include "model/segment.h"

#include <string.h>

static inline bool segment_samples_sound(const struct segment_content *c)
{
	uint32_t i;

	for (i = 0; i < c->nsamples; i++) {
		const struct incident_sample *s = &c->samples[i];

		if ((s->thread != THREAD_NONE && s->thread >= c->nthreads) ||
		    (s->stack != STACK_NONE && s->stack >= c->nnodes) || s->stream >= STREAMS_MAX ||
		    s->quality >= QUALITIES || s->weight > INT64_MAX)
			return false;
	}
	for (i = 0; i < c->nnodes; i++) {
		if ((c->nodes[i].parent != STACK_NONE && c->nodes[i].parent >= i) ||
		    c->nodes[i].frame >= c->nframes)
			return false;
	}
	return true;
}

static inline bool segment_event_sound(const struct segment_content *c,
				       const struct incident_event *e)
{
	uint32_t i;

	if ((e->thread != THREAD_NONE && e->thread >= c->nthreads) ||
	    (e->stack != STACK_NONE && e->stack >= c->nnodes) || e->kind >= EVENT_KINDS ||
	    strlen(e->provider) > SEGMENT_MAX_BYTES || strlen(e->name) > SEGMENT_MAX_BYTES ||
	    e->nfields > EVENT_MAX_FIELDS || e->first_field > c->nfields ||
	    e->nfields > c->nfields - e->first_field)
		return false;
	for (i = 0; i < e->nfields; i++) {
		const struct event_field *f = &c->fields[e->first_field + i];

		/* Reads to the NUL: a sanitizer sees a text that has none. */
		if (strlen(f->name) > SEGMENT_MAX_BYTES || f->type > FIELD_TEXT ||
		    (f->type == FIELD_TEXT && strlen(f->v.text) > SEGMENT_MAX_BYTES))
			return false;
	}
	return true;
}

static inline bool segment_sound(const struct segment_content *c)
{
	uint32_t i;

	if (c->t0_ns > c->t1_ns || !segment_samples_sound(c))
		return false;
	for (i = 0; i < c->nevents; i++) {
		if (!segment_event_sound(c, &c->events[i]))
			return false;
	}
	return true;
}
