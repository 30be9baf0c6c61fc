#include "triggers/perf_counter.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "triggers/rise.h"
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
	struct rise rise;                    /* its value is the change, then */
	double reading;                      /* the last value of the counter itself */
	double period_sec;
	struct hold hits, misses;            /* in a row: to fire, to be armed */
	bool armed;
	bool absent;                         /* the last sample had no data */
};

/* ---- parsing --------------------------------------------------------------------------------- */

static int check_name(const struct spec *s, const char *name, size_t len)
{
	const char *first = memchr(name, ':', len), *end = name + len;
	const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
	size_t i;

	if (!second)
		return spec_wrong(s, "'%.*s' is not CATEGORY:COUNTER:INSTANCE, like 'Processor:%% "
				  "Processor Time:_Total' or, for the whole machine, "
				  "'Memory:Available MBytes:'", (int)len, name);
	if (first == name)
		return spec_wrong(s, "the category before the first ':' is empty; write for "
				  "example 'Processor'");
	if (second == first + 1)
		return spec_wrong(s, "the counter between the two ':' is empty; write for example "
				  "'%% Processor Time'");
	if (len >= COUNTER_NAME_MAX)
		return err_set(s->err, ERR_USAGE, "'%.60s...': a counter name has at most %d "
			       "bytes, this one has %zu", s->text, COUNTER_NAME_MAX - 1, len);
	for (i = 0; i < len; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return err_set(s->err, ERR_USAGE, "'%.*s': the counter name has a control "
				       "character at byte %zu", (int)i, name, i + 1);
	return 0;
}

static bool period_is_allowed(double sec)
{
	return sec >= COUNTER_PERIOD_MIN_SEC && sec <= COUNTER_PERIOD_MAX_SEC;
}

static void perf_counter_close(struct trigger *t)
{
	free(((struct perf_counter *)t)->name);
}

/* The keys begin at the first ';' after the operator, as an instance may contain one. */
static size_t keys_at(const char *spec)
{
	size_t op = strlen(spec);

	while (op && spec[op] != '<' && spec[op] != '>')
		op--;
	return op + strcspn(spec + op, ";");
}

static int perf_counter_open(struct trigger *t, const struct trigger_env *env, struct err *err)
{
	struct perf_counter *p = (struct perf_counter *)t;
	struct threshold *limit = &p->threshold;
	const char *name = "";
	size_t len = 0;
	struct spec s;
	int rc;

	spec_begin(&s, t->text, err);
	s.head_len = keys_at(t->text);
	rc = rise_parse(&p->rise, &s);
	if (!rc)
		rc = threshold_parse(&s, limit, &name, &len);
	s.head_len = keys_at(t->text);
	if (!rc)
		rc = check_name(&s, name, len);
	if (!rc)
		rc = spec_keys(&s, threshold_key, limit, THRESHOLD_KEYS);
	if (!rc && !threshold_moves(limit) && t->ops != &start_counter_trigger)
		limit->decay_hours = env->decay_hours;
	if (!rc)
		rc = threshold_check(limit, &s);
	if (rc)
		return rc;
	p->period_sec = env->poll_sec != 0 ? env->poll_sec : 1;
	if (!(env->min_sec >= 0 && env->min_sec <= DBL_MAX))
		return err_set(err, ERR_USAGE,
			       "MinSecForTrigger must be a number of seconds, 0 or more, like 3");
	if (!period_is_allowed(p->period_sec))
		return err_set(err, ERR_USAGE, "the poll period must be between 0.1 and 86400 s");
	p->name = text_dup(name, len);
	if (!p->name)
		return spec_no_memory(&s);
	t->limit = limit;
	hold_init(&p->hits, env->min_sec, p->period_sec);
	p->misses = p->hits;
	p->armed = env->already_true_fires;
	return 0;
}

/* Whether it tells how much memory is in use, so that an incident is about who took it. */
static bool is_about_memory(const char *name)
{
	static const char *const heads[] = {
		"Memory:", "Paging File:", "Process:Working Set", "Process:Private Bytes",
		"Process:Virtual Bytes", "Cgroup:memory.", "Cgroup:% Memory Limit",
	};
	size_t i;

	for (i = 0; i < COUNT_OF(heads); i++)
		if (text_starts_fold(name, heads[i]))
			return true;
	return false;
}

static int perf_counter_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	const struct perf_counter *p = (const struct perf_counter *)t;

	out->memory |= is_about_memory(p->name);
	return needs_counter(out, p->name, (uint64_t)(p->period_sec * (double)NS_PER_SEC), false,
			     err);
}

