/*
 * An incident from its firing to the writer. Freezing is taking references: at the firing every
 * segment that overlaps [T - pre, T] is pinned, segments sealed until T + post are pinned as they
 * are sealed, and at T + post the open segment is sealed; at T too, so that the past is on disk soon.
 * Merge thread.
 */
#include "base/text.h"
#include "engine/engine_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEAL_PAST_NS (2 * NS_PER_SEC)
#define SEAL_PAST_SAMPLES 512u
#define CATCH_UP_NS (2 * NS_PER_MS)          /* sources hold back 1 ms, so that they can deliver in order */

static void pending_free(struct pending *p)
{
	if (!p)
		return;
	while (p->nat)
		frame_unref(p->at[--p->nat]);
	frozen_free(&p->window);
	incident_head_free(&p->head);
	free(p);
}

/* ---- the window that it gets ------------------------------------------------------------------ */

static void add_reason(struct incident_head *h, const char *reason)
{
	size_t used = h->gap_reason ? strlen(h->gap_reason) : 0;
	char *longer = realloc(h->gap_reason, used + strlen(reason) + 3);

	if (!longer)
		return;
	sprintf(longer + used, "%s%s", used ? "; " : "", reason);
	h->gap_reason = longer;
}

/* Where its window starts: what was asked, what is held, or where recording began. */
static void set_start(struct engine *e, struct incident_head *h)
{
	uint64_t asked_ns = h->trigger_ns > h->asked_pre_ns ? h->trigger_ns - h->asked_pre_ns : 0;
	struct ring_use use;
	char reason[200];

	ring_use(e->ring, &use);
	h->t0_ns = asked_ns;
	if (use.evicted_until_ns > asked_ns) {
		h->t0_ns = use.oldest_ns ? use.oldest_ns : h->trigger_ns;
		snprintf(reason, sizeof(reason),
			 "the buffer of %.0f MB held only the last %.1f s; use a larger --buffer-mb",
			 (double)use.max_bytes / 1048576, (double)(h->trigger_ns - h->t0_ns) / 1e9);
		add_reason(h, reason);
	} else if (e->start_ns > asked_ns) {
		h->t0_ns = e->start_ns;
		snprintf(reason, sizeof(reason), "%s only %.1f s before",
			 e->cfg->capture.file ? "the file begins" : "recording had begun",
			 (double)(h->trigger_ns - h->t0_ns) / 1e9);
		add_reason(h, reason);
	}
}

/* ---- firing ----------------------------------------------------------------------------------- */

static int fill_head(struct engine *e, struct incident_head *h, const char *rule_text,
		     const char *reason)
{
	h->state = INCIDENT_OPEN;
	h->rule = text_dup(rule_text, SIZE_MAX);
	h->reason = text_dup(reason, SIZE_MAX);
	h->host = text_dup(e->host, SIZE_MAX);
	h->host_text = text_dup(e->host_text, SIZE_MAX);
	h->recorder_version = text_dup(RECORDER_VERSION, SIZE_MAX);
	if (e->cfg->capture.file)                    /* else each segment says its own */
		h->period_ns[STREAM_CPU] = e->origin.period_ns;
	return h->rule && h->reason && h->host && h->host_text && h->recorder_version ? 0
										     : ERR_MEMORY;
}

static struct pending *pending_new(struct engine *e, const struct firing *f)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->rule = f->rule;
	p->signature = UINT32_MAX;
	p->whole = f->whole;
	p->settle_ns = e->cfg->capture.file ? ENGINE_FILE_SETTLE_NS : ENGINE_SETTLE_NS;
	p->head.value = f->value;
	p->head.limit = f->limit;
	p->head.trigger_ns = f->time_ns;
	p->head.trigger_wall_ns = engine_wall_ns(e, f->time_ns);
	p->head.kept_wall_ns = e->cfg->capture.file ? os_wall_ns() : 0;
	p->head.asked_pre_ns = f->pre_ns;
	p->head.asked_post_ns = f->post_ns;
	if (f->rule != MANUAL_RULE && e->cfg->triggers[f->rule]->ops->lasts)
		p->lasted_ns = f->time_ns;
	p->post_end_ns = f->whole ? UINT64_MAX : f->time_ns + f->post_ns;
	set_start(e, &p->head);
	if (fill_head(e, &p->head, f->rule_text, f->reason) != 0 ||
	    ring_freeze(e->ring, p->head.t0_ns, f->time_ns, &p->window, NULL) != 0) {
		pending_free(p);
		return NULL;
	}
	if (p->window.nsegments)
		p->last_number = p->window.segments[p->window.nsegments - 1]->number;
	return p;
}

