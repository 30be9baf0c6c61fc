/*
 * A trace file: it has its own clock on the wall and its own machine. Reading waits for the store
 * and loses nothing. Each firing is an incident, whatever else fires in its window.
 */
#include "engine/engine_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SETTLE_NS (60 * NS_PER_SEC)      /* what an incident waits for names, in all */
#define IDLE_NS (2 * NS_PER_MS)          /* the source fills its queue in that time, not more */
#define WINDOWS_MAX 1024u                /* incidents whose windows overlap */
#define WAIT_NS (50 * NS_PER_MS)
#define CENTURY_NS (36500ULL * 86400 * NS_PER_SEC)

static uint64_t file_wall_ns(const struct engine *e, uint64_t time_ns)
{
	const struct source_origin *from = &e->merge.origin;

	return from->start_wall_ns ? from->start_wall_ns + (time_ns - from->start_ns) : 0;
}

/* The file as one incident. Its trigger is the beginning: --from 2 --to 3 count from there. */
static void fire_whole(struct engine *e)
{
	struct firing f = {.rule = MANUAL_RULE, .rule_text = "file", .value = NAN, .limit = NAN,
			   .time_ns = e->merge.start_ns, .whole = true};
	char reason[300];

	/* Its length is not known yet; a century holds it, should nothing more be stored. */
	f.post_ns = CENTURY_NS;
	if (e->capture->file_title)
		snprintf(reason, sizeof(reason), "%.200s", e->capture->file_title);
	else
		snprintf(reason, sizeof(reason), "all of %.200s", os_base_name(e->capture->file));
	f.reason = reason;
	engine_fire(e, &f);
}

/* When and where the file was recorded; without rules, the incident that it is. */
static void file_begin(struct engine *e, uint64_t first_ns)
{
	struct source_origin *from = &e->merge.origin;

	feed_origin(&e->feed.sources[0], from);
	if (from->start_ns && from->start_ns <= first_ns)
		e->merge.start_ns = from->start_ns;
	else
		from->start_wall_ns = file_wall_ns(e, first_ns);
	from->start_ns = e->merge.start_ns;
	/* The machine that it was recorded on, not this one. */
	snprintf(e->host, sizeof(e->host), "%s", from->host[0] ? from->host : "?");
	snprintf(e->host_text, sizeof(e->host_text), "%s",
		 from->host_text[0] ? from->host_text : "?");
	if (from->period_ns)
		segment_set_period(e->merge.builder, STREAM_CPU, from->period_ns);
	if (!e->cfg->ntriggers)
		fire_whole(e);
}

/* ---- waiting for the store ------------------------------------------------------------------ */

/* A full disk must not hold up reading for ever: reading ends, and the exit code says so. */
static bool writer_advances(struct engine *e)
{
	return !e->shared.store_note[0] && !atomic_load(&e->writer_ended) &&
	       atomic_load(&e->stop) != STOP_ABORT;
}

/*
 * Wait while what incidents hold is at its ceiling and the writer advances. Transactions cost more
 * than what is written, so the writer is woken for a row of segments; each second it looks itself.
 */
static void file_limit_held(struct engine *e, uint64_t evicted_until_ns)
{
	struct shared *s = &e->shared;
	bool gave_up;

	os_mutex_lock(s->lock);
	s->held_bytes = pending_held_bytes(e, evicted_until_ns);
	if (e->merge.nsealed++ % ENGINE_TOGETHER == 0 || s->held_bytes > e->cfg->pinned_bytes)
		engine_wake_writer(e);
	while (s->held_bytes > e->cfg->pinned_bytes && writer_advances(e)) {
		os_cond_wait(s->wake_merge, s->lock, WAIT_NS);
		s->held_bytes = pending_held_bytes(e, evicted_until_ns);
	}
	gave_up = s->store_note[0] != '\0';
	os_mutex_unlock(s->lock);
	if (gave_up)
		engine_stop(e, STOP_FAILED, "the store cannot be written");
}

static uint32_t complete_ones(const struct engine *e)
{
	const struct pending *p;
	uint32_t n = 0;

	for (p = e->shared.first_pending; p; p = p->next)
		n += p->complete;
	return n;
}

/* Wait while too many complete incidents wait for the writer. */
static bool file_has_room(struct engine *e)
{
	/* The next firing may repeat one that is stored already, so that one must be stored. */
	uint32_t complete_most = e->capture->dedup_ns ? 1 : ENGINE_PENDING_MAX;

	os_mutex_lock(e->shared.lock);
	while (complete_ones(e) >= complete_most && writer_advances(e))
		os_cond_wait(e->shared.wake_merge, e->shared.lock, WAIT_NS);
	os_mutex_unlock(e->shared.lock);
	return e->merge.open_windows < WINDOWS_MAX || e->merge.stopping_sources;
}

/* --dedup: wait until the writer knows whether this firing repeats an incident. */
static void file_fired(struct engine *e, const struct firing *f)
{
	struct shared *s = &e->shared;

	if (!e->capture->dedup_ns || f->rule == MANUAL_RULE)
		return;
	os_mutex_lock(s->lock);
	while (s->last_pending && !s->last_pending->dedup_decided && writer_advances(e))
		os_cond_wait(s->wake_merge, s->lock, WAIT_NS);
	os_mutex_unlock(s->lock);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void file_end(struct engine *e, enum engine_stop how, struct window_end *why)
{
	const struct feed_source *s = &e->feed.sources[0];
	struct merge *m = &e->merge;
	struct source_origin now;

	if (m->last_ns > m->now_ns && !m->closed)
		m->now_ns = m->last_ns;
	feed_origin(s, &now);
	memcpy(m->origin.note, now.note, sizeof(now.note));  /* what it lost is known now */
	why->partial = how >= STOP_ASKED;
	why->cut = how == STOP_TIME ? "the time limit ended it" : "reading was stopped";
	if (how <= STOP_END && s->rc) {
		snprintf(why->text, sizeof(why->text), "reading ended (%.300s)", s->err.text);
		why->cut = why->text;
		why->partial = true;
	} else if (how == STOP_END) {
		why->cut = e->cfg->ntriggers ? "end of file" : NULL;
	}
}

/* Without rules a file is one incident already; who stops the reading wants no more. */
static bool file_wants_last(const struct engine *e, enum engine_stop how)
{
	return how == STOP_TIME && e->cfg->ntriggers && e->merge.started;
}

const struct policy file_policy = {
	.activity = "reading",
	.starts = "the file begins",
	.full = "their ends",
	.most_incidents = WINDOWS_MAX,
	.foreign = true,
	.one_source = true,
	.loses_nothing = true,
	.sources_ended = STOP_END,
	.idle_ns = IDLE_NS,
	.settle_ns = SETTLE_NS,
	.begin = file_begin,
	.wall_ns = file_wall_ns,
	.has_room = file_has_room,
	.fired = file_fired,
	.limit_held = file_limit_held,
	.end = file_end,
	.wants_last = file_wants_last,
};
