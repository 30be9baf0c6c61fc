/*
 * Rules in the engine: who is fed, when the stop rules are armed, how often a rule may make an incident,
 * what rules remember over a restart. Merge thread, except where it says otherwise.
 */
#include "engine/engine_private.h"

#include "triggers/perf_counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAVE_NS (60 * NS_PER_SEC)
#define NO_DATA_NS (3 * NS_PER_SEC)          /* a counter that is not there for so long, and two polls, is told */
#define HOUR_NS (3600 * NS_PER_SEC)
#define DAY_NS (24 * HOUR_NS)

static bool is_start_rule(const struct trigger *t)
{
	return t->ops == &start_counter_trigger;
}

/* ---- opening (control thread, before the others run) --------------------------------------------- */

static void load_state(struct engine *e, uint32_t rule)
{
	struct trigger *t = e->cfg->triggers[rule];
	uint64_t saved_ns = 0, now_ns = os_wall_ns();
	struct buf state = {0};
	struct err err = {0};
	int rc;

	/* A file has its own time, and nothing of it outlives the reading. */
	if (!t->ops->load || e->cfg->capture.file)
		return;
	rc = store_get_rule(e->store, t->spec, &state, &saved_ns, &err);
	if (!rc)
		rc = t->ops->load(t, state.data, state.len, now_ns > saved_ns ? now_ns - saved_ns : 0, &err);
	if (rc && rc != ERR_NOT_FOUND)
		log_line(e->log, LOG_WARN, "%s: %s", t->spec, err.text);
	buf_free(&state);
}

int engine_rules_open(struct engine *e, struct err *err)
{
	const struct engine_config *cfg = e->cfg;
	uint32_t i;

	e->per_hour = cfg->rule_per_hour ? cfg->rule_per_hour : ENGINE_RULE_PER_HOUR;
	e->per_day = cfg->rule_per_day ? cfg->rule_per_day : ENGINE_RULE_PER_DAY;
	e->any_per_hour = cfg->capture.file && !cfg->rule_per_hour;
	e->any_per_day = cfg->capture.file && !cfg->rule_per_day;
	e->rules = calloc(cfg->ntriggers + 1u, sizeof(*e->rules));
	e->trigger_view = calloc(cfg->ntriggers + 1u, sizeof(*e->trigger_view));
	if (!e->rules || !e->trigger_view)
		return err_memory(err, "for the rules");
	e->armed = true;
	for (i = 0; i < cfg->ntriggers; i++) {
		e->rules[i].hour_ns = calloc(e->per_hour, sizeof(*e->rules[i].hour_ns));
		if (!e->rules[i].hour_ns)
			return err_memory(err, "for the rules");
		if (is_start_rule(cfg->triggers[i]))
			e->armed = false;
		load_state(e, i);
	}
	return 0;
}

void engine_rules_close(struct engine *e)
{
	uint32_t i;

	for (i = 0; e->rules && i < e->cfg->ntriggers; i++)
		free(e->rules[i].hour_ns);
	free(e->rules);
	free(e->trigger_view);
}

/* ---- how often -------------------------------------------------------------------------------- */

/* Firings that end the run; those that repeat an incident do not count. */
uint32_t engine_rules_wanted(const struct engine *e)
{
	return (e->cfg->capture.incidents ? e->cfg->capture.incidents : 1) + atomic_load(&e->nrepeats);
}

static void tell_held_back(struct engine *e, uint32_t rule, const char *why)
{
	struct rule_state *r = &e->rules[rule];

	r->suppressed++;
	if (!r->told)
		log_line(e->log, LOG_WARN, "%s fires too often: %s", e->cfg->triggers[rule]->spec, why);
	r->told = true;
}

/* What was counted with an earlier incident is none of the rule's hour and day. */
static void give_back_repeats(const struct engine *e, struct rule_state *r)
{
	for (; r->given_back != atomic_load(&r->repeats); r->given_back++) {
		r->day_fired -= r->day_fired > 0;
		if (!r->fired)
			continue;
		r->fired--;
		/* What stood there before it was more than an hour old then. */
		r->hour_ns[r->fired % e->per_hour] = 0;
	}
}