/*
 * What is open goes to the writer now, not when the delay is over, so that a crash leaves the moments
 * before the firing: the best of it. Not a nearly empty segment: it would take more memory than it is
 * worth, and what fires at once, or every second, shares the first one's.
 */
static void seal_past(struct engine *e, const struct firing *f)
{
	uint64_t first_ns = segment_first_ns(e->builder);

	if (e->cfg->capture.file || f->post_ns < SEAL_PAST_NS || !first_ns)
		return;
	if (segment_open_samples(e->builder) >= SEAL_PAST_SAMPLES || e->now_ns > first_ns + SEAL_PAST_NS)
		engine_seal(e);
}

bool engine_fire(struct engine *e, const struct firing *f)
{
	struct pending *p;
	uint32_t waiting, most = e->cfg->capture.file ? ENGINE_FILE_WINDOWS_MAX : ENGINE_PENDING_MAX;

	if (e->cfg->capture.file)
		engine_file_wait_for_room(e);
	os_mutex_lock(e->lock);
	waiting = e->cfg->capture.file ? e->in_window : e->npending;
	os_mutex_unlock(e->lock);
	/* The last one of a run is kept all the same: nothing comes after it. */
	if (waiting >= most && !e->stopping_sources) {
		log_line(e->log, LOG_ERROR, "not kept: %s (%u incidents wait for %s already)", f->reason,
			 most, e->cfg->capture.file ? "their ends" : "the store");
		return false;
	}
	p = pending_new(e, f);
	if (!p) {
		log_line(e->log, LOG_ERROR, "not kept, out of memory: %s", f->reason);
		return false;
	}
	engine_dedup_note(e, p, f->event);
	if (!f->whole)
		log_line(e->log, LOG_INFO, "fired: %s", f->reason);
	e->in_window++;
	if (p->post_end_ns < e->next_end_ns)
		e->next_end_ns = p->post_end_ns;
	if (f->rule != MANUAL_RULE && !e->cfg->capture.file)
		e->rules[f->rule].in_window = true;
	os_mutex_lock(e->lock);
	if (e->last_pending)
		e->last_pending->next = p;
	else
		e->first_pending = p;
	e->last_pending = p;
	e->npending++;
	engine_wake_writer(e);
	os_mutex_unlock(e->lock);
	if (e->cfg->capture.file && e->cfg->capture.dedup_ns && f->rule != MANUAL_RULE)
		engine_file_wait_told_apart(e);
	if (!e->cfg->capture.file)                   /* of a file it says how much of it was read, and no more */
		engine_own_ring(e, f->time_ns);
	if (!e->cfg->capture.file)
		engine_evicted_tell(e, f->time_ns > f->pre_ns ? f->time_ns - f->pre_ns : 0, f->time_ns);
	seal_past(e, f);
	return true;
}

/* ---- sealing ---------------------------------------------------------------------------------- */

