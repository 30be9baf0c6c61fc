#include "triggers/event_match_private.h"

#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_MAX_MS 10000                   /* a source that is so late has lost its place */

/* Some events of the kernel have kinds of their own. */
static enum event_kind kind_of(const char *provider, const char *name)
{
	static const struct {
		const char *name;
		enum event_kind kind;
	} kinds[] = {
		{"Process/Start", EVENT_PROCESS_START}, {"Process/Stop", EVENT_PROCESS_EXIT},
		{"Thread/Start", EVENT_THREAD_START}, {"Thread/Stop", EVENT_THREAD_EXIT},
	};
	size_t i;

	for (i = 0; provider_is(provider, KERNEL_PROVIDER) && i < COUNT_OF(kinds); i++)
		if (text_same_fold(name, kinds[i].name))
			return kinds[i].kind;
	return EVENT_GENERIC;
}

/* ---- making ---------------------------------------------------------------------------------- */

static void event_match_close(struct trigger *t)
{
	struct event_match *m = (struct event_match *)t;

	while (m->nfilters)
		field_filter_close(&m->filters[--m->nfilters]);
	free(m->provider);
	free(m->start);
	free(m->stop);
	free(m->also);
	free(m->field);
	free(m->texts);
	duration_close(t);
}

static int event_match_open(struct trigger *t, const struct trigger_env *env, struct err *err)
{
	struct event_match *m = (struct event_match *)t;
	struct spec s;
	int rc;

	spec_begin(&s, t->text, err);
	m->keywords = UINT64_MAX;
	m->level = 4;
	rc = event_match_parse(m, &s);
	if (!rc)
		rc = duration_ready(&m->duration, env, m->stop != NULL, &s);
	if (rc)
		return rc;
	m->start_kind = kind_of(m->provider, m->start);
	m->stop_kind = m->stop ? kind_of(m->provider, m->stop) : EVENT_GENERIC;
	m->start_id = event_id_of(m->start);
	m->stop_id = m->stop ? event_id_of(m->stop) : -1;
	m->duration.what = m->start;
	t->kinds |= 1u << m->start_kind | 1u << m->stop_kind;
	return 0;
}

/* Join the filters of one field ("" = all, NULL = none); those that do not fit are left out. */
static void put_conditions(const struct event_match *m, const char *field,
			   char out[EVENT_FILTER_MAX])
{
	size_t used = 0;
	unsigned i;

	out[0] = '\0';
	for (i = 0; field && i < m->nfilters; i++) {
		const struct field_filter *f = &m->filters[i];
		int n;

		if (*field && !text_same_fold(field, f->field))
			continue;
		n = snprintf(out + used, EVENT_FILTER_MAX - used, "%s%s%s%s", used ? ";" : "",
			     f->field, field_op_text(f->op), f->value);
		if (n < 0 || (size_t)n >= EVENT_FILTER_MAX - used)
			out[used] = '\0';
		else
			used += (size_t)n;
	}
}

static int event_match_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	const struct event_match *m = (const struct event_match *)t;
	struct need_event e = {.stack = m->stack, .whose = t->processes};
	int rc = needs_provider(out, m->provider, m->keywords, m->level, err);

	if (!rc && (strlen(m->start) >= EVENT_NAME_MAX ||
		    (m->stop && strlen(m->stop) >= EVENT_NAME_MAX) ||
		    (m->also && strlen(m->also) >= EVENT_NAME_MAX)))
		return err_set(err, ERR_LIMIT, "'%.100s...': an event's name has at most %d bytes",
			       t->text, EVENT_NAME_MAX - 1);
	if (rc)
		return rc;
	out->command_lines |= process_filter_has_names(&t->processes);
	strcpy(e.provider, m->provider);
	strcpy(e.name, m->start);
	put_conditions(m, "", e.filter);
	if (m->context == CONTEXT_FIELD)
		snprintf(e.id_field, sizeof(e.id_field), "%s", m->field);
	snprintf(e.texts, sizeof(e.texts), "%s", m->texts ? m->texts : "");
	if (!threshold_moves(&m->duration.threshold))
		e.texts_ms = (uint32_t)fmin(m->duration.threshold.limit, TEXTS_MAX_MS);
	rc = needs_event(out, &e, err);
	if (rc || !m->stop)
		return rc;
	e.texts[0] = '\0';
	strcpy(e.name, m->stop);
	/* Start and stop of sys_enter have the same id, so its filter holds for both. */
	put_conditions(m, text_same_fold(m->start, "sys_enter") ? "id" : NULL, e.filter);
	rc = needs_event(out, &e, err);
	if (rc || !m->also)
		return rc;
	strcpy(e.name, m->also);
	return needs_event(out, &e, err);
}

