/*
 * A configuration that is read anew while recording goes on. The control thread has it read and
 * checked, and allocates what the new rules need; the merge thread exchanges them between two
 * ticks; the control thread frees what is not used any more. Both need the lock, and other threads
 * read what changes here under it.
 */
#include "engine/engine_private.h"

#include <stdlib.h>
#include <string.h>

#define TAKE_NS (5 * NS_PER_SEC)             /* the merge thread takes it within 100 ms */
#define NEW_RULE UINT32_MAX

/* Goes to the merge thread with the new rules, and comes back with the old ones. */
struct reload {
	const struct engine_config *cfg;     /* the configuration; its triggers are the new ones */
	struct rule_state *all;              /* by new rule, with circles for cfg's rule_per_hour */
	struct rule_view *views;
	uint32_t nrules;                     /* of these two */
	uint32_t *from;                      /* by new rule: the old one, or NEW_RULE */
	uint32_t *to;                        /* by old rule: the new one, or MANUAL_RULE */
	bool rate;                           /* the frequency or the budget has changed */
	bool taken;
};

static uint32_t per_hour_of(const struct engine_config *cfg)
{
	return cfg->rule_per_hour ? cfg->rule_per_hour : ENGINE_RULE_PER_HOUR;
}

static uint32_t per_day_of(const struct engine_config *cfg)
{
	return cfg->rule_per_day ? cfg->rule_per_day : ENGINE_RULE_PER_DAY;
}

/* ---- control thread ------------------------------------------------------------------------- */

static void reload_free(struct reload *r)
{
	uint32_t i;

	for (i = 0; r->all && i < r->nrules; i++)
		free(r->all[i].last_fired);
	free(r->all);
	free(r->views);
	free(r->from);
	free(r->to);
}

static int prepare(const struct engine *e, struct reload *r, struct err *err)
{
	const struct engine_config *old = e->cfg, *new = r->cfg;
	uint32_t i, k;

	r->nrules = new->ntriggers;
	r->all = calloc(r->nrules + 1u, sizeof(*r->all));
	r->views = calloc(r->nrules + 1u, sizeof(*r->views));
	r->from = calloc(r->nrules + 1u, sizeof(*r->from));
	r->to = calloc(old->ntriggers + 1u, sizeof(*r->to));
	if (!r->all || !r->views || !r->from || !r->to)
		return err_memory(err, "for the rules");
	for (k = 0; k < old->ntriggers; k++)
		r->to[k] = MANUAL_RULE;
	for (i = 0; i < r->nrules; i++) {
		r->all[i].last_fired = calloc(per_hour_of(new), sizeof(struct fired));
		if (!r->all[i].last_fired)
			return err_memory(err, "for the rules");
		for (k = 0; k < old->ntriggers && old->triggers[k] != new->triggers[i]; k++)
			;
		r->from[i] = k < old->ntriggers ? k : NEW_RULE;
		if (r->from[i] != NEW_RULE)
			r->to[k] = i;
	}
	r->rate = new->capture.freq_hz != old->capture.freq_hz ||
		  new->budget.max_cpu_pct < old->budget.max_cpu_pct ||
		  new->budget.max_cpu_pct > old->budget.max_cpu_pct;
	return 0;
}

/* Let the merge thread take it; false: it did not in time, and will not. */
static bool hand_over(struct engine *e, struct reload *r)
{
	uint64_t until_ns = os_now_ns() + TAKE_NS;
	struct shared *s = &e->shared;

	os_mutex_lock(s->lock);
	s->reload = r;
	os_cond_signal(s->wake_merge);
	while (s->reload && os_now_ns() < until_ns && !atomic_load(&e->merge_ended))
		os_cond_wait(s->wake_reload, s->lock, 100 * NS_PER_MS);
	s->reload = NULL;
	os_mutex_unlock(s->lock);
	return r->taken;
}

static void count_rules(const struct reload *r, uint32_t nold, struct buf *what)
{
	uint32_t kept = 0, i;

	for (i = 0; i < r->nrules; i++)
		kept += r->from[i] != NEW_RULE;
	buf_printf(what, "the configuration was read anew: %u rules go on, %u are new, %u have "
		   "gone", kept, r->nrules - kept, nold - kept);
}

int engine_reload(struct engine *e, struct buf *what, struct err *err)
{
	struct reload r = {0};
	struct buf details = {0};
	uint32_t nold = e->cfg->ntriggers;
	int rc;

	if (!e->cfg->reload)
		return err_set(err, ERR_UNSUPPORTED, "this recorder was started without --config: "
			       "there is no file to read anew");
	rc = e->cfg->reload(e->cfg->ready_ctx, &r.cfg, &details, err);
	if (!rc) {
		rc = prepare(e, &r, err);
		if (!rc) {
			count_rules(&r, nold, what);
			buf_puts(what, buf_text(&details));
		}
		if (!rc && !hand_over(e, &r))
			rc = err_set(err, ERR_BUSY, "recording is ending, or too busy");
		e->cfg->reloaded(e->cfg->ready_ctx, !rc);
	}
	reload_free(&r);
	buf_free(&details);
	return rc;
}