/* Each segment counts once. */
size_t engine_held_bytes(struct engine *e, uint64_t evicted_until_ns)
{
	uint64_t seen_until = 0;
	struct pending *p;
	size_t bytes = 0;
	uint32_t i;

	for (p = e->first_pending; p; p = p->next) {
		for (i = 0; i < p->window.nsegments; i++) {
			struct segment *s = p->window.segments[i];

			if (s && s->number > seen_until && s->t1_ns <= evicted_until_ns)
				bytes += s->memory_bytes;
		}
		/* Windows hold consecutive segments: what an earlier incident counted ends here. */
		if (p->last_number > seen_until)
			seen_until = p->last_number;
	}
	return bytes;
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

	for (i = p->written; i + 1 < p->window.nsegments; i++) {
		if (e->held_bytes <= e->cfg->pinned_bytes)
			break;
		if (!p->window.segments[i])
			continue;
		give_up(p, i);
		any = true;
		/* The store has nothing of it yet: it just starts later. */
		if (!p->written && p->window.segments[i + 1])
			p->head.t0_ns = p->window.segments[i + 1]->t0_ns;
		e->held_bytes = engine_held_bytes(e, evicted_until_ns);
	}
	return any;
}

/*
 * The disk is slow and what incidents hold has reached its ceiling. First let go of segments that
 * are in the store already (frames named later keep no name there). When that is not enough the
 * oldest incidents give up their oldest segments, and say so. Under the lock.
 */
static void relieve(struct engine *e, uint64_t evicted_until_ns)
{
	struct pending *p;
	char reason[200];
	uint32_t i;

	for (p = e->first_pending; p && e->held_bytes > e->cfg->pinned_bytes; p = p->next) {
		for (i = 0; i < p->written; i++)
			give_up(p, i);
		e->held_bytes = engine_held_bytes(e, evicted_until_ns);
	}
	for (p = e->first_pending; p && e->held_bytes > e->cfg->pinned_bytes; p = p->next) {
		if (!give_up_unwritten(e, p, evicted_until_ns) || p->told_given_up)
			continue;
		p->told_given_up = true;
		snprintf(reason, sizeof(reason),
			 "%s was given up: the store is slow or full, and pinned memory reached its "
			 "ceiling of %.0f MB", p->written ? "a part in its middle" : "its oldest part",
			 (double)e->cfg->pinned_bytes / 1048576);
		add_reason(&p->head, reason);
		log_line(e->log, LOG_WARN, "%s: %s", p->head.reason, reason);
	}
}

/* Seal what is open; incidents that wait for it get it. */
void engine_seal(struct engine *e)
{
	struct segment *s = NULL;
	struct ring_use use;
	struct pending *p;
	struct err err;

	if (segment_seal(e->builder, &s, &err) != 0) {
		log_line(e->log, LOG_ERROR, "%s", err.text);
		return;
	}
	if (!s)
		return;
	engine_set_quota(e);
	os_mutex_lock(e->lock);
	for (p = e->first_pending; p; p = p->next) {
		if (p->complete || s->t1_ns < p->head.t0_ns)
			continue;
		if (frozen_add(&p->window, s) == 0)
			p->last_number = s->number;
		else
			add_reason(&p->head, "a part is missing: out of memory");
	}
	os_mutex_unlock(e->lock);
	ring_put(e->ring, s);
	ring_use(e->ring, &use);
	os_mutex_lock(e->lock);
	e->held_bytes = engine_held_bytes(e, use.evicted_until_ns);
	if (!e->cfg->capture.file)
		relieve(e, use.evicted_until_ns);
	engine_wake_writer(e);
	os_mutex_unlock(e->lock);
	if (e->cfg->capture.file)
		engine_file_wait(e);
}

/* ---- the end of a window ---------------------------------------------------------------------- */

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
	snprintf(reason, sizeof(reason), "%s %.1f s after it", end->cut ? end->cut : "recording ended",
		 (double)(p->head.t1_ns - p->head.trigger_ns) / 1e9);
	add_reason(&p->head, reason);
}

