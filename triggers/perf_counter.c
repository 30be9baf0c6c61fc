#include "triggers/perf_counter.h"

#include "base/os.h"
#include "base/text.h"
#include "triggers/spec.h"
#include "triggers/threshold.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct perf_counter {
	struct trigger base;
	char *name;                          /* CATEGORY:COUNTER:INSTANCE */
	struct threshold threshold;
	double period_sec;
	struct hold hits, misses;            /* in a row: to fire, to be armed */
	bool armed;
	bool absent;                         /* the last sample had no data */
};

/* ---- parsing --------------------------------------------------------------------------------- */

static int check_name(const char *spec, const char *name, size_t len, struct err *err)
{
	const char *first = memchr(name, ':', len);
	const char *second =
		first ? memchr(first + 1, ':', len - (size_t)(first + 1 - name)) : NULL;
	size_t i;

	if (!second)
		return err_set(
			err, ERR_USAGE,
			"'%s': '%.*s' is not CATEGORY:COUNTER:INSTANCE, like 'Processor:%% "
			"Processor Time:_Total' or, for the whole machine, 'Memory:Available "
			"MBytes:'",
			spec, (int)len, name);
	if (first == name)
		return err_set(
			err, ERR_USAGE,
			"'%s': the category before the first ':' is empty; write for example "
			"'Processor'",
			spec);
	if (second == first + 1)
		return err_set(
			err, ERR_USAGE,
			"'%s': the counter between the two ':' is empty; write for example '%% "
			"Processor Time'",
			spec);
	if (len >= COUNTER_NAME_MAX)
		return err_set(err, ERR_USAGE, "'%.60s...': a counter name has at most %d bytes, "
			       "this one has %zu", spec, COUNTER_NAME_MAX - 1, len);
	for (i = 0; i < len; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return err_set(err, ERR_USAGE, "'%.*s': the counter name has a control "
				       "character at byte %zu", (int)i, name, i + 1);
	return 0;
}

static bool period_is_allowed(double sec)
{
	return sec >= COUNTER_PERIOD_MIN_SEC && sec <= COUNTER_PERIOD_MAX_SEC;
}

static int check_env(const struct trigger_env *env, double period_sec, struct err *err)
{
	if (!(env->min_sec >= 0 && env->min_sec <= DBL_MAX))
		return err_set(err, ERR_USAGE,
			       "MinSecForTrigger must be a number of seconds, 0 or more, like 3");
	if (!period_is_allowed(period_sec))
		return err_set(err, ERR_USAGE, "the poll period must be between 0.1 and 86400 s");
	return 0;
}

static void perf_counter_close(struct trigger *t)
{
	struct perf_counter *p = (struct perf_counter *)t;

	if (!p)
		return;
	free(p->base.spec);
	free(p->name);
	free(p);
}

/* The keys begin at the first ';' after the operator, as an instance may contain one. */
static size_t keys_at(const char *spec)
{
	size_t op = strlen(spec);

	while (op && spec[op] != '<' && spec[op] != '>')
		op--;
	return op + strcspn(spec + op, ";");
}

static int parse_keys(const char *spec, struct threshold *t, struct err *err)
{
	struct spec s = {.text = spec, .at = spec + keys_at(spec)};
	struct spec_part part;
	bool taken = false;
	int rc = 0;

	while (!rc && spec_next(&s, &part, &rc, err)) {
		rc = threshold_key(t, &s, &part, &taken, err);
		if (!rc && !taken)
			rc = spec_unknown_key(&s, &part, THRESHOLD_KEYS, err);
	}
	return rc;
}

/* The name and the limit of a spec, with its keys and the defaults of env. */
static int parse(const char *spec, const char *head, const struct trigger_env *env,
		 struct threshold *t, const char **name, size_t *len, struct err *err)
{
	int rc = threshold_parse(head, t, name, len, err);

	if (!rc)
		rc = check_name(head, *name, *len, err);
	if (!rc)
		rc = parse_keys(spec, t, err);
	if (rc)
		return rc;
	if (!threshold_moves(t))
		t->decay_hours = env->decay_hours;
	return threshold_check(t, spec, err);
}

static int counter_open(const struct trigger_ops *ops, const char *spec,
			const struct trigger_env *env, struct trigger **out, struct err *err)
{
	struct perf_counter *p = calloc(1, sizeof(*p));
	char *head = text_dup(spec, keys_at(spec));
	const char *name = "";
	size_t len = 0;
	int rc = 0;

	if (p)
		p->period_sec = env->poll_sec != 0 ? env->poll_sec : 1;
	if (!p || !head)
		rc = err_memory(err, "for the rule '%s'", spec);
	if (!rc)
		rc = parse(spec, head, env, &p->threshold, &name, &len, err);
	if (!rc)
		rc = check_env(env, p->period_sec, err);
	if (!rc)
		rc = trigger_init(&p->base, ops,
				  ops == &start_counter_trigger ? "StartOnPerfCounter" : NULL, spec,
				  1u << EVENT_COUNTER | 1u << EVENT_TICK, err);
	if (!rc && !(p->name = text_dup(name, len)))
		rc = err_memory(err, "for the rule '%s'", spec);
	free(head);
	if (rc) {
		perf_counter_close((struct trigger *)p);
		return rc;
	}
	p->base.limit = &p->threshold;
	hold_init(&p->hits, env->min_sec, p->period_sec);
	p->misses = p->hits;
	p->armed = env->already_true_fires;
	*out = &p->base;
	return 0;
}

static int perf_counter_open(const char *spec, const struct trigger_env *env, struct trigger **out,
			     struct err *err)
{
	return counter_open(&perf_counter_trigger, spec, env, out, err);
}

static int start_counter_open(const char *spec, const struct trigger_env *env, struct trigger **out,
			      struct err *err)
{
	struct trigger_env own = *env;

	own.decay_hours = 0;
	return counter_open(&start_counter_trigger, spec, &own, out, err);
}

static int perf_counter_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	const struct perf_counter *p = (const struct perf_counter *)t;

	return needs_counter(out, p->name, (uint64_t)(p->period_sec * (double)NS_PER_SEC), false,
			     err);
}

