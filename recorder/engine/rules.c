/*
 * Rules in the engine: which of them see events, when the stop rules are armed, how often a rule
 * may make an incident, what rules remember over a restart. Merge thread, except for opening and
 * closing.
 */
#include "engine/engine_private.h"

#include "base/moment.h"
#include "base/text.h"
#include "model/own_event.h"
#include "source/counter_name.h"
#include "triggers/perf_counter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SAVE_NS (60 * NS_PER_SEC)
#define TELL_NS (10 * NS_PER_SEC)
#define NO_DATA_NS (3 * NS_PER_SEC)          /* and two polls; absent for longer it is logged */
#define LATE_NS (2 * NS_PER_SEC)             /* times of lines may be whole seconds */
#define HOUR_NS (3600 * NS_PER_SEC)
#define DAY_NS (24 * HOUR_NS)

bool rules_is_start(const struct trigger *t)
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
	rules->half_unlimited = !e->policy->rules_pause;
	rules->day_unlimited = !e->policy->rules_pause && !cfg->rule_per_day;
	rules->all = calloc(cfg->ntriggers + 1u, sizeof(*rules->all));
	if (!rules->all)
		return err_memory(err, "for the rules");
	rules->armed = true;
	for (i = 0; i < cfg->ntriggers; i++) {
		rules->all[i].last_fired =
			calloc(rules->per_hour, sizeof(*rules->all[i].last_fired));
		if (!rules->all[i].last_fired)
			return err_memory(err, "for the rules");
		if (rules_is_start(cfg->triggers[i]))
			rules->armed = false;
		load_state(e, i);
	}
	return 0;
}

void rules_close(struct engine *e)
{
	uint32_t i;

	for (i = 0; e->rules.all && i < e->cfg->ntriggers; i++)
		free(e->rules.all[i].last_fired);
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
		r->last_fired[r->fired % e->rules.per_hour].time_ns = 0;
	}
}

static struct fired fired_now(const struct firing *f)
{
	const struct process *process = f->event ? f->event->process : NULL;
	struct fired now = {.time_ns = f->time_ns};

	if (process) {
		now.pid = process->pid;
		now.process_start_ns = process->start_ns;
	}
	return now;
}

/*
 * Whether one process has had half of a rule's incidents of this hour: the other half is for those
 * that it would hide.
 *
 * out       its oldest one of the hour
 */
static bool has_had_its_half(const struct rules *rules, const struct rule_state *r,
			     const struct fired *now, uint64_t *oldest_ns)
{
	uint32_t i, n = 0;

	if (rules->half_unlimited || !now->pid)
		return false;
	*oldest_ns = UINT64_MAX;
	for (i = 0; i < rules->per_hour; i++) {
		const struct fired *f = &r->last_fired[i];

		if (!f->time_ns || now->time_ns - f->time_ns >= HOUR_NS || f->pid != now->pid ||
		    f->process_start_ns != now->process_start_ns)
			continue;
		n++;
		if (f->time_ns < *oldest_ns)
			*oldest_ns = f->time_ns;
	}
	return n >= (rules->per_hour + 1) / 2;
}

/* Whether a rule may make one more incident now, this hour and this day. */
static bool is_within_limits(struct engine *e, uint32_t rule, const struct firing *f)
{
	const struct rules *rules = &e->rules;
	struct rule_state *r = &rules->all[rule];
	const struct fired now = fired_now(f);
	uint64_t interval_ns = e->capture->min_interval_ns, now_ns = f->time_ns, oldest_ns;
	bool full_hour, full_day;
	char why[400];

	subtract_repeats(e, r);
	oldest_ns = r->last_fired[r->fired % rules->per_hour].time_ns;
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
	if (has_had_its_half(rules, r, &now, &oldest_ns)) {
		r->held_back_until_ns = oldest_ns + HOUR_NS;
		snprintf(why, sizeof(why), "one process makes at most half of the %u incidents an "
			 "hour, and %s (%" PRIu32 ") has", rules->per_hour,
			 process_name(f->event->process), now.pid);
		hold_back(e, rule, why);
		return false;
	}
	r->limit_logged = false;
	return true;
}

static void count_firing(struct rules *rules, const struct firing *f)
{
	struct rule_state *r = &rules->all[f->rule];

	r->last_fired[r->fired++ % rules->per_hour] = fired_now(f);
	r->last_ns = f->time_ns;
	r->day_fired++;
}

/* ---- what rules measure ---------------------------------------------------------------------- */

static void put_text(struct engine *e, uint64_t time_ns, const char *name, const char *text)
{
	const struct event_field field = {.name = OWN_TEXT, .type = FIELD_TEXT, .v.text = text};

	if (e->policy->by_clock)
		own_event_put(e, time_ns, CPU_NONE, name, &field, 1);
}