static bool event_match_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	const struct event_match *m = (const struct event_match *)t;
	unsigned k;

	const char *events[] = {m->start, m->stop, m->also};

	if (i >= COUNT_OF(events) || !events[i])
		return false;
	*out = (struct trigger_wish){.provider = m->provider, .event = events[i],
				     .processes = &t->processes};
	for (k = 0; k < m->nfilters && i == 0; k++)
		out->fields[out->nfields++] = m->filters[k].field;
	if (m->context == CONTEXT_FIELD)
		out->fields[out->nfields++] = m->field;
	return true;
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool filters_pass(const struct event_match *m, const struct event *e)
{
	unsigned i;

	for (i = 0; i < m->nfilters; i++)
		if (!field_filter_pass(&m->filters[i], e))
			return false;
	return true;
}

/* "Provider/Event of NAME (pid N), thread T: Field=value, ...", cut at about 400 bytes. */
static void say_event(const struct event_match *m, const struct event *e, struct buf *why)
{
	char printed[FIELD_TEXT_BYTES];
	const char *text;
	uint32_t i;

	buf_printf(why, "%s%c%s", m->provider, event_match_is_probe(m) ? ':' : '/', m->start);
	origin_text(e, why);
	for (i = 0; i < e->nfields && why->len < 400; i++) {
		text = field_text(&e->fields[i], printed);
		buf_printf(why, "%s%s=%.100s%s", i ? ", " : ": ", e->fields[i].name, text,
			   strlen(text) > 100 ? "..." : "");
	}
}

/* Whether the event has this kind, this number or this name. */
static bool is_named(const struct event *e, const char *name, enum event_kind kind, int id)
{
	if (kind != EVENT_GENERIC && e->kind == kind)
		return true;
	if (e->kind != EVENT_GENERIC)
		return false;
	if (id >= 0 && e->flags & EVENT_FLAG_ID)
		return e->flags >> EVENT_ID_SHIFT == (uint32_t)id;
	return e->name && event_name_is(name, e->name);
}

/* Keep what sentences say of a start: "GET /orders/7". */
static void note_says(const struct event_match *m, const struct event *e, struct pair *pair)
{
	const char *const *name = m->duration.says;
	char printed[FIELD_TEXT_BYTES];
	const struct event_field *f;
	size_t used = 0;

	for (; name && *name && used < sizeof(pair->text); name++)
		if ((f = event_field(e, *name)) != NULL)
			used += (size_t)snprintf(pair->text + used, sizeof(pair->text) - used,
						 "%s%s", used ? " " : "", field_text(f, printed));
	if (used >= sizeof(pair->text))
		memcpy(pair->text + sizeof(pair->text) - 4, "...", 4);
}

static void sense_pair(struct event_match *m, const struct event *e, bool start, struct buf *why,
		       struct sense *out)
{
	struct pair *pair;
	struct pair_key key;

	if (!event_match_key(m, e, &key)) {
		m->duration.base.counts.orphans++;
		return;
	}
	if (!start) {
		duration_stop(&m->duration, &key, e, "", why, out);
		return;
	}
	pair = pairs_start(&m->duration.pairs, &key, e, PAIR_KEEP_LAST);
	if (pair)
		note_says(m, e, pair);
}

