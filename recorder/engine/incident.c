/*
 * An incident from its firing to the writer. Freezing is taking references: at the firing every
 * segment that overlaps [T - pre, T] is pinned, segments sealed until T + post are pinned as they
 * are sealed, and at T + post the open segment is sealed. It is sealed soon after T too, so that
 * the past is on disk early. Merge thread.
 */
#include "base/text.h"
#include "base/version.h"
#include "engine/engine_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CATCH_UP_NS (2 * NS_PER_MS)          /* sources hold back 1 ms, to deliver in order */
#define STACKS_WAIT_NS (20 * NS_PER_SEC)     /* a window waits so long for stacks of threads */

/* ---- the list of incidents on their way to the store ----------------------------------------- */

static void pending_free(struct pending *p)
{
	if (!p)
		return;
	while (p->nframes)
		frame_unref(p->frames[--p->nframes]);
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

static void pending_append(struct engine *e, struct pending *p)
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

/* ---- firing --------------------------------------------------------------------------------- */

/* Why the ring does not reach back as far as requested, and what would make it. */
static void say_short(const struct engine *e, const struct ring_use *use, double held_s, char *out,
		      size_t n)
{
	if (use->given_up_until_ns == use->evicted_until_ns)
		snprintf(out, n, "only the last %.1f s were held: a table was nearly full "
			 "(%u processes, %u threads, %u frames), so the oldest was given up",
			 held_s, PROCESSES_MAX, THREADS_MAX, FRAMES_MAX);
	else
		snprintf(out, n, "the buffer of %.0f MB held only the last %.1f s; use a larger %s",
			 (double)use->max_bytes / 1048576, held_s,
			 e->merge.memory.max_bytes ? "--buffer-mb or --max-rss-mb" : "--buffer-mb");
}

/* Where its window starts: as requested, or where the ring or the recording begins. */
static void set_start(struct engine *e, struct pending *p)
{
	struct incident_head *h = &p->head;
	uint64_t asked_ns = h->trigger_ns > h->asked_pre_ns ? h->trigger_ns - h->asked_pre_ns : 0;
	struct ring_use use;
	char reason[200];

	ring_use(e->ring, &use);
	h->t0_ns = asked_ns;
	if (use.evicted_until_ns > asked_ns) {
		h->t0_ns = use.oldest_ns && use.oldest_ns < h->trigger_ns ? use.oldest_ns
									  : h->trigger_ns;
		say_short(e, &use, (double)(h->trigger_ns - h->t0_ns) / 1e9, reason,
			  sizeof(reason));
		pending_add_reason(p, reason);
	} else if (e->merge.start_ns > asked_ns) {
		/* A source may tell of what was a moment before the start. */
		h->t0_ns = e->merge.start_ns < h->trigger_ns ? e->merge.start_ns : h->trigger_ns;
		snprintf(reason, sizeof(reason), "%s only %.1f s before the trigger",
			 e->policy->starts, (double)(h->trigger_ns - h->t0_ns) / 1e9);
		pending_add_reason(p, reason);
	}
}

static int fill_head(struct engine *e, struct incident_head *h, const struct firing *f)
{
	h->state = INCIDENT_OPEN;
	h->rule = text_dup(f->rule_text, SIZE_MAX);
	h->reason = text_dup(f->reason, SIZE_MAX);
	h->host = text_dup(e->host, SIZE_MAX);
	h->host_text = text_dup(e->host_text, SIZE_MAX);
	h->recorder_version = text_dup(RECORDER_VERSION, SIZE_MAX);
	h->period_ns[STREAM_CPU] = e->merge.origin.period_ns;  /* 0 live: segments have it */
	return h->rule && h->reason && h->host && h->host_text && h->recorder_version ? 0
										      : ERR_MEMORY;
}

static struct pending *pending_new(struct engine *e, const struct firing *f)
{
	struct pending *p = calloc(1, sizeof(*p));
	uint64_t to_ns;

	if (!p)
		return NULL;
	p->rule = f->rule;
	p->signature = UINT32_MAX;
	p->whole = f->whole;
	p->settle_ns = e->policy->settle_ns;
	p->head.value = f->value;
	p->head.limit = f->limit;
	p->head.trigger_ns = f->time_ns;
	p->head.trigger_wall_ns = e->policy->wall_ns(e, f->time_ns);
	p->head.kept_wall_ns = e->policy->foreign ? os_wall_ns() : 0;
	p->head.asked_pre_ns = f->pre_ns;
	p->head.asked_post_ns = f->post_ns;
	if (f->rule != MANUAL_RULE && e->cfg->triggers[f->rule]->ops->lasts)
		p->lasted_ns = f->time_ns;
	p->post_end_ns = f->whole ? UINT64_MAX : f->time_ns + f->post_ns;
	set_start(e, p);
	/* A firing that came late: of what came after its moment, too, part is in the ring. */
	to_ns = p->post_end_ns < e->merge.now_ns ? p->post_end_ns : e->merge.now_ns;
	if (fill_head(e, &p->head, f) != 0 ||
	    ring_freeze(e->ring, p->head.t0_ns, to_ns > f->time_ns ? to_ns : f->time_ns, &p->window,
			NULL) != 0) {
		pending_free(p);
		return NULL;
	}
	if (p->window.nsegments)
		p->last_number = p->window.segments[p->window.nsegments - 1]->number;
	return p;
}

bool engine_fire(struct engine *e, const struct firing *f)
{
	struct merge *m = &e->merge;
	struct pending *p;
	uint32_t i;

	if (!e->policy->has_room(e)) {
		log_line(e->log, LOG_ERROR, "not kept: %s (%u incidents already wait for %s)",
			 f->reason, e->policy->most_incidents, e->policy->full);
		return false;
	}
	engine_sealed(e);                    /* of its past, what is not in the ring yet */
	clock_look(e);                       /* a step just before is told in this incident, too */
	p = pending_new(e, f);
	if (!p) {
		log_line(e->log, LOG_ERROR, "not kept, out of memory: %s", f->reason);
		return false;
	}
	dedup_note(e, p, f->event);
	if (!f->whole)
		log_line(e->log, LOG_INFO, "fired: %s", f->reason);
	m->open_windows++;
	if (p->post_end_ns < m->next_end_ns)
		m->next_end_ns = p->post_end_ns;
	if (f->rule != MANUAL_RULE)
		e->rules.all[f->rule].in_window = e->policy->rules_pause;
	pending_append(e, p);
	for (i = 0; i < e->feed.n; i++)
		if (e->feed.sources[i].ops->fired)
			e->feed.sources[i].ops->fired(e->feed.sources[i].source);
	e->policy->fired(e, f);
	return true;
}

/* ---- the end of a window -------------------------------------------------------------------- */

static void cut_short(struct pending *p, uint64_t now_ns, const struct window_end *end)
{
	char reason[400];

	p->head.t1_ns = now_ns;
	if (p->whole)
		p->head.asked_post_ns = now_ns - p->head.trigger_ns;
	if (end->partial)
		p->head.state = INCIDENT_PARTIAL;
	if (p->whole && !end->cut)
		return;                      /* it ends where the file does */
	snprintf(reason, sizeof(reason), "%s %.1f s after the trigger",
		 end->cut ? end->cut : "recording ended",
		 (double)(p->head.t1_ns - p->head.trigger_ns) / 1e9);
	pending_add_reason(p, reason);
}

static void complete_incident(struct engine *e, struct pending *p, uint64_t now_ns,
		     const struct window_end *end)
{
	const struct own_usage own = costs_own(e);
	uint32_t rule = p->rule;             /* a complete incident may be freed at once */

	if (now_ns < p->head.trigger_ns)     /* a snapshot that was requested just now */
		now_ns = p->head.trigger_ns;
	os_mutex_lock(e->shared.lock);
	p->head.t1_ns = p->post_end_ns;
	if (now_ns < p->post_end_ns)
		cut_short(p, now_ns, end);
	if (e->merge.origin.note[0])
		p->head.note = text_dup(e->merge.origin.note, SIZE_MAX);
	p->head.recorder_cpu_ns = own.cpu_ns;
	p->head.recorder_rss_bytes = own.rss_bytes;
	p->complete = true;
	engine_hurry_writer(e);
	os_mutex_unlock(e->shared.lock);

	e->merge.open_windows--;
	if (rule != MANUAL_RULE && e->policy->rules_pause) {
		struct trigger *t = e->cfg->triggers[rule];

		e->rules.all[rule].in_window = false;
		trigger_fired(t);
	}
}

/* Whether what fired is not over yet. */
static bool still_lasts(const struct engine *e, struct pending *p, uint64_t now_ns)
{
	const struct trigger *t = p->lasted_ns ? e->cfg->triggers[p->rule] : NULL;

	if (!t || !t->ops->lasts(t, p->head.trigger_ns) ||
	    (now_ns > p->post_end_ns && now_ns - p->post_end_ns >= TRIGGER_LASTS_NS))
		return false;
	p->lasted_ns = now_ns;
	return true;
}

/*
 * Whether a window whose time is over lacks the stacks of threads that its firing asked for. Those
 * of several firings are taken one after the other.
 */
static bool waits_for_stacks(const struct engine *e, struct pending *p, uint64_t now_ns)
{
	const struct trigger *t = p->rule != MANUAL_RULE ? e->cfg->triggers[p->rule] : NULL;
	uint64_t until_ns = 0, its_ns;
	uint32_t i;

	if (!t || (!t->stacks && !e->capture->on_fire) || now_ns <= p->post_end_ns ||
	    now_ns - p->post_end_ns >= STACKS_WAIT_NS)
		return false;
	for (i = 0; i < e->feed.n; i++)
		if (e->feed.sources[i].ops->stacks_until) {
			its_ns = e->feed.sources[i].ops->stacks_until(e->feed.sources[i].source);
			until_ns = its_ns > until_ns ? its_ns : until_ns;
		}
	if (until_ns <= p->head.trigger_ns || now_ns > until_ns)
		return false;
	p->waited = true;
	return true;
}

/* Whether its cause lasted to the end of its window, or beyond: it ended between two ticks. */
static bool was_extended(const struct pending *p, uint64_t now_ns)
{
	return p->lasted_ns && p->lasted_ns + TICK_NS >= p->post_end_ns &&
	       now_ns > p->post_end_ns;
}

static void end_late(struct engine *e, struct pending *p, uint64_t now_ns, const char *why)
{
	char reason[120];

	snprintf(reason, sizeof(reason), "extended until %s, %.1f s after the trigger", why,
		 (double)(now_ns - p->head.trigger_ns) / 1e9);
	os_mutex_lock(e->shared.lock);
	pending_add_reason(p, reason);
	os_mutex_unlock(e->shared.lock);
	p->post_end_ns = now_ns;
}

/*
 * The first incident whose window has ended, or with end any that is not complete; NULL = none.
 * *next_ns: when the first of the others ends; UINT64_MAX = none does.
 */
static struct pending *find_ended(struct engine *e, uint64_t now_ns, bool end, uint64_t *next_ns)
{
	struct pending *p;

	*next_ns = UINT64_MAX;
	os_mutex_lock(e->shared.lock);
	for (p = e->shared.first_pending; p; p = p->next) {
		bool lasts = !p->complete && still_lasts(e, p, now_ns);
		bool waits = !p->complete && waits_for_stacks(e, p, now_ns);

		/* What happens at its very end may be released after this tick: hence > not >=. */
		if (!p->complete && (end || (now_ns > p->post_end_ns && !lasts && !waits)))
			break;
		if (!p->complete && p->post_end_ns < *next_ns)
			*next_ns = p->post_end_ns;
	}
	os_mutex_unlock(e->shared.lock);
	return p;
}

void engine_windows(struct engine *e, uint64_t now_ns, const struct window_end *end)
{
	struct pending *p;
	uint64_t next_ns;
	bool sealed = false;

	/* Only this thread appends and completes; the writer removes complete ones only. */
	while ((p = find_ended(e, now_ns, end != NULL, &next_ns)) != NULL) {
		if (!sealed)
			engine_seal(e);
		sealed = true;
		if (was_extended(p, now_ns))
			end_late(e, p, now_ns, "its cause ended");
		else if (p->waited)
			end_late(e, p, now_ns, "the stacks of threads were taken");
		complete_incident(e, p, now_ns, end);
	}
	e->merge.window_extended = next_ns <= now_ns;
	e->merge.next_end_ns = e->merge.window_extended ? now_ns + TICK_NS : next_ns;
}

uint64_t engine_windows_wait(struct engine *e, uint64_t wait_ns)
{
	struct merge *m = &e->merge;
	uint64_t now_ns = os_now_ns(), due_ns = m->next_end_ns + CATCH_UP_NS;
	uint32_t i;

	if (!e->policy->by_clock || m->next_end_ns == UINT64_MAX || m->window_extended)
		return wait_ns;
	if (now_ns < due_ns)
		return due_ns - now_ns < wait_ns ? due_ns - now_ns : wait_ns;
	for (i = 0; i < e->feed.n && m->caught_up_ns != m->next_end_ns; i++) {
		if (e->feed.sources[i].ops->catch_up)
			e->feed.sources[i].ops->catch_up(e->feed.sources[i].source);
	}
	m->caught_up_ns = m->next_end_ns;
	return wait_ns < CATCH_UP_NS ? wait_ns : CATCH_UP_NS;
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

static bool holds_too_much(const struct engine *e)
{
	return e->shared.held_bytes > e->cfg->pinned_bytes;
}

static void give_up_segment(struct pending *p, uint32_t i)
{
	segment_unref(p->window.segments[i]);
	p->window.segments[i] = NULL;
}

/*
 * Give up the oldest segments that are not stored yet, until held memory is under its ceiling. The
 * newest stays.
 */
static bool give_up_unwritten(struct engine *e, struct pending *p, uint64_t evicted_until_ns)
{
	uint32_t i;
	bool any = false;

	for (i = p->written; i + 1 < p->window.nsegments && holds_too_much(e); i++) {
		if (!p->window.segments[i])
			continue;
		give_up_segment(p, i);
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

	for (p = e->shared.first_pending; p && holds_too_much(e); p = p->next) {
		for (i = 0; i < p->written; i++)
			give_up_segment(p, i);
		e->shared.held_bytes = pending_held_bytes(e, evicted_until_ns);
	}
	for (p = e->shared.first_pending; p && holds_too_much(e); p = p->next) {
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