/* "SPEC: last 42.1, average 40.2, maximum 80 of 10 values; 10 seen, 2 matched, ..." */
static void put_rule(struct engine *e, const struct trigger *t, uint64_t time_ns)
{
	const struct trigger_interval *in = &t->interval;
	const struct trigger_counts *n = &t->counts;
	struct buf text = {0};

	buf_printf(&text, "%s: ", t->spec);
	if (in->n)
		buf_printf(&text, "last %.6g, average %.6g, maximum %.6g of %" PRIu64 " values; ",
			   t->value, in->sum / (double)in->n, in->max, in->n);
	buf_printf(&text, "%" PRIu64 " seen, %" PRIu64 " matched, dropped: %" PRIu64
		   " by process, %" PRIu64 " by filter", n->seen, n->matched, n->dropped_process,
		   n->dropped_filter);
	put_text(e, time_ns, OWN_RULE, buf_text(&text));
	buf_free(&text);
}

void rules_tell(struct engine *e)
{
	uint32_t i;

	if (!e->merge.started || e->merge.now_ns < e->rules.next_tell_ns)
		return;
	e->rules.next_tell_ns = e->merge.now_ns + TELL_NS;
	for (i = 0; i < e->cfg->ntriggers; i++) {
		struct trigger *t = e->cfg->triggers[i];
		struct rule_view *view = &e->shared.rules[i];

		put_rule(e, t, e->merge.now_ns);
		os_mutex_lock(e->shared.lock);
		view->interval[0] = '\0';
		if (t->interval.n)
			snprintf(view->interval, sizeof(view->interval),
				 ", average %.4g and maximum %.4g in %u s",
				 t->interval.sum / (double)t->interval.n, t->interval.max,
				 (unsigned)(TELL_NS / NS_PER_SEC));
		os_mutex_unlock(e->shared.lock);
		t->interval = (struct trigger_interval){0};
	}
}

/* ---- firing --------------------------------------------------------------------------------- */

/*
 * Where the line of a log, or an alert, says that it happened: --replay-late. Fills reason, if the
 * firing moves. A line's time may be in whole seconds, and it is read up to 100 ms later.
 */
static void place_late(struct engine *e, struct firing *f, struct buf *reason)
{
	const struct event_field *at = event_field(f->event, "StartsAt");
	uint64_t now_wall_ns = e->policy->wall_ns(e, f->time_ns), wall_ns, late_ns;
	char time[OS_TIME_TEXT_BYTES];
	struct ring_use use;
	bool held;

	if (!at && f->event->kind == EVENT_LOG)
		at = event_field(f->event, "Message");
	if (!e->capture->replay_late || !at || at->type != FIELD_TEXT ||
	    !moment_find(at->v.text, now_wall_ns, &wall_ns) ||
	    wall_ns + LATE_NS > now_wall_ns)
		return;
	late_ns = now_wall_ns - wall_ns;
	ring_use(e->ring, &use);
	held = late_ns <= f->time_ns && f->time_ns - late_ns >= e->merge.start_ns &&
	       f->time_ns - late_ns >= use.evicted_until_ns;
	os_time_text(wall_ns, time);
	buf_printf(reason, "%s (it speaks of %s, %.0f s before it came)", f->reason, time,
		   (double)late_ns / 1e9);
	if (held)
		f->time_ns -= late_ns;
	else if (!reason->failed && past_want(e, f, wall_ns, reason->data))
		buf_puts(reason, "; an incident out of the history has that time");
	else
		buf_puts(reason, "; the buffer has no more of it");
	if (!reason->failed)
		f->reason = reason->data;
}

/* Of whom an event is: "" = nobody. A counter of a process has its name: Process:COUNTER:NAME. */
static const char *process_of(const struct event *event, char pid[16])
{
	const char *name;

	if (event->process) {
		snprintf(pid, 16, "%" PRIu32, event->process->pid);
		return pid;
	}
	if (event->kind != EVENT_COUNTER || strncasecmp(event->name, "Process:", 8) != 0)
		return "";
	name = strrchr(event->name, ':') + 1;
	if (strncasecmp(name, "pid=", 4) == 0)
		return name + 4;
	return text_same_fold(name, "_Total") ? "" : name;
}

