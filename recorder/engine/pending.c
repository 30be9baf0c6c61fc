#include "engine/engine_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pending_free(struct pending *p)
{
	if (!p)
		return;
	while (p->nat)
		frame_unref(p->at[--p->nat]);
	frozen_free(&p->window);
	incident_head_free(&p->head);
	free(p);
}

void pending_add_reason(struct pending *p, const char *reason)
{
	struct incident_head *h = &p->head;
	size_t used = h->gap_reason ? strlen(h->gap_reason) : 0;
	char *longer = realloc(h->gap_reason, used + strlen(reason) + 3);

	if (!longer)
		return;
	sprintf(longer + used, "%s%s", used ? "; " : "", reason);
	h->gap_reason = longer;
}

/* ---- the list ------------------------------------------------------------------------------- */

void pending_append(struct engine *e, struct pending *p)
{
	struct shared *s = &e->shared;

	os_mutex_lock(s->lock);
	if (s->last_pending)
		s->last_pending->next = p;
	else
		s->first_pending = p;
	s->last_pending = p;
	s->npending++;
	engine_wake_writer(e);
	os_mutex_unlock(s->lock);
}

void pending_remove(struct engine *e, struct pending *p)
{
	struct shared *s = &e->shared;
	struct pending **link, *before = NULL;

	os_mutex_lock(s->lock);
	for (link = &s->first_pending; *link != p; link = &(*link)->next)
		before = *link;
	*link = p->next;
	if (s->last_pending == p)
		s->last_pending = before;
	s->npending--;
	os_cond_signal(s->wake_merge);
	os_mutex_unlock(s->lock);
	pending_free(p);
}

/* ---- what they hold ------------------------------------------------------------------------- */

size_t pending_held_bytes(const struct engine *e, uint64_t evicted_until_ns)
{
	const struct pending *p;
	uint64_t counted_until = 0;          /* number of a segment: each counts once */
	size_t bytes = 0;
	uint32_t i;

	for (p = e->shared.first_pending; p; p = p->next) {
		for (i = 0; i < p->window.nsegments; i++) {
			const struct segment *s = p->window.segments[i];

			if (s && s->number > counted_until && s->t1_ns <= evicted_until_ns)
				bytes += s->memory_bytes;
		}
		/* Windows hold consecutive segments: what an earlier incident counted ends here. */
		if (p->last_number > counted_until)
			counted_until = p->last_number;
	}
	return bytes;
}

static bool is_over(const struct engine *e)
{
	return e->shared.held_bytes > e->cfg->pinned_bytes;
}

static void give_up(struct pending *p, uint32_t i)
{
	segment_unref(p->window.segments[i]);
	p->window.segments[i] = NULL;
}

/* Give up the oldest segments that are not stored yet until memory is enough; the newest stays. */
static bool give_up_unwritten(struct engine *e, struct pending *p, uint64_t evicted_until_ns)
{
	uint32_t i;
	bool any = false;

	for (i = p->written; i + 1 < p->window.nsegments && is_over(e); i++) {
		if (!p->window.segments[i])
			continue;
		give_up(p, i);
		any = true;
		/* The store has nothing of it yet: it just starts later. */
		if (!p->written && p->window.segments[i + 1])
			p->head.t0_ns = p->window.segments[i + 1]->t0_ns;
		e->shared.held_bytes = pending_held_bytes(e, evicted_until_ns);
	}
	return any;
}

void pending_relieve(struct engine *e, uint64_t evicted_until_ns)
{
	struct pending *p;
	char reason[200];
	uint32_t i;

	for (p = e->shared.first_pending; p && is_over(e); p = p->next) {
		for (i = 0; i < p->written; i++)
			give_up(p, i);
		e->shared.held_bytes = pending_held_bytes(e, evicted_until_ns);
	}
	for (p = e->shared.first_pending; p && is_over(e); p = p->next) {
		if (!give_up_unwritten(e, p, evicted_until_ns) || p->give_up_logged)
			continue;
		p->give_up_logged = true;
		snprintf(
			reason, sizeof(reason),
			"%s was given up: the store is slow or full, and pinned memory reached its "
			"ceiling of %.0f MB",
			p->written ? "a part in its middle" : "its oldest part",
			(double)e->cfg->pinned_bytes / 1048576);
		pending_add_reason(p, reason);
		log_line(e->log, LOG_WARN, "%s: %s", p->head.reason, reason);
	}
}