/* Whether a rule may make one more incident now, this hour and this day. */
static bool within_limits(struct engine *e, uint32_t rule, uint64_t now_ns)
{
	struct rule_state *r = &e->rules[rule];
	bool full_hour, full_day;
	uint64_t oldest_ns;
	char why[160];

	give_back_repeats(e, r);
	oldest_ns = r->hour_ns[r->fired % e->per_hour];
	if (now_ns - r->day_start_ns >= DAY_NS) {
		r->day_start_ns = now_ns;
		r->day_fired = 0;
	}
	if (r->fired && now_ns - r->last_ns < e->cfg->capture.min_interval_ns) {
		r->until_ns = r->last_ns + e->cfg->capture.min_interval_ns;
		snprintf(why, sizeof(why), "the next incident is kept %.0f s after the last",
			 (double)e->cfg->capture.min_interval_ns / 1e9);
		tell_held_back(e, rule, why);
		return false;
	}
	full_hour = !e->any_per_hour && r->fired >= e->per_hour && oldest_ns && now_ns - oldest_ns < HOUR_NS;
	full_day = !e->any_per_day && r->day_fired >= e->per_day;
	if (full_hour || full_day) {
		r->until_ns = full_day ? r->day_start_ns + DAY_NS : oldest_ns + HOUR_NS;
		snprintf(why, sizeof(why), "over %u incidents an hour or %u a day are not kept", e->per_hour,
			 e->per_day);
		tell_held_back(e, rule, why);
		return false;
	}
	r->told = false;
	return true;
}

static void count_firing(struct engine *e, uint32_t rule, uint64_t now_ns)
{
	struct rule_state *r = &e->rules[rule];

	r->hour_ns[r->fired++ % e->per_hour] = now_ns;
	r->last_ns = now_ns;
	r->day_fired++;
}

/* ---- firing ----------------------------------------------------------------------------------- */

static void rule_fires(struct engine *e, uint32_t rule, const struct buf *why,
		       const struct event *event)
{
	struct trigger *t = e->cfg->triggers[rule];
	struct trigger_status status;
	uint64_t time_ns = event->time_ns;
	struct firing f = {.event = event, .rule = rule, .rule_text = t->spec, .reason = buf_text(why),
			   .time_ns = time_ns, .pre_ns = e->cfg->capture.pre_ns, .post_ns = e->cfg->capture.post_ns};

	if (is_start_rule(t)) {
		e->armed = true;
		t->ops->fired(t);
		log_line(e->log, LOG_INFO, "the other rules are armed now: %s", buf_text(why));
		return;
	}
	t->ops->status(t, &status);
	f.value = status.value;
	f.limit = status.limit;
	if (!within_limits(e, rule, time_ns) || !engine_fire(e, &f)) {
		t->ops->fired(t);            /* no incident will end: look for the next at once */
		return;
	}
	count_firing(e, rule, time_ns);
	if (e->cfg->capture.file)
		t->ops->fired(t);            /* each GC over the limit is wanted, also in the window of another */
	if (++e->firings >= engine_rules_wanted(e))
		log_line(e->log, LOG_INFO, "that was incident %u of %u; %s ends when it is stored",
			 e->firings, engine_rules_wanted(e), e->cfg->capture.file ? "reading" : "recording");
}

/*
 * After the last wanted firing the triggers are off, but for one that tells when what fired has ended; before
 * they are armed only those that arm are on.
 */
bool engine_rules_feed(struct engine *e, const struct event *event)
{
	struct buf why = {0};
	bool fired = false, now;
	uint32_t i;

	for (i = 0; i < e->cfg->ntriggers; i++) {
		struct trigger *t = e->cfg->triggers[i];

		if (e->firings >= engine_rules_wanted(e) && !(e->rules[i].in_window && t->ops->lasts))
			continue;
		if ((t->kinds && !(t->kinds >> event->kind & 1)) || is_start_rule(t) == e->armed)
			continue;
		buf_reset(&why);
		now = t->ops->feed(t, event, &why);
		fired |= now;
		if (now && !e->rules[i].in_window)
			rule_fires(e, i, &why, event);
	}
	buf_free(&why);
	return fired;
}

/* ---- what status says -------------------------------------------------------------------------- */