/* A source takes them, on its own thread. */
static void want_stacks(struct engine *e, const struct trigger *t, const struct event *event)
{
	const char *who = t->stacks;
	char pid[16];
	uint32_t i;

	if (!who && !e->capture->on_fire)
		return;
	if (!who || !*who)
		who = process_of(event, pid);
	if (!*who) {
		log_line(e->log, LOG_WARN, "the incident lacks the stacks of threads: what fired "
			 "is of no process; name one: ;Stacks=NAME");
		return;
	}
	for (i = 0; i < e->feed.n; i++)
		if (e->feed.sources[i].ops->take_stacks)
			e->feed.sources[i].ops->take_stacks(e->feed.sources[i].source, who);
}

static void rule_fires(struct engine *e, uint32_t rule, const struct buf *why,
		       const struct event *event)
{
	struct trigger *t = e->cfg->triggers[rule];
	struct trigger_status status;
	struct buf reason = {0};
	bool fires;
	struct firing placed, f = {.event = event, .rule = rule, .rule_text = t->spec,
			   .reason = buf_text(why), .time_ns = event->time_ns,
			   .pre_ns = e->capture->pre_ns, .post_ns = e->capture->post_ns};

	if (rules_is_start(t)) {
		e->rules.armed = true;
		trigger_fired(t);
		log_line(e->log, LOG_INFO, "the other rules are armed now: %s", buf_text(why));
		return;
	}
	trigger_status(t, &status);
	f.value = status.value;
	f.limit = status.limit;
	placed = f;
	fires = is_within_limits(e, rule, &f);
	if (fires)
		place_late(e, &placed, &reason);
	if (!fires || !engine_fire(e, &placed)) {
		trigger_fired(t);            /* no window will end: armed again at once */
		buf_free(&reason);
		return;
	}
	want_stacks(e, t, event);
	put_text(e, f.time_ns, OWN_STOP_REASON, placed.reason);
	put_rule(e, t, f.time_ns);
	count_firing(&e->rules, &f);
	buf_free(&reason);
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
/* Not inlined: most files are read without rules. */
__attribute__((noinline)) static bool feed_all(struct engine *e, const struct event *event)
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
		    rules_is_start(t) == e->rules.armed)
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

bool rules_feed(struct engine *e, const struct event *event)
{
	return e->cfg->ntriggers && feed_all(e, event);
}

/* ---- status --------------------------------------------------------------------------------- */

/* What the engine does with a rule, where the rule itself does not know. */
static void add_engine_state(const struct engine *e, uint32_t rule, struct trigger_status *s)
{
	const struct rule_state *r = &e->rules.all[rule];
	const bool starts = rules_is_start(e->cfg->triggers[rule]);
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

	for (i = 0; i < e->cfg->needs->ncounters; i++)
		if (e->cfg->needs->counters[i].period_ns > period_ns)
			period_ns = e->cfg->needs->counters[i].period_ns;
	return NO_DATA_NS + 2 * period_ns;
}

/* An instance that does not exist yet is no reason for a warning. */
static void log_waiting(struct engine *e, const struct trigger *t, const char *name)
{
	struct counter_name counter;
	bool of_process;

	if (counter_name_split(name, &counter, NULL))
		return;
	/* The program may run, and not tell this. */
	if (jvm_counter_is(name) || event_counter_is(name) || prometheus_counter_is(name)) {
		log_line(e->log, LOG_INFO, "%s: waiting: no program tells this value yet", t->spec);
		return;
	}
	of_process = text_same_fold(counter.category, "Process") ||
		     strncasecmp(counter.category, ".NET CLR", 8) == 0;
	log_line(e->log, LOG_INFO, "%s: waiting: no %s %s yet", t->spec,
		 of_process ? "process" : counter.category, counter.instance);
}

/* A rule that cannot fire for a while is logged, each time, and when it can again. */
static void log_rest(struct engine *e, uint32_t rule, const struct trigger_status *s)
{
	struct rule_state *r = &e->rules.all[rule];
	bool rests = s->phase == TRIGGER_RESTING;

	if (rests && !r->rest_logged)
		log_line(e->log, LOG_WARN, "%s %s", e->cfg->triggers[rule]->spec, s->text);
	else if (!rests && r->rest_logged)
		log_line(e->log, LOG_INFO, "%s is judged again", e->cfg->triggers[rule]->spec);
	r->rest_logged = rests;
}

/* A rule without data is logged once: nobody reads the status of what is silent. */
static void log_silence(struct engine *e, uint32_t rule, const struct trigger_status *s)
{
	const struct trigger *t = e->cfg->triggers[rule];
	bool no_data = t->ops->is_state && s->phase == TRIGGER_WAITING_DATA &&
		       e->policy->by_clock && e->merge.now_ns - e->merge.start_ns > no_data_ns(e);

	if (!no_data || e->rules.all[rule].silence_logged)
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
		log_rest(e, i, &view->status);
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
