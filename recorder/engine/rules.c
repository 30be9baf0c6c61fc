/*
 * Rules in the engine: which of them see events, when the stop rules are armed, how often a rule
 * may make an incident, what rules remember over a restart. Merge thread, except for opening and
 * closing.
 */
#include "engine/engine_private.h"

#include "base/text.h"
#include "source/counter_name.h"
#include "triggers/perf_counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SAVE_NS (60 * NS_PER_SEC)
#define NO_DATA_NS (3 * NS_PER_SEC)          /* and two polls; absent for longer it is logged */
#define HOUR_NS (3600 * NS_PER_SEC)
#define DAY_NS (24 * HOUR_NS)

static bool is_start_rule(const struct trigger *t)
{
	return t->ops == &start_counter_trigger;
}

/* ---- opening (control thread, before the others run) ---------------------------------------- */

static void load_state(struct engine *e, uint32_t rule)
{
	struct trigger *t = e->cfg->triggers[rule];
	uint64_t saved_ns = 0, now_ns = os_wall_ns();
	struct buf state = {0};
	struct err err = {0};
	int rc;

	if (!t->ops->saves_limit || !e->policy->rules_persist)
		return;
	rc = store_get_rule(e->writer.store, t->spec, &state, &saved_ns, &err);
	if (!rc)
		rc = trigger_load(t, state.data, state.len,
				  now_ns > saved_ns ? now_ns - saved_ns : 0, &err);
	if (rc && rc != ERR_NOT_FOUND)
		log_line(e->log, LOG_WARN, "%s: %s", t->spec, err.text);
	buf_free(&state);
}

int rules_open(struct engine *e, struct err *err)
{
	const struct engine_config *cfg = e->cfg;
	struct rules *rules = &e->rules;
	uint32_t i;

	rules->per_hour = cfg->rule_per_hour ? cfg->rule_per_hour : ENGINE_RULE_PER_HOUR;
	rules->per_day = cfg->rule_per_day ? cfg->rule_per_day : ENGINE_RULE_PER_DAY;
	rules->hour_unlimited = !e->policy->rules_pause && !cfg->rule_per_hour;
	rules->day_unlimited = !e->policy->rules_pause && !cfg->rule_per_day;
	rules->all = calloc(cfg->ntriggers + 1u, sizeof(*rules->all));
	if (!rules->all)
		return err_memory(err, "for the rules");
	rules->armed = true;
	for (i = 0; i < cfg->ntriggers; i++) {
		rules->all[i].hour_ns = calloc(rules->per_hour, sizeof(*rules->all[i].hour_ns));
		if (!rules->all[i].hour_ns)
			return err_memory(err, "for the rules");
		if (is_start_rule(cfg->triggers[i]))
			rules->armed = false;
		load_state(e, i);
	}
	return 0;
}

void rules_close(struct engine *e)
{
	uint32_t i;

	for (i = 0; e->rules.all && i < e->cfg->ntriggers; i++)
		free(e->rules.all[i].hour_ns);
	free(e->rules.all);
}

/* ---- limits --------------------------------------------------------------------------------- */

uint32_t rules_wanted_firings(const struct engine *e)
{
	return (e->capture->incidents ? e->capture->incidents : 1) +
	       atomic_load(&e->dedup.nrepeats);
}

static void hold_back(struct engine *e, uint32_t rule, const char *why)
{
	struct rule_state *r = &e->rules.all[rule];

	r->held_back++;
	if (!r->limit_logged)
		log_line(e->log, LOG_WARN, "%s fires too often: %s", e->cfg->triggers[rule]->spec,
			 why);
	r->limit_logged = true;
}

/* Repeats do not count against the hourly and daily limits. */
static void subtract_repeats(const struct engine *e, struct rule_state *r)
{
	for (; r->repeats_subtracted != atomic_load(&r->repeats); r->repeats_subtracted++) {
		r->day_fired -= r->day_fired > 0;
		if (!r->fired)
			continue;
		r->fired--;
		/* The firing that stood there before was more than an hour old. */
		r->hour_ns[r->fired % e->rules.per_hour] = 0;
	}
}