static void complete(struct engine *e, struct pending *p, uint64_t now_ns,
		     const struct window_end *end)
{
	uint64_t cpu_ns, rss_bytes;
	uint32_t rule = p->rule;             /* once it is complete the writer may free it */

	os_self_usage(&cpu_ns, &rss_bytes);
	if (now_ns < p->head.trigger_ns)     /* of a snapshot that was asked for just now */
		now_ns = p->head.trigger_ns;
	os_mutex_lock(e->lock);
	p->head.t1_ns = p->post_end_ns;
	if (now_ns < p->post_end_ns)
		cut_short(p, now_ns, end);
	if (e->cfg->capture.file && e->origin.note[0])
		p->head.note = text_dup(e->origin.note, SIZE_MAX);
	p->head.recorder_cpu_ns = cpu_ns;
	p->head.recorder_rss_bytes = rss_bytes;
	p->complete = true;
	engine_hurry_writer(e);
	os_mutex_unlock(e->lock);

	e->in_window--;
	if (rule != MANUAL_RULE && !e->cfg->capture.file) {
		struct trigger *t = e->cfg->triggers[rule];

		e->rules[rule].in_window = false;
		t->ops->fired(t);
	}
}

/* What fired is not over yet; looked at with each tick. */
static bool goes_on(const struct engine *e, struct pending *p, uint64_t now_ns)
{
	const struct trigger *t = p->lasted_ns ? e->cfg->triggers[p->rule] : NULL;

	if (!t || !t->ops->lasts(t, p->head.trigger_ns) ||
	    (now_ns > p->post_end_ns && now_ns - p->post_end_ns >= TRIGGER_LASTS_NS))
		return false;
	p->lasted_ns = now_ns;
	return true;
}

static void end_late(struct engine *e, struct pending *p, uint64_t now_ns)
{
	char reason[100];

	/* Its end came between two ticks. */
	snprintf(reason, sizeof(reason), "until what fired had ended: %.1f s after it",
		 (double)(now_ns - p->head.trigger_ns) / 1e9);
	os_mutex_lock(e->lock);
	add_reason(&p->head, reason);
	os_mutex_unlock(e->lock);
	p->post_end_ns = now_ns;
}

/* Complete the incidents whose post-window has ended; all of them when recording is cut short. */
void engine_windows(struct engine *e, uint64_t now_ns, const struct window_end *end)
{
	struct pending *p;
	uint64_t next_ns;
	bool sealed = false;

	/* Only this thread appends to the list and completes; the writer removes complete ones only. */
	for (;;) {
		next_ns = UINT64_MAX;
		os_mutex_lock(e->lock);
		for (p = e->first_pending; p; p = p->next) {
			bool open = !p->complete && goes_on(e, p, now_ns);

			/* What happens at its very end may come behind this tick. */
			if (!p->complete && (end || (now_ns > p->post_end_ns && !open)))
				break;
			if (!p->complete && p->post_end_ns < next_ns)
				next_ns = p->post_end_ns;
		}
		os_mutex_unlock(e->lock);
		if (!p)
			break;
		if (!sealed)
			engine_seal(e);
		sealed = true;
		if (p->lasted_ns && p->lasted_ns + TICK_NS >= p->post_end_ns && now_ns > p->post_end_ns)
			end_late(e, p, now_ns);
		complete(e, p, now_ns, end);
	}
	e->goes_on = next_ns <= now_ns;
	e->next_end_ns = e->goes_on ? now_ns + TICK_NS : next_ns;
}

uint64_t engine_windows_wait(struct engine *e, uint64_t wait_ns)
{
	uint64_t now_ns = os_now_ns(), due_ns = e->next_end_ns + CATCH_UP_NS;
	uint32_t i;

	if (!e->cfg->live || e->next_end_ns == UINT64_MAX || e->goes_on)
		return wait_ns;
	if (now_ns < due_ns)
		return due_ns - now_ns < wait_ns ? due_ns - now_ns : wait_ns;
	for (i = 0; i < e->feed.n && e->caught_up_ns != e->next_end_ns; i++) {
		if (e->feed.sources[i].ops->catch_up)
			e->feed.sources[i].ops->catch_up(e->feed.sources[i].source);
	}
	e->caught_up_ns = e->next_end_ns;
	return wait_ns < CATCH_UP_NS ? wait_ns : CATCH_UP_NS;
}
