#include "triggers/gc_duration.h"

#include "base/array.h"
#include "base/text.h"
#include "triggers/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLR_LEVEL 4
#define GC_TYPE_BACKGROUND 1
#define SUSPEND_FOR_GC 1
#define SUSPEND_FOR_GC_PREP 6

enum measure { MEASURE_GC, MEASURE_PAUSE, MEASURE_SUSPEND, MEASURE_FINAL_PAUSE, MEASURE_GEN2 };

static const struct {
	const char *what, *start, *stop;
} measures[] = {
	[MEASURE_GC] = {"GC", "GC/Start", "GC/Stop"},
	[MEASURE_PAUSE] = {"GC pause", "GC/SuspendEEStart", "GC/RestartEEStop"},
	[MEASURE_SUSPEND] = {"GC suspension", "GC/SuspendEEStart", "GC/SuspendEEStop"},
	[MEASURE_FINAL_PAUSE] = {"final pause of a background GC", "GC/SuspendEEStart",
				 "GC/RestartEEStop"},
	[MEASURE_GEN2] = {"gen 2 GC", "GC/Start", "GC/Stop"},
};

struct gc_duration {
	struct duration duration;
	enum measure measure;
};

/* ---- making ---------------------------------------------------------------------------------- */

/* The measure of each kind; StopOnGCOverMsec has Measure= to change its own. */
static enum measure measure_of(const struct trigger_ops *ops)
{
	return ops == &gc_over_trigger               ? MEASURE_GC
	       : ops == &gc_suspend_over_trigger      ? MEASURE_SUSPEND
	       : ops == &bgc_final_pause_over_trigger ? MEASURE_FINAL_PAUSE
						      : MEASURE_GEN2;
}

static int take_key(void *rule, struct spec *s)
{
	static const char *const names[] = {[MEASURE_GC] = "gc", [MEASURE_PAUSE] = "pause"};
	struct gc_duration *g = rule;
	int measure;

	if (g->duration.base.ops != &gc_over_trigger || !spec_key_is(s, "Measure"))
		return duration_key(&g->duration, s);
	measure = spec_choice(s, names, COUNT_OF(names));
	if (measure < 0)
		return spec_wrong(s, "Measure is gc (GC/Start to GC/Stop) or pause (suspend start "
				  "to restart end)");
	g->measure = (enum measure)measure;
	return 0;
}

static int gc_open(struct trigger *t, const struct trigger_env *env, struct err *err)
{
	struct gc_duration *g = (struct gc_duration *)t;
	struct spec s;
	int rc = 0;

	g->measure = measure_of(t->ops);
	spec_begin(&s, t->text, err);
	if (g->measure != MEASURE_GEN2)
		rc = duration_head(&g->duration, &s);
	else if (s.head_len)
		rc = err_set(err, ERR_USAGE,
			     "%s: '%.60s' is unexpected; it takes true, false or ;Process=",
			     t->ops->title, t->text);
	if (!rc)
		rc = spec_keys(&s, take_key, g,
			       t->ops == &gc_over_trigger ? "Measure, " DURATION_KEYS
							  : DURATION_KEYS);
	g->duration.what = measures[g->measure].what;
	return rc ? rc : duration_ready(&g->duration, env, g->measure != MEASURE_GEN2, &s);
}

static int gc_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	(void)t;
	return needs_provider(out, CLR_PROVIDER, CLR_KEYWORD_GC, CLR_LEVEL, err);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Decoders deliver a value of the enumerations Type and Reason as its number or its name. */
static int64_t number_of_name(const char *name)
{
	static const struct {
		const char *name;
		int64_t value;
	} names[] = {
		{"NonConcurrentGC", 0}, {"BackgroundGC", GC_TYPE_BACKGROUND}, {"ForegroundGC", 2},
		{"SuspendOther", 0}, {"SuspendForGC", SUSPEND_FOR_GC},
		{"SuspendForAppDomainShutdown", 2}, {"SuspendForCodePitching", 3},
		{"SuspendForShutdown", 4}, {"SuspendForDebugger", 5},
		{"SuspendForGCPrep", SUSPEND_FOR_GC_PREP},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(names); i++)
		if (text_same_fold(names[i].name, name))
			return names[i].value;
	return strtoll(name, NULL, 0);
}