/* Whether a rule may make one more incident now, this hour and this day. */
static bool is_within_limits(struct engine *e, uint32_t rule, uint64_t now_ns)
{
	const struct rules *rules = &e->rules;
	struct rule_state *r = &rules->all[rule];
	uint64_t interval_ns = e->capture->min_interval_ns, oldest_ns;
	bool full_hour, full_day;
	char why[160];

	subtract_repeats(e, r);
	oldest_ns = r->hour_ns[r->fired % rules->per_hour];
	if (now_ns - r->day_start_ns >= DAY_NS) {
		r->day_start_ns = now_ns;
		r->day_fired = 0;
	}
	if (r->fired && now_ns - r->last_ns < interval_ns) {
		r->held_back_until_ns = r->last_ns + interval_ns;
		snprintf(why, sizeof(why), "the next incident is kept %.0f s after the last",
			 (double)interval_ns / 1e9);
		hold_back(e, rule, why);
		return false;
	}
	full_hour = !rules->hour_unlimited && r->fired >= rules->per_hour && oldest_ns &&
		    now_ns - oldest_ns < HOUR_NS;
	full_day = !rules->day_unlimited && r->day_fired >= rules->per_day;
	if (full_hour || full_day) {
		r->held_back_until_ns = full_day ? r->day_start_ns + DAY_NS : oldest_ns + HOUR_NS;
		snprintf(why, sizeof(why), "at most %u incidents an hour and %u a day are kept",
			 rules->per_hour, rules->per_day);
		hold_back(e, rule, why);
		return false;
	}
	r->limit_logged = false;
	return true;
}

static void count_firing(struct rules *rules, uint32_t rule, uint64_t now_ns)
{
	struct rule_state *r = &rules->all[rule];

	r->hour_ns[r->fired++ % rules->per_hour] = now_ns;
	r->last_ns = now_ns;
	r->day_fired++;
}

/* ---- firing --------------------------------------------------------------------------------- */

static void rule_fires(struct engine *e, uint32_t rule, const struct buf *why,
		       const struct event *event)
{
	struct trigger *t = e->cfg->triggers[rule];
	struct trigger_status status;
	struct firing f = {.event = event, .rule = rule, .rule_text = t->spec,
			   .reason = buf_text(why), .time_ns = event->time_ns,
			   .pre_ns = e->capture->pre_ns, .post_ns = e->capture->post_ns};

	if (is_start_rule(t)) {
		e->rules.armed = true;
		trigger_fired(t);
		log_line(e->log, LOG_INFO, "the other rules are armed now: %s", buf_text(why));
		return;
	}
	trigger_status(t, &status);
	f.value = status.value;
	f.limit = status.limit;
	if (!is_within_limits(e, rule, f.time_ns) || !engine_fire(e, &f)) {
		trigger_fired(t);            /* no window will end: armed again at once */
		return;
	}
	count_firing(&e->rules, rule, f.time_ns);
	if (!e->policy->rules_pause)
		trigger_fired(t);
	if (++e->rules.firings >= rules_wanted_firings(e))
		log_line(e->log, LOG_INFO, "that was incident %u of %u; %s ends when it is stored",
			 e->rules.firings, rules_wanted_firings(e), e->policy->activity);
}

/*
 * Before they are armed only the rules that arm are on. After the last wanted firing all are off,
 * except one that tells when what fired has ended.
 */
bool rules_feed(struct engine *e, const struct event *event)
{
	struct buf why = {0};
	bool fired = false, now;
	uint32_t i;

	for (i = 0; i < e->cfg->ntriggers; i++) {
		struct trigger *t = e->cfg->triggers[i];
		const bool in_window = e->rules.all[i].in_window;

		if (e->rules.firings >= rules_wanted_firings(e) && !(in_window && t->ops->lasts))
			continue;
		if ((t->kinds && !(t->kinds >> event->kind & 1)) ||
		    is_start_rule(t) == e->rules.armed)
			continue;
		buf_reset(&why);
		now = t->ops->feed(t, event, &why);
		fired |= now;
		if (now && !in_window)
			rule_fires(e, i, &why, event);
	}
	buf_free(&why);
	return fired;
}

