/*
 * Collects the reasons of health.h, and does what --on-failure says when something begins to fail.
 * Control thread.
 */
#include "engine/engine_private.h"

#include <stdio.h>

#define STORE_HANGS_NS (30 * NS_PER_SEC)     /* the writer looks up every 5 s when it is idle */

static void add_note(struct engine *e, enum health_kind kind, enum health_level level,
		     const char *note)
{
	if (note[0])
		health_add(&e->health, kind, level, note);
}

/* Under the lock. */
static void look_at_store(struct engine *e)
{
	const struct shared *s = &e->shared;

	add_note(e, s->store_full ? HEALTH_DISK_FULL : HEALTH_STORE, HEALTH_FAILING, s->store_note);
	add_note(e, HEALTH_STORE_REPLACED, HEALTH_DEGRADED, s->renewed);
	if (s->pasts[PAST_HISTORY].note[0]) {
		char text[HEALTH_TEXT_BYTES];

		snprintf(text, sizeof(text), "the history is not written: %s",
			 s->pasts[PAST_HISTORY].note);
		health_add(&e->health, HEALTH_HISTORY, HEALTH_DEGRADED, text);
	}
}

static void look_at_writer(struct engine *e)
{
	char waits[OS_THREAD_WAITS_BYTES], text[HEALTH_TEXT_BYTES];

	if (!ends_stands_still(&e->store_stands, atomic_load(&e->writer_steps), STORE_HANGS_NS))
		return;
	os_thread_state_text(e->writer_thread, waits);
	snprintf(text, sizeof(text), "the store %.200s has not answered for %.0f s: its thread %s",
		 e->cfg->store_path, (double)(os_now_ns() - e->store_stands.since_ns) / 1e9, waits);
	health_add(&e->health, HEALTH_STORE, HEALTH_FAILING, text);
}

static void look_at_sources(struct engine *e)
{
	char text[HEALTH_TEXT_BYTES];
	uint32_t i;

	for (i = 0; i < e->feed.n; i++) {
		const struct feed_source *s = &e->feed.sources[i];
		struct source_status status;

		feed_status(s, &status);
		if (status.degraded)
			health_add(&e->health, HEALTH_READERS, HEALTH_DEGRADED, status.note);
		if (!atomic_load(&s->ended) || !s->rc)
			continue;
		snprintf(text, sizeof(text), "the %s source ended: %.500s", s->ops->name,
			 s->err.text);
		health_add(&e->health, HEALTH_SOURCE_ENDED, HEALTH_FAILING, text);
	}
}

void failures_look(struct engine *e)
{
	const struct status_view *v = &e->shared.view;

	health_clear(&e->health);
	if (!e->policy->by_clock)
		return;
	os_mutex_lock(e->shared.lock);
	look_at_store(e);
	add_note(e, v->source_stalls ? HEALTH_STALL : HEALTH_NAMES,
		 v->source_stalls ? HEALTH_FAILING : HEALTH_DEGRADED, v->stalled);
	health_add_losses(&e->health, v->now_ns, v->samples, v->lost_samples);
	os_mutex_unlock(e->shared.lock);
	look_at_writer(e);
	look_at_sources(e);
}

static void tell(struct engine *e, enum health_kind kind, const char *text)
{
	log_line(e->log, LOG_ERROR, "recording fails (%s)%s: %s", health_kind_text(kind),
		 e->cfg->exit_on_failure ? " and ends, as --on-failure says" : "", text);
	if (e->cfg->failure_command)
		command_add_failure(e, health_kind_text(kind), text);
	if (!e->cfg->exit_on_failure)
		return;
	e->failed = true;
	engine_stop(e, STOP_ASKED, text);
}

void failures_tell(struct engine *e)
{
	enum health_kind kind;

	if (!e->policy->by_clock || atomic_load(&e->stop) != STOP_NO)
		return;
	failures_look(e);
	while (health_next_failure(&e->health, os_now_ns(), &kind))
		tell(e, kind, e->health.reasons[kind].text);
	if (health_recovered(&e->health))
		log_line(e->log, LOG_INFO, "nothing fails any more; `recorder status` says %s",
			 health_word(e->health.level));
}