/* 0 without the field. */
static int64_t number_of(const struct event *e, const char *field)
{
	const struct event_field *f = event_field(e, field);

	if (!f || f->type == FIELD_DOUBLE)
		return 0;
	if (f->type == FIELD_TEXT)
		return number_of_name(f->v.text);
	return f->type == FIELD_INT ? f->v.i : (int64_t)f->v.u;
}

static double ms_of(const struct event *e, const char *field)
{
	const struct event_field *f = event_field(e, field);

	return f && f->type == FIELD_DOUBLE ? f->v.d : (double)number_of(e, field);
}

static bool is_counted(const struct event *e)
{
	return event_field(e, "Count") != NULL;
}

/* V8 and CPython collect on one thread (a V8 isolate has its own); others stop all threads. */
static bool pauses_by_thread(const struct event *e)
{
	return strcmp(e->provider, V8_PROVIDER) == 0 || strcmp(e->provider, CPYTHON_PROVIDER) == 0;
}

/* A thread identifies a collection that has no number. */
static void key_of(const struct gc_duration *g, const struct event *e, struct pair_key *key)
{
	bool by_count = g->measure == MEASURE_GC || g->measure == MEASURE_GEN2;
	bool by_thread = by_count                      ? !is_counted(e)
			 : g->measure == MEASURE_PAUSE ? pauses_by_thread(e)
						       : true;

	pair_key_begin(key, e->process);
	pair_key_u64(key, (uint64_t)number_of(e, "ClrInstanceID"));
	if (by_count)
		pair_key_u64(key, (uint64_t)number_of(e, "Count"));
	if (by_thread)
		pair_key_u64(key, e->thread ? e->thread->tid : 0);
}

/*
 * What to do with a start whose key is open already. With a number it is the same collection,
 * reported twice (.NET Framework 4.5). Without, it is the next one: the end of the first was lost,
 * and the end of the second must not be taken for it.
 */
static enum pair_again again_of(const struct event *e)
{
	return is_counted(e) || text_same_fold(e->provider, CLR_PROVIDER) ? PAIR_KEEP_FIRST
									  : PAIR_KEEP_LAST;
}

/* Whether an event that may start something starts what this rule measures. */
static bool start_counts(const struct gc_duration *g, const struct event *e)
{
	switch (g->measure) {
	case MEASURE_GC:
		return number_of(e, "Type") != GC_TYPE_BACKGROUND;
	case MEASURE_FINAL_PAUSE:
		return number_of(e, "Reason") == SUSPEND_FOR_GC_PREP;
	case MEASURE_GEN2:
		return number_of(e, "Type") != GC_TYPE_BACKGROUND && number_of(e, "Depth") >= 2;
	default:
		return number_of(e, "Reason") == SUSPEND_FOR_GC ||
		       number_of(e, "Reason") == SUSPEND_FOR_GC_PREP;
	}
}

/* The collection has not stopped yet. */
static bool gen2_lasts(const struct trigger *t, uint64_t fired_ns)
{
	return pairs_has_start(&((const struct gc_duration *)t)->duration.pairs, fired_ns);
}

static bool gc_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	const struct gc_duration *g = (const struct gc_duration *)t;

	if (i > 1 || g->duration.off)
		return false;
	*out = (struct trigger_wish){.provider = CLR_PROVIDER, .processes = &t->processes,
				     .event = i ? measures[g->measure].stop
						: measures[g->measure].start};
	return true;
}

