#include "triggers/gc_duration.h"

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

struct gc_duration {
	struct duration duration;
	enum measure measure;
};

/* ---- making ---------------------------------------------------------------------------------- */

static void gc_close(struct trigger *t)
{
	if (!t)
		return;
	duration_free((struct duration *)t);
	free(t);
}

static int take_measure(struct gc_duration *g, const struct spec *s, const struct spec_part *part,
			struct err *err)
{
	if (spec_value_is(part, "gc"))
		g->measure = MEASURE_GC;
	else if (spec_value_is(part, "pause"))
		g->measure = MEASURE_PAUSE;
	else
		return err_set(err, ERR_USAGE,
			       "'%.200s': Measure is gc (GC/Start to GC/Stop) or pause "
			       "(suspend start to restart end)",
			       s->text);
	return 0;
}

static int parse_keys(struct gc_duration *g, struct spec *s, struct err *err)
{
	bool taken, choice = g->measure == MEASURE_GC;
	struct spec_part part;
	int rc = 0;

	while (!rc && spec_next(s, &part, &rc, err)) {
		taken = choice && spec_key_is(&part, "Measure");
		rc = taken ? take_measure(g, s, &part, err)
			   : duration_key(&g->duration, s, &part, &taken, err);
		if (!rc && !taken)
			rc = spec_unknown_key(s, &part, choice ? "Measure, " DURATION_KEYS
							       : DURATION_KEYS, err);
	}
	return rc;
}

static const char *what_of(enum measure measure)
{
	static const char *const texts[] = {
		[MEASURE_GC] = "GC",
		[MEASURE_PAUSE] = "GC pause",
		[MEASURE_SUSPEND] = "GC suspension",
		[MEASURE_FINAL_PAUSE] = "final pause of a background GC",
		[MEASURE_GEN2] = "gen 2 GC",
	};

	return texts[measure];
}

static int gc_make(const struct trigger_ops *ops, const char *title, enum measure measure,
		   const char *spec, const struct trigger_env *env, struct trigger **out,
		   struct err *err)
{
	struct gc_duration *g = calloc(1, sizeof(*g));
	const uint32_t kinds = 1u << EVENT_GENERIC | 1u << EVENT_TICK | 1u << EVENT_PROCESS_EXIT;
	struct spec s;
	int rc;

	if (!g)
		return err_memory(err, "for the rule '%s'", spec);
	g->measure = measure;
	spec_begin(&s, spec);
	rc = trigger_init(&g->duration.base, ops, title, spec, kinds, err);
	if (!rc && measure != MEASURE_GEN2)
		rc = duration_head(&g->duration, &s, title, err);
	else if (!rc && s.head_len)
		rc = err_set(err, ERR_USAGE,
			     "%s: '%.60s' is unexpected; it takes true, false or ;Process=", title,
			     spec);
	if (!rc)
		rc = parse_keys(g, &s, err);
	g->duration.what = what_of(g->measure);
	if (!rc)
		rc = duration_ready(&g->duration, env, &s, err);
	if (rc) {
		gc_close(&g->duration.base);
		return rc;
	}
	if (measure == MEASURE_GEN2)
		g->duration.base.limit = NULL;
	*out = &g->duration.base;
	return 0;
}

static int gc_over_open(const char *spec, const struct trigger_env *env, struct trigger **out,
			struct err *err)
{
	return gc_make(&gc_over_trigger, "StopOnGCOverMsec", MEASURE_GC, spec, env, out, err);
}

static int gc_suspend_open(const char *spec, const struct trigger_env *env, struct trigger **out,
			   struct err *err)
{
	return gc_make(&gc_suspend_over_trigger, "StopOnGCSuspendOverMSec", MEASURE_SUSPEND, spec,
		       env, out, err);
}

static int bgc_open(const char *spec, const struct trigger_env *env, struct trigger **out,
		    struct err *err)
{
	return gc_make(&bgc_final_pause_over_trigger, "StopOnBGCFinalPauseOverMsec",
		       MEASURE_FINAL_PAUSE, spec, env, out, err);
}

static int gen2_open(const char *spec, const struct trigger_env *env, struct trigger **out,
		     struct err *err)
{
	return gc_make(&gen2_gc_trigger, "StopOnGen2GC", MEASURE_GEN2, spec, env, out, err);
}

static int gc_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	(void)t;
	return needs_provider(out, CLR_PROVIDER, CLR_KEYWORD_GC, CLR_LEVEL, err);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Decoders deliver an enumeration as its number or its name. 0 without the field. */