int counter_monitor_parse(const char *spec, struct needs *out, struct err *err)
{
	uint64_t period_ns = MONITOR_PERIOD_NS;
	char name[COUNTER_NAME_MAX];
	const char *at = strrchr(spec, '@');
	size_t len = strlen(spec), digits = at ? strlen(at + 1) : 0;
	double sec = 0;
	struct spec s;
	int rc;

	spec_begin(&s, spec, err);
	if (digits && number_prefix(at + 1, digits, "0123456789.", &sec) == digits) {
		if (!period_is_allowed(sec))
			return spec_wrong(&s, "the period '%s' after '@' must be between 0.1 and "
					  "86400 s", at + 1);
		period_ns = (uint64_t)(sec * (double)NS_PER_SEC);
		len = (size_t)(at - spec);
	}
	rc = check_name(&s, spec, len);
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
	const char *unit = p->rise.percent ? " %" : "";
	char value[NUMBER_TEXT_BYTES], now[NUMBER_TEXT_BYTES], within[NUMBER_TEXT_BYTES];

	value_text(p->base.value, threshold_now(&p->threshold), value);
	number_text(p->reading, now);
	number_text((double)p->rise.within_ns / 1e9, within);
	if (p->rise.within_ns)
		buf_printf(why, "%s %s by %s%s to %s within %s s", p->name,
			   p->rise.falls ? "fell" : "rose", value + (*value == '-'), unit, now,
			   within);
	else
		buf_printf(why, "%s was %s", p->name, value);
	buf_printf(why, ", %s its limit of ", compare_side(p->threshold.compare));
	threshold_text(&p->threshold, why);
	buf_puts(why, unit);
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
static bool judge_sample(struct perf_counter *p, double value, uint64_t time_ns)
{
	if (!threshold_hit(&p->threshold, value)) {
		hold_reset(&p->hits);
		if (!p->armed && hold_add(&p->misses, time_ns))
			p->armed = true;
		return false;
	}
	hold_reset(&p->misses);
	if (!p->armed || p->base.in_window)
		threshold_follow(&p->threshold, value);
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
		rise_forget(&p->rise);
		return true;
	}
	t->counts.matched++;
	p->reading = e->value;
	trigger_value(t, p->rise.within_ns ? rise_change(&p->rise, e->value, e->time_ns) : e->value,
		      e->time_ns);
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
	if (!judge_sample(p, t->value, e->time_ns))
		return false;
	say_why(p, e->time_ns, why);
	t->in_window = true;
	threshold_fired(&p->threshold, t->value, e->time_ns);
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
	char value[NUMBER_TEXT_BYTES], limit[NUMBER_TEXT_BYTES], row[80] = "armed";

	out->phase = phase_of(p);
	value_text(t->value, out->limit, value);
	number_text(out->limit, limit);
	if (out->phase == TRIGGER_WAITING_DATA) {
		out->absent = t->counts.seen ? p->name : NULL;
		snprintf(out->text, sizeof(out->text), "%s, limit %s %s%s",
			 out->absent ? "no such instance now" : "no value yet", compare, limit,
			 trigger_window_text(t));
		return;
	}
	if (out->phase == TRIGGER_DISARMED)
		snprintf(row, sizeof(row), "waiting to be false: %u of %u samples",
			 hold_progress(&p->misses), p->misses.need);
	else if (out->phase == TRIGGER_HOLDING)
		snprintf(row, sizeof(row), "holding: %u of %u samples", hold_progress(&p->hits),
			 p->hits.need);
	snprintf(out->text, sizeof(out->text), "%s of %s %s, %s%s", value, compare, limit, row,
		 trigger_window_text(t));
}

static bool perf_counter_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	*out = (struct trigger_wish){.counter = ((const struct perf_counter *)t)->name};
	return i == 0;
}

#define COUNTER_OPS \
	.bytes = sizeof(struct perf_counter), .kinds = 1u << EVENT_COUNTER | 1u << EVENT_TICK, \
	.open = perf_counter_open, .needs = perf_counter_needs, .feed = perf_counter_feed, \
	.status = perf_counter_status, .close = perf_counter_close

const struct trigger_ops perf_counter_trigger = {
	.name = "stop-on-perf-counter",
	.usage = "CATEGORY:COUNTER:INSTANCE op NUMBER[;Key=Value]...   "
		 "(op: < > <= >=; NUMBER: 80, 0.5, 1e6, 512M, or a change: '>+20% in 5m'; keys: "
		 THRESHOLD_KEYS ")",
	.summary = "keep an incident when a counter is over or under a limit for MinSecForTrigger",
	.is_state = true,
	.saves_limit = true,
	.sense = perf_counter_sense,
	.wish = perf_counter_wish,
	COUNTER_OPS,
};

const struct trigger_ops start_counter_trigger = {
	.name = "start-on-perf-counter",
	.title = "StartOnPerfCounter",
	.usage = "CATEGORY:COUNTER:INSTANCE op NUMBER[;Key=Value]...",
	.summary = "arm the other rules when a counter is over or under a limit",
	COUNTER_OPS,
};