/* ---- merge thread --------------------------------------------------------------------------- */

/* The newest firings, in a circle of another size. */
static void copy_fired(struct fired *to, uint32_t nto, const struct rule_state *from,
		       uint32_t nfrom)
{
	uint32_t i, n = nto < nfrom ? nto : nfrom;

	for (i = 1; i <= n && i <= from->fired; i++)
		to[(from->fired - i) % nto] = from->last_fired[(from->fired - i) % nfrom];
}

/* A rule whose options have changed keeps a limit that moves. */
static void copy_limit(const struct engine *e, struct trigger *t)
{
	struct buf state = {0};
	uint32_t i;

	for (i = 0; i < e->cfg->ntriggers; i++) {
		const struct trigger *old = e->cfg->triggers[i];

		if (old->ops != t->ops || strcmp(old->spec, t->spec) != 0)
			continue;
		if (!trigger_save(old, &state) && state.len)
			trigger_load(t, state.data, state.len, 0, NULL);
		break;
	}
	buf_free(&state);
}

static void keep_rules(struct engine *e, struct reload *r)
{
	const uint32_t per_hour = per_hour_of(r->cfg);
	uint32_t i;

	for (i = 0; i < r->nrules; i++) {
		struct rule_state *to = &r->all[i], *from;
		struct fired *circle = to->last_fired;

		if (r->from[i] == NEW_RULE) {
			copy_limit(e, r->cfg->triggers[i]);
			continue;
		}
		from = &e->rules.all[r->from[i]];
		r->views[i] = e->shared.rules[r->from[i]];
		copy_fired(circle, per_hour, from, e->rules.per_hour);
		memcpy(to, from, sizeof(*to));
		to->last_fired = circle;
	}
}

/* Windows of rules that have gone end as planned, but nobody waits for them. */
static void renumber_pending(struct engine *e, const struct reload *r)
{
	struct pending *p;

	for (p = e->shared.first_pending; p; p = p->next) {
		if (p->rule == MANUAL_RULE)
			continue;
		p->rule = r->to[p->rule];
		if (p->rule == MANUAL_RULE)
			p->lasted_ns = 0;
	}
}

static bool has_start_rule(const struct engine_config *cfg)
{
	uint32_t i;

	for (i = 0; i < cfg->ntriggers; i++)
		if (rules_is_start(cfg->triggers[i]))
			return true;
	return false;
}

static void take_rules(struct engine *e, struct reload *r)
{
	struct rule_state *all = e->rules.all;
	struct rule_view *views = e->shared.rules;

	keep_rules(e, r);
	renumber_pending(e, r);
	e->rules.armed = !has_start_rule(r->cfg) || (e->rules.armed && has_start_rule(e->cfg));
	e->rules.all = r->all;
	e->shared.rules = r->views;
	e->rules.per_hour = per_hour_of(r->cfg);
	e->rules.per_day = per_day_of(r->cfg);
	r->all = all;
	r->views = views;
	r->nrules = e->cfg->ntriggers;       /* for reload_free() */
	e->live.triggers = r->cfg->triggers;
	e->live.ntriggers = r->cfg->ntriggers;
}

static void take_limits(struct engine_config *to, const struct engine_config *from)
{
	struct capture *c = &to->capture;

	to->pending = from->pending;
	to->store_limits = from->store_limits;
	to->budget.max_cpu_pct = from->budget.max_cpu_pct;
	to->rule_per_hour = from->rule_per_hour;
	to->rule_per_day = from->rule_per_day;
	if (to->history_bytes && from->history_bytes)
		to->history_bytes = from->history_bytes;
	to->history_age_ns = from->history_age_ns;
	c->freq_hz = from->capture.freq_hz;
	c->pre_ns = from->capture.pre_ns;
	c->post_ns = from->capture.post_ns;
	c->min_interval_ns = from->capture.min_interval_ns;
	c->replay_late = from->capture.replay_late;
	c->dedup_ns = from->capture.dedup_ns;
	c->max_collect_ns = from->capture.max_collect_ns;
	c->incidents = from->capture.incidents;
}

void reload_take(struct engine *e)
{
	struct shared *s = &e->shared;
	struct reload *r;
	bool rate = false;

	os_mutex_lock(s->lock);
	r = s->reload;
	if (r) {
		rate = r->rate;
		take_rules(e, r);
		take_limits(&e->live, r->cfg);
		r->taken = true;
		s->reload = NULL;
		os_cond_signal(s->wake_reload);
	}
	os_mutex_unlock(s->lock);
	if (rate)
		costs_change(e);
}