/* ---- status --------------------------------------------------------------------------------- */

/* What the engine does with a rule, where the rule itself does not know. */
static void add_engine_state(const struct engine *e, uint32_t rule, struct trigger_status *s)
{
	const struct rule_state *r = &e->rules.all[rule];
	const bool starts = is_start_rule(e->cfg->triggers[rule]);
	size_t used = strlen(s->text);
	char more[100] = "";

	if (!starts && !e->rules.armed)
		snprintf(more, sizeof(more), ", waits for StartOnPerfCounter");
	else if (starts && e->rules.armed)
		snprintf(more, sizeof(more), ", has armed the other rules");
	else if (e->rules.firings >= rules_wanted_firings(e))
		snprintf(more, sizeof(more), ", off: all requested incidents have fired");
	else if (r->limit_logged && r->held_back_until_ns > e->merge.now_ns)
		snprintf(more, sizeof(more), ", held back for %.0f s: it fired too often",
			 (double)(r->held_back_until_ns - e->merge.now_ns) / 1e9);
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

/* An instance that does not exist yet is no reason for a warning. */
static void log_waiting(struct engine *e, const struct trigger *t, const char *name)
{
	struct counter_name counter;
	bool of_process;

	if (counter_name_split(name, &counter, NULL))
		return;
	of_process = text_same_fold(counter.category, "Process") ||
		     strncasecmp(counter.category, ".NET CLR", 8) == 0;
	log_line(e->log, LOG_INFO, "%s: waiting: no %s %s yet", t->spec,
		 of_process ? "process" : counter.category, counter.instance);
}

/* A rule that cannot fire is logged once: nobody reads the status of what is silent. */
static void log_silence(struct engine *e, uint32_t rule, const struct trigger_status *s)
{
	const struct trigger *t = e->cfg->triggers[rule];
	bool no_data = t->ops->is_state && s->phase == TRIGGER_WAITING_DATA &&
		       e->policy->by_clock && e->merge.now_ns - e->merge.start_ns > no_data_ns(e);

	if ((!no_data && s->phase != TRIGGER_DEAD) || e->rules.all[rule].silence_logged)
		return;
	e->rules.all[rule].silence_logged = true;
	if (s->absent)
		log_waiting(e, t, s->absent);
	else
		log_line(e->log, LOG_WARN, "%s cannot fire now: %s", t->spec, s->text);
}

void rules_publish(struct engine *e)
{
	uint32_t i;

	for (i = 0; i < e->cfg->ntriggers; i++) {
		struct trigger *t = e->cfg->triggers[i];
		const struct rule_state *r = &e->rules.all[i];
		struct rule_view *view = &e->shared.rules[i];
		uint64_t nearest_ns;

		trigger_status(t, &view->status);
		log_silence(e, i, &view->status);
		add_engine_state(e, i, &view->status);
		view->fired = r->fired + r->repeats_subtracted;
		view->held_back = r->held_back;
		/* An event may be ahead of the last tick. */
		nearest_ns = view->status.nearest_ns;
		view->nearest_ago_ns = nearest_ns && nearest_ns < e->merge.now_ns
					       ? e->merge.now_ns - nearest_ns
					       : 0;
	}
}

void rules_save(struct engine *e, bool now)
{
	struct buf state = {0};
	uint32_t i;

	if (!e->policy->rules_persist || (!now && e->merge.now_ns < e->rules.next_save_ns))
		return;
	e->rules.next_save_ns = e->merge.now_ns + SAVE_NS;
	os_mutex_lock(e->shared.lock);
	for (i = 0; i < e->cfg->ntriggers; i++) {
		struct trigger *t = e->cfg->triggers[i];
		struct rule_view *view = &e->shared.rules[i];

		buf_reset(&state);
		if (trigger_save(t, &state) != 0 || state.len > sizeof(view->state) || !state.len)
			continue;
		memcpy(view->state, state.data, state.len);
		view->nstate = (uint32_t)state.len;
	}
	os_mutex_unlock(e->shared.lock);
	buf_free(&state);
}