/* A hit of StopOnGen2GC: its value is the generation. */
static void gen2_hit(struct trigger *t, const struct event *e, uint64_t n, struct buf *why,
		     struct sense *out)
{
	t->counts.matched += n;
	out->hit = out->measured = true;
	out->value = (double)number_of(e, "Depth");
	trigger_value(t, out->value, e->time_ns);
	buf_printf(why, "GC of generation %" PRId64, number_of(e, "Depth"));
	process_text(e->process, why);
}

static void gc_started(struct gc_duration *g, const struct event *e, struct buf *why,
		    struct sense *out)
{
	struct pairs *pairs = &g->duration.pairs;
	uint32_t before = pairs->slots.used;
	enum pair_again again = again_of(e);
	struct pair_key key;

	if (!start_counts(g, e)) {
		g->duration.base.counts.dropped_filter++;
		return;
	}
	key_of(g, e, &key);
	pairs_start(pairs, &key, e, again);
	if (g->measure != MEASURE_GEN2 || (again == PAIR_KEEP_FIRST && pairs->slots.used == before))
		return;
	gen2_hit(&g->duration.base, e, 1, why, out);
	buf_puts(why, " began");
	if (is_counted(e))
		buf_printf(why, ", count %" PRId64, number_of(e, "Count"));
}

/* Only the JVM source reports several pauses in one event. */
static bool may_be_group(const struct event *e)
{
	return strcmp(e->provider, JVM_PROVIDER) == 0;
}

/* Several pauses that the source could not report one by one, and what its fields say of them. */
static bool is_group(const struct event *e, struct duration_group *out)
{
	int64_t n = number_of(e, "Pauses");

	if (n < 1)
		return false;
	out->n = (uint64_t)n;
	out->sum_ms = ms_of(e, "PauseMSec");
	out->least_ms = out->sum_ms / (double)n;
	if (ms_of(e, "PauseMinMSec") > out->least_ms)
		out->least_ms = ms_of(e, "PauseMinMSec");
	return true;
}

/* GC/Pauses: several began and ended between two looks. */
static void group_ended(struct gc_duration *g, const struct event *e, struct buf *why,
			struct sense *out)
{
	struct duration_group group;

	if (!is_group(e, &group))
		return;
	if (g->measure == MEASURE_GC || g->measure == MEASURE_PAUSE) {
		duration_group(&g->duration, e, &group, "", why, out);
	} else if (g->measure == MEASURE_GEN2 && number_of(e, "Depth") >= 2) {
		gen2_hit(&g->duration.base, e, group.n, why, out);
		buf_printf(why, " began and ended %" PRIu64 " times, reported together", group.n);
	}
}

/* The number and generation of a collection, where the runtime tells them. */
static void extra_text(const struct event *e, char *out, size_t n)
{
	bool has_depth = event_field(e, "Depth") != NULL;
	int used = 0;

	*out = '\0';
	if (is_counted(e))
		used = snprintf(out, n, "count %" PRId64, number_of(e, "Count"));
	if (has_depth)
		snprintf(out + used, n - (size_t)used, "%sgeneration %" PRId64, used ? ", " : "",
			 number_of(e, "Depth"));
}

static void gc_stopped(struct gc_duration *g, const struct event *e, struct buf *why,
		    struct sense *out)
{
	struct duration_group group;
	struct pair_key key;
	struct pair pair;
	char extra[80] = "";

	key_of(g, e, &key);
	if (g->measure == MEASURE_GC)
		extra_text(e, extra, sizeof(extra));
	if (g->measure == MEASURE_GEN2)
		pairs_stop(&g->duration.pairs, &key, &pair);
	else if (!may_be_group(e) || !is_group(e, &group) || group.n == 1)
		duration_stop(&g->duration, &key, e, extra, why, out);
	else if (pairs_stop(&g->duration.pairs, &key, &pair))
		duration_group(&g->duration, e, &group, extra, why, out);
	else
		g->duration.base.counts.orphans++;   /* it fired while it was open */
}