/* A rule's line says what the engine does with it, where that is not what the rule thinks. */
static void add_engine_state(const struct engine *e, uint32_t rule, struct trigger_status *s)
{
	const struct rule_state *r = &e->rules[rule];
	size_t used = strlen(s->text);
	char more[100] = "";

	if (!is_start_rule(e->cfg->triggers[rule]) && !e->armed)
		snprintf(more, sizeof(more), ", waits for StartOnPerfCounter");
	else if (is_start_rule(e->cfg->triggers[rule]) && e->armed)
		snprintf(more, sizeof(more), ", has armed the other rules");
	else if (e->firings >= engine_rules_wanted(e))
		snprintf(more, sizeof(more), ", off: the wanted incidents are there");
	else if (r->told && r->until_ns > e->now_ns)
		snprintf(more, sizeof(more), ", held back for %.0f s: it fired too often",
			 (double)(r->until_ns - e->now_ns) / 1e9);
	snprintf(s->text + used, sizeof(s->text) - used, "%s", more);
}

/* When each counter has been read twice: a rate has no value before. */
static uint64_t no_data_ns(const struct engine *e)
{
	uint64_t period_ns = 0;
	uint32_t i;

	for (i = 0; i < e->cfg->needs.ncounters; i++)
		if (e->cfg->needs.counters[i].period_ns > period_ns)
			period_ns = e->cfg->needs.counters[i].period_ns;
	return NO_DATA_NS + 2 * period_ns;
}

/* A rule that cannot fire says so once in the log: nobody looks at the status of what is silent. */
static void tell_silent(struct engine *e, uint32_t rule, const struct trigger_status *s)
{
	const struct trigger *t = e->cfg->triggers[rule];
	bool no_data = t->ops->is_state && s->phase == TRIGGER_WAITING_DATA && e->cfg->live &&
		       e->now_ns - e->start_ns > no_data_ns(e);

	if ((!no_data && s->phase != TRIGGER_DEAD) || e->rules[rule].told_silent)
		return;
	e->rules[rule].told_silent = true;
	log_line(e->log, LOG_WARN, "%s cannot fire now: %s", t->spec, s->text);
}

/* Copy what status prints, and what is to be kept; the caller holds the lock. */
void engine_rules_publish(struct engine *e)
{
	uint64_t nearest_ns;
	uint32_t i;

	for (i = 0; i < e->cfg->ntriggers; i++) {
		struct trigger *t = e->cfg->triggers[i];
		struct rule_state *r = &e->rules[i];

		t->ops->status(t, &e->trigger_view[i]);
		tell_silent(e, i, &e->trigger_view[i]);
		add_engine_state(e, i, &e->trigger_view[i]);
		r->shown.fired = r->fired + r->given_back;
		r->shown.held_back = r->suppressed;
		/* An event may be ahead of the last tick. */
		nearest_ns = e->trigger_view[i].nearest_ns;
		r->shown.nearest_ago_ns = nearest_ns && nearest_ns < e->now_ns ? e->now_ns - nearest_ns : 0;
	}
}

/* ---- what outlives the run ---------------------------------------------------------------------- */

/* Copy the states for the writer: every minute, and at the end. */
void engine_rules_remember(struct engine *e, bool now)
{
	struct buf state = {0};
	uint32_t i;

	if (e->cfg->capture.file || (!now && e->now_ns < e->next_remember_ns))
		return;
	e->next_remember_ns = e->now_ns + SAVE_NS;
	os_mutex_lock(e->lock);
	for (i = 0; i < e->cfg->ntriggers; i++) {
		struct trigger *t = e->cfg->triggers[i];
		struct rule_state *r = &e->rules[i];

		buf_reset(&state);
		if (!t->ops->save || t->ops->save(t, &state) != 0 || state.len > sizeof(r->state) ||
		    !state.len)
			continue;
		memcpy(r->state, state.data, state.len);
		r->nstate = (uint32_t)state.len;
	}
	os_mutex_unlock(e->lock);
	buf_free(&state);
}

/* Writer thread: put them into the store. A failure is no loss of evidence: the log says it, once. */
void engine_rules_store(struct engine *e)
{
	char state[TRIGGER_STATE_MAX];
	struct err err = {0};
	uint32_t i, n;

	for (i = 0; i < e->cfg->ntriggers; i++) {
		struct rule_state *r = &e->rules[i];

		os_mutex_lock(e->lock);
		n = r->nstate;
		memcpy(state, r->state, n);
		r->nstate = 0;
		os_mutex_unlock(e->lock);
		if (!n || store_put_rule(e->store, e->cfg->triggers[i]->spec, state, n, os_wall_ns(), &err) == 0)
			continue;
		if (!e->rules_failed)
			log_line(e->log, LOG_WARN, "what a rule remembers was not stored: %s", err.text);
		e->rules_failed = true;
	}
}