static int64_t number_of(const struct event *e, const char *field, const char *const *names)
{
	const struct event_field *f = event_field(e, field);
	int64_t i;

	if (!f)
		return 0;
	switch (f->type) {
	case FIELD_INT:
		return f->v.i;
	case FIELD_UINT:
		return (int64_t)f->v.u;
	case FIELD_DOUBLE:
		return 0;
	case FIELD_TEXT:
		break;
	}
	for (i = 0; names && names[i]; i++)
		if (text_same_fold(names[i], f->v.text))
			return i;
	return strtoll(f->v.text, NULL, 0);
}

static double ms_of(const struct event *e, const char *field)
{
	const struct event_field *f = event_field(e, field);

	return f && f->type == FIELD_DOUBLE ? f->v.d : f ? (double)number_of(e, field, NULL) : 0;
}

static int64_t gc_type(const struct event *e)
{
	static const char *const names[] = {"NonConcurrentGC", "BackgroundGC", "ForegroundGC",
					    NULL};

	return number_of(e, "Type", names);
}

static int64_t suspend_reason(const struct event *e)
{
	static const char *const names[] = {
		"SuspendOther", "SuspendForGC", "SuspendForAppDomainShutdown",
		"SuspendForCodePitching", "SuspendForShutdown", "SuspendForDebugger",
		"SuspendForGCPrep", NULL,
	};

	return number_of(e, "Reason", names);
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
	bool by_thread = false;

	pair_key_begin(key, e->process);
	pair_key_u64(key, (uint64_t)number_of(e, "ClrInstanceID", NULL));
	switch (g->measure) {
	case MEASURE_GC:
	case MEASURE_GEN2:
		pair_key_u64(key, (uint64_t)number_of(e, "Count", NULL));
		by_thread = !is_counted(e);
		break;
	case MEASURE_SUSPEND:
	case MEASURE_FINAL_PAUSE:
		by_thread = true;
		break;
	case MEASURE_PAUSE:
		by_thread = pauses_by_thread(e);
		break;
	}
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
		return gc_type(e) != GC_TYPE_BACKGROUND;
	case MEASURE_FINAL_PAUSE:
		return suspend_reason(e) == SUSPEND_FOR_GC_PREP;
	case MEASURE_GEN2:
		return gc_type(e) != GC_TYPE_BACKGROUND && number_of(e, "Depth", NULL) >= 2;
	default:
		return suspend_reason(e) == SUSPEND_FOR_GC ||
		       suspend_reason(e) == SUSPEND_FOR_GC_PREP;
	}
}

static const struct {
	const char *start, *stop;
} names_of[] = {
	[MEASURE_GC] = {"GC/Start", "GC/Stop"},
	[MEASURE_PAUSE] = {"GC/SuspendEEStart", "GC/RestartEEStop"},
	[MEASURE_SUSPEND] = {"GC/SuspendEEStart", "GC/SuspendEEStop"},
	[MEASURE_FINAL_PAUSE] = {"GC/SuspendEEStart", "GC/RestartEEStop"},
	[MEASURE_GEN2] = {"GC/Start", "GC/Stop"},
};

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
	*out = (struct trigger_wish){.provider = CLR_PROVIDER,
				     .event = i ? names_of[g->measure].stop
						: names_of[g->measure].start,
				     .processes = &g->duration.processes};
	return true;
}

/* A hit of StopOnGen2GC: its value is the generation. */
static void gen2_hit(struct gc_duration *g, const struct event *e, uint64_t n, struct buf *why,
		     struct sense *out)
{
	struct trigger *t = &g->duration.base;

	t->counts.matched += n;
	out->hit = out->measured = true;
	out->value = (double)number_of(e, "Depth", NULL);
	trigger_value(t, out->value, e->time_ns);
	buf_printf(why, "GC of generation %" PRId64, number_of(e, "Depth", NULL));
	process_text(e->process, why);
}

static void gen2_started(struct gc_duration *g, const struct event *e, struct buf *why,
			 struct sense *out)
{
	uint32_t before = g->duration.pairs.slots.used;
	enum pair_again again = again_of(e);
	struct pair_key key;

	key_of(g, e, &key);
	pairs_start(&g->duration.pairs, &key, e, again);
	if (again == PAIR_KEEP_FIRST && g->duration.pairs.slots.used == before)
		return;
	gen2_hit(g, e, 1, why, out);
	buf_puts(why, " began");
	if (event_field(e, "Count"))
		buf_printf(why, ", count %" PRId64, number_of(e, "Count", NULL));
}

static void started(struct gc_duration *g, const struct event *e, struct buf *why,
		    struct sense *out)
{
	struct pair_key key;

	if (!start_counts(g, e)) {
		g->duration.base.counts.dropped_filter++;
		return;
	}
	if (g->measure == MEASURE_GEN2) {
		gen2_started(g, e, why, out);
		return;
	}
	key_of(g, e, &key);
	pairs_start(&g->duration.pairs, &key, e, again_of(e));
}

