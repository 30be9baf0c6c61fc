/*
 * A file as the source: its own clock on the wall, its own machine, and waiting in place of losing.
 * The merge thread.
 */
#include "engine/engine_private.h"


#include <math.h>
#include <stdio.h>
#include <string.h>

#define WAIT_NS (50 * NS_PER_MS)

#define CENTURY_NS (36500ULL * 86400 * NS_PER_SEC)

static void ask_origin(const struct engine *e, struct source_origin *out)
{
	const struct feed_source *s = &e->feed.sources[0];

	memset(out, 0, sizeof(*out));
	if (s->ops->origin)
		s->ops->origin(s->source, out);
}

/* The file as one incident: its trigger is the beginning, so that --from 2 --to 3 count from there. */
static void fire_whole(struct engine *e)
{
	struct firing f = {.rule = MANUAL_RULE, .rule_text = "file", .value = NAN, .limit = NAN,
			   .time_ns = e->start_ns, .whole = true};
	char reason[300];

	/* Its length is not known yet; a century holds it, should this be all that is ever stored. */
	f.post_ns = CENTURY_NS;
	snprintf(reason, sizeof(reason), "all of %.200s", os_base_name(e->cfg->capture.file));
	f.reason = reason;
	engine_fire(e, &f);
}

void engine_file_begin(struct engine *e, uint64_t first_ns)
{
	ask_origin(e, &e->origin);
	if (e->origin.start_ns && e->origin.start_ns <= first_ns)
		e->start_ns = e->origin.start_ns;
	else
		e->origin.start_wall_ns = engine_wall_ns(e, first_ns);
	e->origin.start_ns = e->start_ns;
	/* The machine that it was recorded on, not this one. */
	snprintf(e->host, sizeof(e->host), "%s", e->origin.host[0] ? e->origin.host : "?");
	snprintf(e->host_text, sizeof(e->host_text), "%s",
		 e->origin.host_text[0] ? e->origin.host_text : "?");
	if (e->origin.period_ns)
		segment_set_period(e->builder, STREAM_CPU, e->origin.period_ns);
	if (!e->cfg->ntriggers)
		fire_whole(e);
}

uint64_t engine_wall_ns(const struct engine *e, uint64_t time_ns)
{
	uint64_t now_ns, wall_ns;

	if (e->cfg->capture.file)
		return e->origin.start_wall_ns ? e->origin.start_wall_ns + (time_ns - e->origin.start_ns)
					       : 0;
	now_ns = os_now_ns();
	wall_ns = os_wall_ns();
	return wall_ns - (now_ns > time_ns ? now_ns - time_ns : 0);
}

/* ---- waiting for the store -------------------------------------------------------------------- */

/* A full disk is no reason to wait for ever: then reading ends, and the exit code says so. */
static bool writer_gets_on(struct engine *e)
{
	return !e->store_note[0] && !atomic_load(&e->writer_ended) &&
	       atomic_load(&e->stop) != STOP_ABORT;
}

void engine_file_wait(struct engine *e)
{
	struct ring_use use;
	bool gave_up;

	ring_use(e->ring, &use);
	os_mutex_lock(e->lock);
	while (e->held_bytes > e->cfg->pinned_bytes && writer_gets_on(e)) {
		os_cond_wait(e->wake_merge, e->lock, WAIT_NS);
		e->held_bytes = engine_held_bytes(e, use.evicted_until_ns);
	}
	gave_up = e->store_note[0] != '\0';
	os_mutex_unlock(e->lock);
	if (gave_up)
		engine_stop(e, STOP_FAILED, "the store cannot be written");
}

static uint32_t complete_ones(const struct engine *e)
{
	const struct pending *p;
	uint32_t n = 0;

	for (p = e->first_pending; p; p = p->next)
		n += p->complete;
	return n;
}

void engine_file_wait_for_room(struct engine *e)
{
	/* What fires next may be the same again: only of one that is stored. */
	uint32_t most = e->cfg->capture.dedup_ns ? 1 : ENGINE_PENDING_MAX;

	os_mutex_lock(e->lock);
	while (complete_ones(e) >= most && writer_gets_on(e))
		os_cond_wait(e->wake_merge, e->lock, WAIT_NS);
	os_mutex_unlock(e->lock);
}

void engine_file_wait_told_apart(struct engine *e)
{
	os_mutex_lock(e->lock);
	while (e->last_pending && !e->last_pending->told_apart && writer_gets_on(e))
		os_cond_wait(e->wake_merge, e->lock, WAIT_NS);
	os_mutex_unlock(e->lock);
}

/* ---- the end ---------------------------------------------------------------------------------- */

void engine_file_end(struct engine *e, enum engine_stop how, char *text, size_t n,
		     struct window_end *why)
{
	const struct feed_source *s = &e->feed.sources[0];
	struct source_origin now;

	if (e->last_ns > e->now_ns && !e->closed)
		e->now_ns = e->last_ns;
	ask_origin(e, &now);
	memcpy(e->origin.note, now.note, sizeof(now.note));  /* what it lost is known now */
	why->partial = how >= STOP_ASKED;
	why->cut = how == STOP_TIME ? "the time limit ended it" : "reading was stopped";
	if (how <= STOP_END && s->rc) {
		snprintf(text, n, "reading ended (%.300s)", s->err.text);
		why->cut = text;
		why->partial = true;
	} else if (how == STOP_END) {
		why->cut = e->cfg->ntriggers ? "end of file" : NULL;
	}
}