/* Runtimes other than .NET have pauses only, delivered as collections, and no suspensions. */
static bool collects(enum measure measure, const char *provider)
{
	if (text_same_fold(provider, CLR_PROVIDER))
		return true;
	return measure != MEASURE_SUSPEND && measure != MEASURE_FINAL_PAUSE &&
	       (strcmp(provider, JVM_PROVIDER) == 0 || strcmp(provider, CPYTHON_PROVIDER) == 0 ||
		strcmp(provider, V8_PROVIDER) == 0);
}

static void gc_event(struct gc_duration *g, const struct event *e, struct buf *why,
		     struct sense *out)
{
	bool start = strcmp(e->name, measures[g->measure].start) == 0;
	bool stop = !start && strcmp(e->name, measures[g->measure].stop) == 0;
	bool together = !start && !stop && strcmp(e->name, "GC/Pauses") == 0;

	if ((!start && !stop && !together) || !e->provider || !collects(g->measure, e->provider) ||
	    (together && !may_be_group(e)) || !duration_wants(&g->duration, e))
		return;
	if (together)
		group_ended(g, e, why, out);
	else if (start)
		gc_started(g, e, why, out);
	else
		gc_stopped(g, e, why, out);
}

static void gc_sense(struct trigger *t, const struct event *e, struct buf *why, struct sense *out)
{
	struct gc_duration *g = (struct gc_duration *)t;

	/* Most events are others' and leave by this quick check. */
	if (e->kind != EVENT_GENERIC)
		duration_other(&g->duration, e, why, out);
	else if (e->name && e->name[0] == 'G' && e->name[1] == 'C')
		gc_event(g, e, why, out);
}

static void gc_status(const struct trigger *t, struct trigger_status *out)
{
	if (t->ops != &gen2_gc_trigger)
		duration_status(t, out);
	else
		snprintf(out->text, sizeof(out->text),
			 "%" PRIu64 " collections of generation 2, %s%s", t->counts.matched,
			 t->counts.seen ? "armed" : "no collection yet", trigger_window_text(t));
}

#define GC_OPS \
	.bytes = sizeof(struct gc_duration), \
	.kinds = 1u << EVENT_GENERIC | 1u << EVENT_TICK | 1u << EVENT_PROCESS_EXIT, \
	.saves_limit = true, .open = gc_open, .needs = gc_needs, .feed = trigger_feed, \
	.status = gc_status, .close = duration_close, .sense = gc_sense, .wish = gc_wish

const struct trigger_ops gc_over_trigger = {
	.name = "stop-on-gc-over-msec", .title = "StopOnGCOverMsec",
	.usage = "MS[;Measure=gc|pause][;Process=...][;InFlight=false][;Floor=...]",
	.summary = "keep an incident when a garbage collection, or its pause, takes longer than MS",
	GC_OPS,
};
const struct trigger_ops gc_suspend_over_trigger = {
	.name = "stop-on-gc-suspend-over-msec", .title = "StopOnGCSuspendOverMSec",
	.usage = "MS[;Process=...][;InFlight=false]",
	.summary = "keep an incident when suspending the program for a collection takes longer "
		   "than MS",
	GC_OPS,
};
const struct trigger_ops bgc_final_pause_over_trigger = {
	.name = "stop-on-bgc-final-pause-over-msec", .title = "StopOnBGCFinalPauseOverMsec",
	.usage = "MS[;Process=...][;InFlight=false]",
	.summary = "keep an incident when the final pause of a background collection takes longer "
		   "than MS",
	GC_OPS,
};
const struct trigger_ops gen2_gc_trigger = {
	.name = "stop-on-gen2-gc", .title = "StopOnGen2GC", .usage = "[;Process=...]",
	.summary = "keep an incident when a collection of generation 2 begins, background ones "
		   "left out",
	.lasts = gen2_lasts,
	GC_OPS,
};