/* Only the JVM source reports several pauses in one event. */
static bool may_be_group(const struct event *e)
{
	return strcmp(e->provider, JVM_PROVIDER) == 0;
}

/* Several pauses that the source could not report one by one, and what its fields say of them. */
static bool is_group(const struct event *e, struct duration_group *out)
{
	int64_t n = number_of(e, "Pauses", NULL);

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
		duration_group(&g->duration, e, &group, "pauses", "", why, out);
	} else if (g->measure == MEASURE_GEN2 && number_of(e, "Depth", NULL) >= 2) {
		gen2_hit(g, e, group.n, why, out);
		buf_printf(why, " began and ended %" PRIu64 " times, reported together", group.n);
	}
}

/* The number and generation of a collection, where the runtime tells them. */
static void extra_text(const struct event *e, char *out, size_t n)
{
	bool count = event_field(e, "Count") != NULL, generation = event_field(e, "Depth") != NULL;
	char numbers[2][40] = {"", ""};

	if (count)
		snprintf(numbers[0], sizeof(numbers[0]), "count %" PRId64,
			 number_of(e, "Count", NULL));
	if (generation)
		snprintf(numbers[1], sizeof(numbers[1]), "generation %" PRId64,
			 number_of(e, "Depth", NULL));
	snprintf(out, n, "%s%s%s", numbers[0], count && generation ? ", " : "", numbers[1]);
}

static void stopped(struct gc_duration *g, const struct event *e, struct buf *why,
		    struct sense *out)
{
	struct duration_group group;
	struct pair_key key;
	struct pair pair;
	char extra[80] = "";

	if (g->measure == MEASURE_GEN2) {
		key_of(g, e, &key);
		pairs_stop(&g->duration.pairs, &key, &pair);
		return;
	}
	if (g->measure == MEASURE_GC)
		extra_text(e, extra, sizeof(extra));
	key_of(g, e, &key);
	if (may_be_group(e) && is_group(e, &group) && group.n > 1) {
		if (pairs_stop(&g->duration.pairs, &key, &pair))
			duration_group(&g->duration, e, &group, "pauses", extra, why, out);
		else
			g->duration.base.counts.orphans++;   /* it fired while it was open */
	} else {
		duration_stop(&g->duration, &key, e, extra, why, out);
	}
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
	bool start = strcmp(e->name, names_of[g->measure].start) == 0;
	bool stop = !start && strcmp(e->name, names_of[g->measure].stop) == 0;
	bool together = !start && !stop && strcmp(e->name, "GC/Pauses") == 0;

	if ((!start && !stop && !together) || !e->provider || !collects(g->measure, e->provider) ||
	    (together && !may_be_group(e)) || !duration_wants(&g->duration, e))
		return;
	if (together)
		group_ended(g, e, why, out);
	else if (start)
		started(g, e, why, out);
	else
		stopped(g, e, why, out);
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

static void gen2_status(const struct trigger *t, struct trigger_status *out)
{
	trigger_status_base(t, out);
	snprintf(out->text, sizeof(out->text), "%" PRIu64 " collections of generation 2, %s%s",
		 t->counts.matched, t->counts.seen ? "armed" : "no collection yet",
		 trigger_window_text(t));
}

#define GC_OPS(name_, usage_, summary_, open_, status_, lasts_) { \
	.name = name_, .usage = usage_, .summary = summary_, .open = open_, .needs = gc_needs, \
	.feed = trigger_feed, .fired = trigger_fired, .status = status_, .close = gc_close, \
	.sense = gc_sense, .save = trigger_save_limit, .load = trigger_load_limit, \
	.wish = gc_wish, .lasts = lasts_, \
}

const struct trigger_ops gc_over_trigger = GC_OPS(
	"stop-on-gc-over-msec", "MS[;Measure=gc|pause][;Process=...][;InFlight=false][;Floor=...]",
	"keep an incident when a garbage collection, or its pause, takes longer than MS",
	gc_over_open, duration_status, NULL);
const struct trigger_ops gc_suspend_over_trigger = GC_OPS(
	"stop-on-gc-suspend-over-msec", "MS[;Process=...][;InFlight=false]",
	"keep an incident when suspending the program for a collection takes longer than MS",
	gc_suspend_open, duration_status, NULL);
const struct trigger_ops bgc_final_pause_over_trigger = GC_OPS(
	"stop-on-bgc-final-pause-over-msec", "MS[;Process=...][;InFlight=false]",
	"keep an incident when the final pause of a background collection takes longer than MS",
	bgc_open, duration_status, NULL);
const struct trigger_ops gen2_gc_trigger = GC_OPS(
	"stop-on-gen2-gc", "[;Process=...]",
	"keep an incident when a collection of generation 2 begins, background ones left out",
	gen2_open, gen2_status, gen2_lasts);