int counter_monitor_parse(const char *spec, struct needs *out, struct err *err)
{
	uint64_t period_ns = MONITOR_PERIOD_NS;
	char name[COUNTER_NAME_MAX];
	size_t len = strlen(spec);
	const char *at = strrchr(spec, '@');
	double sec = 0;
	char *end = NULL;
	int rc;

	/* Digits and a point only: strtod() would take "inf" too, which may be a name. */
	if (at && at[1] && strspn(at + 1, "0123456789.") == strlen(at + 1))
		sec = strtod(at + 1, &end);
	if (end && !*end) {
		if (!period_is_allowed(sec))
			return err_set(
				err, ERR_USAGE,
				"'%s': the period '%s' after '@' must be between 0.1 and 86400 s",
				spec, at + 1);
		period_ns = (uint64_t)(sec * (double)NS_PER_SEC);
		len = (size_t)(at - spec);
	}
	rc = check_name(spec, spec, len, err);
	if (rc)
		return rc;
	memcpy(name, spec, len);
	name[len] = '\0';
	return needs_counter(out, name, period_ns, true, err);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* The value as text, with all its digits if it would otherwise read like the limit. */
static void value_text(double value, double limit, char out[NUMBER_TEXT_BYTES])
{
	char other[NUMBER_TEXT_BYTES];

	number_text(value, out);
	number_text(limit, other);
	if (value != limit && strcmp(out, other) == 0)
		snprintf(out, NUMBER_TEXT_BYTES, "%.17g", value);
}

static void say_value(const struct perf_counter *p, struct buf *why)
{
	static const char *const sides[] = {
		[COMPARE_OVER] = "over",
		[COMPARE_OVER_EQUAL] = "at or over",
		[COMPARE_UNDER] = "under",
		[COMPARE_UNDER_EQUAL] = "at or under",
	};
	char value[NUMBER_TEXT_BYTES];

	value_text(p->base.value, threshold_now(&p->threshold), value);
	buf_printf(why, "%s was %s, %s its limit of ", p->name, value, sides[p->threshold.compare]);
	threshold_text(&p->threshold, why);
}

static void say_why(const struct perf_counter *p, uint64_t time_ns, struct buf *why)
{
	double held_sec = round((double)(time_ns - p->hits.first_ns) / 1e8) / 10;
	char more[NUMBER_TEXT_BYTES];

	say_value(p, why);
	if (p->hits.count > 1) {
		number_text(held_sec, more);
		buf_printf(why, ", for %s s (%u samples)", more, p->hits.count);
	}
}

/* One sample with a value; true = fire. */
static bool judge(struct perf_counter *p, double value, uint64_t time_ns)
{
	if (!threshold_hit(&p->threshold, value)) {
		hold_reset(&p->hits);
		if (!p->armed && hold_add(&p->misses, time_ns))
			p->armed = true;
		return false;
	}
	hold_reset(&p->misses);
	return p->armed && hold_add(&p->hits, time_ns) && !p->base.in_window;
}

/* Whether it is a sample of this counter; if so, value and absent are set. */
static bool take_sample(struct perf_counter *p, const struct event *e)
{
	struct trigger *t = &p->base;

	threshold_clock(&p->threshold, e->time_ns);
	if (e->kind != EVENT_COUNTER || !e->name || strcmp(e->name, p->name) != 0)
		return false;
	t->counts.seen++;
	p->absent = (e->flags & EVENT_FLAG_ABSENT) || e->value != e->value;   /* NaN */
	if (p->absent) {
		t->value = NAN;
		return true;
	}
	t->counts.matched++;
	trigger_value(t, e->value, e->time_ns);
	return true;
}

/* Judge one sample alone: in rules made of rules "for" says how long it must hold. */
static void perf_counter_sense(struct trigger *t, const struct event *e, struct buf *why,
			       struct sense *out)
{
	struct perf_counter *p = (struct perf_counter *)t;

	if (!take_sample(p, e))
		return;
	out->absent = p->absent;
	out->measured = !p->absent;
	out->value = t->value;
	out->hit = out->measured && threshold_hit(&p->threshold, t->value);
	if (out->hit)
		say_value(p, why);
}

static bool perf_counter_feed(struct trigger *t, const struct event *e, struct buf *why)
{
	struct perf_counter *p = (struct perf_counter *)t;

	if (!take_sample(p, e))
		return false;
	if (p->absent) {
		hold_reset(&p->hits);
		hold_reset(&p->misses);
		return false;
	}
	if (!judge(p, e->value, e->time_ns))
		return false;
	say_why(p, e->time_ns, why);
	t->in_window = true;
	threshold_fired(&p->threshold, e->time_ns);
	p->armed = false;
	hold_reset(&p->hits);
	hold_reset(&p->misses);
	return true;
}

/* ---- status ---------------------------------------------------------------------------------- */

static enum trigger_phase phase_of(const struct perf_counter *p)
{
	if (!p->base.counts.seen || p->absent)
		return TRIGGER_WAITING_DATA;
	if (!p->armed)
		return TRIGGER_DISARMED;
	return p->hits.count ? TRIGGER_HOLDING : TRIGGER_ARMED;
}

static void perf_counter_status(const struct trigger *t, struct trigger_status *out)
{
	const struct perf_counter *p = (const struct perf_counter *)t;
	const char *compare = compare_text(p->threshold.compare);
	const char *window = trigger_window_text(t);
	char value[NUMBER_TEXT_BYTES], limit[NUMBER_TEXT_BYTES];

	trigger_status_base(t, out);
	out->phase = phase_of(p);
	value_text(t->value, out->limit, value);
	number_text(out->limit, limit);
	switch (out->phase) {
	case TRIGGER_DEAD:
	case TRIGGER_WAITING_DATA:
		snprintf(out->text, sizeof(out->text), "%s, limit %s %s%s",
			 p->base.counts.seen ? "no such instance now" : "no value yet", compare,
			 limit, window);
		break;
	case TRIGGER_DISARMED:
		snprintf(out->text, sizeof(out->text),
			 "%s of %s %s, waiting to be false: %u of %u samples%s", value, compare,
			 limit, hold_progress(&p->misses), p->misses.need, window);
		break;
	case TRIGGER_HOLDING:
		snprintf(out->text, sizeof(out->text), "%s of %s %s, holding: %u of %u samples%s",
			 value, compare, limit, hold_progress(&p->hits), p->hits.need, window);
		break;
	case TRIGGER_ARMED:
		snprintf(out->text, sizeof(out->text), "%s of %s %s, armed%s", value, compare,
			 limit, window);
		break;
	}
}

static bool perf_counter_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	*out = (struct trigger_wish){.counter = ((const struct perf_counter *)t)->name};
	return i == 0;
}

const struct trigger_ops perf_counter_trigger = {
	.name = "stop-on-perf-counter",
	.usage = "CATEGORY:COUNTER:INSTANCE op NUMBER[;Key=Value]...   "
		 "(op: < > <= >=; NUMBER: 80, 0.5, 1e6, 512M; keys: " THRESHOLD_KEYS ")",
	.summary = "keep an incident when a counter is over or under a limit for MinSecForTrigger",
	.is_state = true,
	.open = perf_counter_open,
	.needs = perf_counter_needs,
	.feed = perf_counter_feed,
	.fired = trigger_fired,
	.status = perf_counter_status,
	.close = perf_counter_close,
	.sense = perf_counter_sense,
	.wish = perf_counter_wish,
	.save = trigger_save_limit,
	.load = trigger_load_limit,
};

const struct trigger_ops start_counter_trigger = {
	.name = "start-on-perf-counter",
	.usage = "CATEGORY:COUNTER:INSTANCE op NUMBER[;Key=Value]...",
	.summary = "arm the other rules when a counter is over or under a limit",
	.open = start_counter_open,
	.needs = perf_counter_needs,
	.feed = perf_counter_feed,
	.fired = trigger_fired,
	.status = perf_counter_status,
	.close = perf_counter_close,
};