/* By its name. */
static enum pair_end end_of(const struct event_match *m, const struct event *e)
{
	bool start = is_named(e, m->start, m->start_kind, m->start_id), stop;

	stop = !start && m->stop &&
	       (is_named(e, m->stop, m->stop_kind, m->stop_id) ||
		(m->also && is_named(e, m->also, EVENT_GENERIC, event_id_of(m->also))));
	if (e->kind == EVENT_GENERIC && (start || stop) &&
	    (!e->provider || !provider_is(m->provider, e->provider)))
		return PAIR_NEITHER;
	return start ? PAIR_START : stop ? PAIR_STOP : PAIR_NEITHER;
}

enum pair_end event_match_end(const struct trigger *t, const struct event *e,
			      struct pair_key *key)
{
	const struct event_match *m = (const struct event_match *)t;
	enum pair_end end = end_of(m, e);

	if (!m->stop || end == PAIR_NEITHER || !process_filter_pass(&t->processes, e->process) ||
	    !event_match_key(m, e, key) || (end == PAIR_START && !filters_pass(m, e)))
		return PAIR_NEITHER;
	return end;
}

static void event_match_sense(struct trigger *t, const struct event *e, struct buf *why,
			      struct sense *out)
{
	struct event_match *m = (struct event_match *)t;
	enum pair_end end = end_of(m, e);
	bool start = end == PAIR_START;
	unsigned i;

	for (i = 0; e->kind == EVENT_TICK && i < m->nfilters; i++)
		regex_tick(m->filters[i].regex, e->time_ns);
	if (end != PAIR_NEITHER && duration_wants(&m->duration, e)) {
		if (start && !filters_pass(m, e)) {
			t->counts.dropped_filter++;
			return;
		}
		if (start && !m->stop) {
			trigger_matches(t, true, out);
			say_event(m, e, why);
			return;
		}
		sense_pair(m, e, start, why, out);
	}
	if (e->kind != EVENT_GENERIC)
		duration_other(&m->duration, e, why, out);
}

/* ---- status ---------------------------------------------------------------------------------- */

static void event_match_status(const struct trigger *t, struct trigger_status *out)
{
	const struct event_match *m = (const struct event_match *)t;
	unsigned i;

	if (m->stop)
		duration_status(t, out);
	for (i = 0; i < m->nfilters; i++) {
		if (!m->filters[i].regex || !regex_rest_ns(m->filters[i].regex))
			continue;
		out->phase = TRIGGER_RESTING;
		snprintf(out->text, sizeof(out->text),
			 "rests for %.0f s: the expression '%.60s' took over %u steps %u times",
			 (double)regex_rest_ns(m->filters[i].regex) / 1e9, m->filters[i].value,
			 REGEX_MATCH_LIMIT, REGEX_GIVE_UP);
		return;
	}
}

const struct trigger_ops event_match_trigger = {
	.name = "stop-on-etw-event",
	.title = "StopOnEtwEvent",
	.usage = "PROVIDER/EVENT[;FieldFilter=...][;TriggerMSec=...][;StopEvent=...]"
		 "[;StartStopID=...][;Process=...][;Keywords=...][;Level=...][;InFlight=true][;"
		 "Stack=true]",
	.summary = "keep an incident at an event, or when a start takes longer until its stop",
	.bytes = sizeof(struct event_match),
	.kinds = 1u << EVENT_GENERIC | 1u << EVENT_TICK | 1u << EVENT_PROCESS_EXIT,
	.saves_limit = true,
	.open = event_match_open,
	.needs = event_match_needs,
	.feed = trigger_feed,
	.status = event_match_status,
	.close = event_match_close,
	.sense = event_match_sense,
	.wish = event_match_wish,
};
