#include "triggers/event_match.h"

#include "base/text.h"
#include "triggers/duration.h"
#include "triggers/field_filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum context { CONTEXT_DERIVED, CONTEXT_THREAD, CONTEXT_ACTIVITY, CONTEXT_FIELD };

struct event_match {
	struct duration duration;
	char *spec;                          /* as it works: of a preset, what that stands for */
	char *provider, *start, *stop;       /* stop NULL: single events */
	char *field;                         /* CONTEXT_FIELD */
	enum context context;
	enum event_kind start_kind, stop_kind;
	int start_id, stop_id;               /* of EventID(n); -1 = by name */
	uint64_t keywords;
	uint8_t level;
	bool stack;
	unsigned nfilters;
	struct field_filter filters[FIELD_FILTERS_MAX];
	uint64_t without_field;              /* starts and stops that lack the field of StartStopID */
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Providers that are known by several names. Sources: triggers.md sections 4 and 6. */
static const char *const same_providers[][2] = {
	{"Windows Kernel Trace", KERNEL_PROVIDER},
	{"{9e814aad-3204-11d2-9a82-006008a86939}", KERNEL_PROVIDER},
	{"{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}", "Microsoft-Windows-DotNETRuntime"},
	{"{a669021c-c450-4609-a035-5af59af4df18}", "Microsoft-Windows-DotNETRuntimeRundown"},
	{"{763fd754-7086-4dfe-95eb-c01a46faf4ca}", "Microsoft-Windows-DotNETRuntimePrivate"},
	{"{de4649c9-15e8-4fea-9d85-1cdda520c334}", "Microsoft-Windows-IIS"},
};

static const char *without_braces(const char *guid, size_t *len)
{
	*len = strlen(guid);
	if (*len == 38 && guid[0] == '{')
		guid++, *len -= 2;
	return guid;
}

static bool same_guid(const char *a, const char *b)
{
	size_t na, nb, i;

	a = without_braces(a, &na);
	b = without_braces(b, &nb);
	if (na != 36 || nb != 36)
		return false;
	for (i = 0; i < na; i++)
		if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i]))
			return false;
	return true;
}

bool provider_is(const char *wanted, const char *provider)
{
	size_t i;

	if (text_same_fold(wanted + (*wanted == '*'), provider) || same_guid(wanted, provider))
		return true;
	for (i = 0; i < sizeof(same_providers) / sizeof(same_providers[0]); i++) {
		const char *const *same = same_providers[i];

		if ((text_same_fold(wanted, same[0]) || same_guid(wanted, same[0]) ||
		     text_same_fold(wanted, same[1])) &&
		    (text_same_fold(provider, same[0]) || same_guid(provider, same[0]) ||
		     text_same_fold(provider, same[1])))
			return true;
	}
	return false;
}

int event_id_of(const char *name)
{
	unsigned long id;
	char *end;

	if (strncasecmp(name, "EventID(", 8) != 0 || !isdigit((unsigned char)name[8]))
		return -1;
	id = strtoul(name + 8, &end, 10);
	return strcmp(end, ")") == 0 && id <= UINT16_MAX ? (int)id : -1;
}

/*
 * Task/Info is the same as Task: an opcode that says nothing. MyRequestStart, as the method of an EventSource
 * is called, is the same as MyRequest/Start, as its event is.
 */
bool event_name_is(const char *wanted, const char *name)
{
	size_t n = strlen(wanted), m = strlen(name), task = strcspn(name, "/");

	if (text_same_fold(wanted, name))
		return true;
	if (m == n + 1 && task < n && strncasecmp(wanted, name, task) == 0 &&
	    (text_same_fold(name + task, "/Start") || text_same_fold(name + task, "/Stop")))
		return text_same_fold(wanted + task, name + task + 1);
	if (m == n + 5)
		return strncasecmp(wanted, name, n) == 0 && text_same_fold(name + n, "/Info");
	return n == m + 5 && strncasecmp(wanted, name, m) == 0 && text_same_fold(wanted + m, "/Info");
}

/* The kernel's events that this program has as kinds of their own. */
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

	for (i = 0; provider_is(provider, KERNEL_PROVIDER) && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (text_same_fold(name, kinds[i].name))
			return kinds[i].kind;
	return EVENT_GENERIC;
}

/* ---- making ---------------------------------------------------------------------------------- */

void event_match_close(struct trigger *t)
{
	struct event_match *m = (struct event_match *)t;

	if (!m)
		return;
	while (m->nfilters)
		field_filter_close(&m->filters[--m->nfilters]);
	free(m->spec);
	free(m->provider);
	free(m->start);
	free(m->stop);
	free(m->field);
	duration_free(&m->duration);
	free(m);
}

static int no_memory(const struct spec *s, struct err *err)
{
	return err_set(err, ERR_MEMORY, "no memory for the rule '%.200s'", s->text);
}

/* "uprobe:/path/of/program:symbol", "usdt:/path:provider:name": what ends that provider's name. */
static const char *probe_colon(const char *text, size_t len)
{
	static const char *const providers[] = {"uprobe:", "usdt:"};
	size_t i, n;

	for (i = 0; i < sizeof(providers) / sizeof(providers[0]); i++) {
		n = strlen(providers[i]);
		if (len > n && strncasecmp(text, providers[i], n) == 0)
			return text + n - 1;
	}
	return NULL;
}

static bool is_probe(const struct event_match *m)
{
	return text_same_fold(m->provider, "uprobe") || text_same_fold(m->provider, "usdt");
}

static int parse_head(struct event_match *m, const struct spec *s, struct err *err)
{
	const char *colon = probe_colon(s->text, s->head_len);
	const char *slash = colon ? colon : memchr(s->text, '/', s->head_len);
	size_t n = slash ? (size_t)(slash - s->text) : 0;

	if (!n || n + 1 == s->head_len)
		return err_set(err, ERR_USAGE, "'%.200s': '%.*s' is not PROVIDER/EVENT, like "
			       "Microsoft-Windows-DotNETRuntime/GC/Start", s->text,
			       s->head_len > 100 ? 100 : (int)s->head_len, s->text);
	if (n >= PROVIDER_NAME_MAX)
		return err_set(err, ERR_USAGE, "'%.100s...': a provider's name has at most %d bytes",
			       s->text, PROVIDER_NAME_MAX - 1);
	m->provider = text_dup(s->text, n);
	m->start = text_dup(slash + 1, s->head_len - n - 1);
	return m->provider && m->start ? 0 : no_memory(s, err);
}

static int take_keywords(struct event_match *m, const struct spec *s, const struct spec_part *part,
			 struct err *err)
{
	char copy[24] = "", *end = copy;

	if (part->value_len < sizeof(copy))
		memcpy(copy, part->value, part->value_len);
	if (isxdigit((unsigned char)*copy))
		m->keywords = strtoull(copy, &end, 16);
	if (end == copy || *end || (end - copy) > 18)
		return err_set(err, ERR_USAGE, "'%.200s': Keywords '%.*s' is no hexadecimal number, like "
			       "0x8000", s->text, part->value_len > 60 ? 60 : (int)part->value_len,
			       part->value);
	return 0;
}

static int take_level(struct event_match *m, const struct spec *s, const struct spec_part *part,
		      struct err *err)
{
	static const char *const names[] = {"Always", "Critical", "Error", "Warning", "Informational",
					    "Verbose"};
	uint8_t i;

	for (i = 0; i < 6; i++) {
		if (!spec_value_is(part, names[i]) &&
		    !(part->value_len == 1 && part->value[0] == (char)('0' + i)))
			continue;
		m->level = i;
		return 0;
	}
	return err_set(err, ERR_USAGE, "'%.200s': Level is 0 to 5, or Always, Critical, Error, Warning, "
		       "Informational or Verbose", s->text);
}

static int take_filter(struct event_match *m, const struct spec *s, const struct spec_part *part,
		       struct err *err)
{
	int rc;

	if (m->nfilters == FIELD_FILTERS_MAX)
		return err_set(err, ERR_USAGE, "'%.200s': over %u filters", s->text, FIELD_FILTERS_MAX);
	rc = field_filter_open(s->text, part->value, part->value_len, &m->filters[m->nfilters], err);
	if (!rc)
		m->nfilters++;
	return rc;
}

static int take_stop(struct event_match *m, const struct spec *s, const struct spec_part *part,
		     struct err *err)
{
	size_t n = strlen(m->provider), skip = 0;

	/* The guide writes PROVIDER/ before it. */
	if (part->value_len > n && (part->value[n] == '/' || (part->value[n] == ':' && is_probe(m))) &&
	    strncasecmp(part->value, m->provider, n) == 0)
		skip = n + 1;
	if (part->value_len == skip)
		return err_set(err, ERR_USAGE, "'%.200s': StopEvent is empty", s->text);
	free(m->stop);
	m->stop = text_dup(part->value + skip, part->value_len - skip);
	return m->stop ? 0 : no_memory(s, err);
}

static int take_context(struct event_match *m, const struct spec *s, const struct spec_part *part,
			struct err *err)
{
	if (spec_value_is(part, "ThreadID")) {
		m->context = CONTEXT_THREAD;
	} else if (spec_value_is(part, "ActivityID")) {
		m->context = CONTEXT_ACTIVITY;
	} else if (part->value_len) {
		m->context = CONTEXT_FIELD;
		free(m->field);
		m->field = text_dup(part->value, part->value_len);
		return m->field ? 0 : no_memory(s, err);
	} else {
		return err_set(err, ERR_USAGE, "'%.200s': StartStopID is a field's name, ThreadID or "
			       "ActivityID", s->text);
	}
	return 0;
}

static int take_trigger_ms(struct event_match *m, const struct spec *s, const struct spec_part *part,
			   struct err *err)
{
	double ms = 0;
	int rc = spec_number(s, "TriggerMSec", part->value, part->value_len, &ms, err);

	if (!rc && ms < 0)
		rc = err_set(err, ERR_USAGE, "'%.200s': TriggerMSec is below zero", s->text);
	if (!rc)
		m->duration.threshold.limit = ms;
	return rc;
}

static int take_stack(struct event_match *m, const struct spec *s, const struct spec_part *part,
		      struct err *err)
{
	return spec_bool(s, part, &m->stack, err);
}

static int take_key(struct event_match *m, const struct spec *s, const struct spec_part *part,
		    struct err *err)
{
	static const struct {
		const char *key;
		int (*take)(struct event_match *m, const struct spec *s, const struct spec_part *part,
			    struct err *err);
	} keys[] = {
		{"Keywords", take_keywords}, {"Level", take_level}, {"FieldFilter", take_filter},
		{"StopEvent", take_stop}, {"StartStopID", take_context},
		{"TriggerMSec", take_trigger_ms}, {"Stack", take_stack},
		{"Verbose", NULL}, {"BufferSizeMB", NULL},
	};
	bool taken;
	size_t i;
	int rc;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (spec_key_is(part, keys[i].key))
			return keys[i].take ? keys[i].take(m, s, part, err) : 0;
	}
	rc = duration_key(&m->duration, s, part, &taken, err);
	if (!rc && !taken)
		rc = spec_unknown_key(s, part, "Keywords, Level, FieldFilter, TriggerMSec, StopEvent, "
				      "StartStopID, Stack, Verbose, BufferSizeMB, " DURATION_KEYS, err);
	return rc;
}

/*
 * Starts and stops of Linux, which a thread calls one within the other: the names of tracepoints, of
 * probes that programs bring with them, and of a function its return.
 */
static char *linux_stop(const struct event_match *m)
{
	static const struct {
		const char *start, *stop, *provider;   /* NULL = any */
	} ends[] = {
		{"__start", "__done", "usdt"}, {"__begin", "__end", "usdt"}, {"__entry", "__return", "usdt"},
		{"_entry", "_exit", NULL}, {"_enter", "_exit", NULL}, {"_begin", "_end", NULL},
	};
	size_t n = strlen(m->start), i, from = SIZE_MAX;
	struct buf stop = {0};
	const char *to = "";
	char *copy;

	if (strncasecmp(m->start, "sys_enter_", 10) == 0) {
		buf_printf(&stop, "sys_exit_%s", m->start + 10);
	} else if (text_same_fold(m->provider, "uprobe")) {
		buf_printf(&stop, "%s%%return", m->start);
	} else {
		for (i = 0; from == SIZE_MAX && i < sizeof(ends) / sizeof(ends[0]); i++) {
			size_t k = strlen(ends[i].start);

			if (n < k || !text_same_fold(m->start + n - k, ends[i].start) ||
			    (ends[i].provider && !text_same_fold(m->provider, ends[i].provider)))
				continue;
			from = n - k;
			to = ends[i].stop;
		}
		if (from == SIZE_MAX)
			return NULL;
		buf_printf(&stop, "%.*s%s", (int)from, m->start, to);
	}
	copy = stop.failed ? NULL : text_dup(buf_text(&stop), SIZE_MAX);
	buf_free(&stop);
	return copy;
}

/* The stop of a start, when it was not said. */
static int derive_stop(struct event_match *m, const struct spec *s, struct err *err)
{
	size_t n = strlen(m->start);
	int id = event_id_of(m->start);
	char text[40];

	m->stop = linux_stop(m);
	if (m->stop) {
		if (m->context == CONTEXT_DERIVED)
			m->context = CONTEXT_THREAD;
		return 0;
	}
	if (n >= 5 && text_same_fold(m->start + n - 5, "Start")) {
		m->stop = text_dup(m->start, n);
		if (m->stop)
			memcpy(m->stop + n - 5, isupper((unsigned char)m->start[n - 5]) ? "Stop" : "stop", 5);
		return m->stop ? 0 : no_memory(s, err);
	}
	if (id >= 0) {
		snprintf(text, sizeof(text), "EventID(%d)", id + 1);
		m->stop = text_dup(text, SIZE_MAX);
		return m->stop ? 0 : no_memory(s, err);
	}
	return err_set(err, ERR_USAGE, "'%.200s': TriggerMSec needs a stop, and the name of '%.100s' does "
		       "not tell it; add ;StopEvent=NAME", s->text, m->start);
}

/* Filters that exclude each other: the rule would never fire. */
static int check_filters(const struct event_match *m, const struct spec *s, struct err *err)
{
	static const char *const ops[] = {
		[FIELD_EQUAL] = "=", [FIELD_NOT_EQUAL] = "!=", [FIELD_UNDER] = "<", [FIELD_OVER] = ">",
		[FIELD_UNDER_EQUAL] = "<=", [FIELD_OVER_EQUAL] = ">=", [FIELD_MATCHES] = "~",
	};
	unsigned i, k;

	for (i = 0; i < m->nfilters; i++) {
		for (k = i + 1; k < m->nfilters; k++) {
			const struct field_filter *a = &m->filters[i], *b = &m->filters[k];

			if (field_filters_exclude(a, b))
				return err_set(err, ERR_USAGE, "'%.200s': no event passes both %.40s%s%.40s and "
					       "%.40s%s%.40s, so it could never fire", s->text, a->field,
					       ops[a->op], a->value, b->field, ops[b->op], b->value);
		}
	}
	return 0;
}

static int check_stop(const struct event_match *m, const struct spec *s, struct err *err)
{
	if (event_name_is(m->start, m->stop))
		return err_set(err, ERR_USAGE, "'%.200s': StopEvent is the start itself", s->text);
	return 0;
}

static int parse_spec(struct event_match *m, struct spec *s, struct err *err)
{
	struct spec_part part;
	bool pairs;
	int rc = parse_head(m, s, err);

	threshold_init(&m->duration.threshold, COMPARE_OVER, 0);
	while (!rc && spec_next(s, &part, &rc, err))
		rc = take_key(m, s, &part, err);
	if (!rc)
		rc = check_filters(m, s, err);
	if (rc)
		return rc;
	pairs = m->duration.threshold.limit > 0;
	if (!pairs) {
		free(m->stop);               /* as in PerfView: ignored for single events */
		m->stop = NULL;
		if (threshold_moves(&m->duration.threshold) || m->duration.in_flight)
			return err_set(err, ERR_USAGE, "'%.200s': a limit that moves and InFlight need "
				       "TriggerMSec, which is 0", s->text);
		return 0;
	}
	if (!m->stop)
		rc = derive_stop(m, s, err);
	return rc ? rc : check_stop(m, s, err);
}

int event_match_open(const struct trigger_ops *ops, const char *title, const char *shown,
		     const char *text, const char *what, const struct trigger_env *env,
		     struct trigger **out, struct err *err)
{
	struct event_match *m = calloc(1, sizeof(*m));
	struct trigger_env own = *env;
	struct spec s;
	uint32_t kinds;
	int rc;

	spec_begin(&s, text);
	if (!m)
		return no_memory(&s, err);
	m->keywords = UINT64_MAX;
	m->level = 4;
	m->spec = text_dup(text, SIZE_MAX);
	rc = m->spec ? parse_spec(m, &s, err) : no_memory(&s, err);
	if (!rc && !m->stop)
		own.decay_hours = 0;         /* a single event has no limit */
	if (!rc)
		rc = duration_ready(&m->duration, &own, &s, err);
	if (!rc) {
		m->start_kind = kind_of(m->provider, m->start);
		m->stop_kind = m->stop ? kind_of(m->provider, m->stop) : EVENT_GENERIC;
		m->start_id = event_id_of(m->start);
		m->stop_id = m->stop ? event_id_of(m->stop) : -1;
		kinds = 1u << EVENT_GENERIC | 1u << EVENT_TICK | 1u << EVENT_PROCESS_EXIT |
			1u << m->start_kind | 1u << m->stop_kind;
		rc = trigger_init(&m->duration.base, ops, title, shown, kinds, err);
	}
	if (rc) {
		event_match_close(&m->duration.base);
		return rc;
	}
	m->duration.what = what ? what : m->start;
	if (!m->stop)
		m->duration.base.limit = NULL;
	*out = &m->duration.base;
	return 0;
}

static int open_event(const char *spec, const struct trigger_env *env, struct trigger **out,
		      struct err *err)
{
	return event_match_open(&event_match_trigger, "StopOnEtwEvent", spec, spec, NULL, env, out, err);
}

/* The filters as one text, those of one field only; "" = all; NULL = none. What does not fit is left out. */
static void put_conditions(const struct event_match *m, const char *field, char out[EVENT_FILTER_MAX])
{
	static const char *const ops[] = {
		[FIELD_EQUAL] = "=", [FIELD_NOT_EQUAL] = "!=", [FIELD_UNDER] = "<", [FIELD_OVER] = ">",
		[FIELD_UNDER_EQUAL] = "<=", [FIELD_OVER_EQUAL] = ">=", [FIELD_MATCHES] = "~",
	};
	size_t used = 0;
	unsigned i;

	out[0] = '\0';
	for (i = 0; field && i < m->nfilters; i++) {
		const struct field_filter *f = &m->filters[i];
		int n;

		if (*field && !text_same_fold(field, f->field))
			continue;
		n = snprintf(out + used, EVENT_FILTER_MAX - used, "%s%s%s%s", used ? ";" : "", f->field,
			     ops[f->op], f->value);
		if (n < 0 || (size_t)n >= EVENT_FILTER_MAX - used)
			out[used] = '\0';
		else
			used += (size_t)n;
	}
}

int event_match_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	const struct event_match *m = (const struct event_match *)t;
	struct need_event *e;
	int rc = needs_provider(out, m->provider, m->keywords, m->level, err);

	if (rc || strlen(m->start) >= EVENT_NAME_MAX || (m->stop && strlen(m->stop) >= EVENT_NAME_MAX))
		return rc ? rc : err_set(err, ERR_LIMIT, "'%.100s...': an event's name has at most %d bytes",
					 m->spec, EVENT_NAME_MAX - 1);
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, ERR_MEMORY, "no memory for the rule '%.200s'", m->spec);
	strcpy(e->provider, m->provider);
	strcpy(e->name, m->start);
	e->stack = m->stack;
	put_conditions(m, "", e->filter);
	rc = needs_event(out, e, err);
	if (!rc && m->stop) {
		strcpy(e->name, m->stop);
		/* Whose start is left out, its stop is of no use: of these two it is known which it is. */
		put_conditions(m, text_same_fold(m->start, "sys_enter") ? "id" : NULL, e->filter);
		rc = needs_event(out, e, err);
	}
	free(e);
	return rc;
}

bool event_match_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	const struct event_match *m = (const struct event_match *)t;
	unsigned k;

	if (i > 1 || (i == 1 && !m->stop))
		return false;
	*out = (struct trigger_wish){.provider = m->provider, .event = i ? m->stop : m->start,
				     .processes = &m->duration.processes};
	for (k = 0; k < m->nfilters && i == 0; k++)
		out->fields[out->nfields++] = m->filters[k].field;
	if (m->context == CONTEXT_FIELD)
		out->fields[out->nfields++] = m->field;
	return true;
}

const char *event_match_spec(const struct trigger *t)
{
	return ((const struct event_match *)t)->spec;
}

/* ---- what start and stop have in common -------------------------------------------------------- */

static bool parse_guid(const char *text, uint32_t out[4])
{
	unsigned char bytes[16];
	/* Where each byte stands in the text: the first three groups are little-endian. */
	static const uint8_t at[16] = {6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34};
	char two[3] = "";
	unsigned i;
	size_t len;

	text = without_braces(text, &len);
	if (len != 36)
		return false;
	for (i = 0; i < 16; i++) {
		memcpy(two, text + at[i], 2);
		if (!isxdigit((unsigned char)two[0]) || !isxdigit((unsigned char)two[1]))
			return false;
		bytes[i] = (unsigned char)strtoul(two, NULL, 16);
	}
	memcpy(out, bytes, sizeof(bytes));
	return true;
}

/*
 * Activity ids of EventSource are paths, which hold their own check sum: the last 32 bits are the sum
 * of the others and 0x599D99AD, combined with the pid by exclusive or, or on old runtimes with their
 * last four bits free. Source: .NET runtime, ActivityTracker.cs, CreateActivityPathGuid (MIT).
 */
static bool is_activity_path(const char *text, uint32_t pid)
{
	uint32_t w[4], sum;

	if (!parse_guid(text, w))
		return false;
	sum = w[0] + w[1] + w[2] + 0x599D99AD;
	return (sum ^ pid) == w[3] || (sum & 0xFFFFFFF0) == (w[3] & 0xFFFFFFF0);
}

static const char *activity_of(const struct event *e)
{
	const struct event_field *f = event_field(e, "ActivityID");

	return f && f->type == FIELD_TEXT && f->v.text && *f->v.text ? f->v.text : NULL;
}

static void key_field(struct pair_key *key, const struct event_field *f)
{
	switch (f->type) {
	case FIELD_INT:
		pair_key_u64(key, (uint64_t)f->v.i);
		break;
	case FIELD_UINT:
		pair_key_u64(key, f->v.u);
		break;
	case FIELD_DOUBLE:
		pair_key_bytes(key, &f->v.d, sizeof(f->v.d));
		break;
	case FIELD_TEXT:
		pair_key_bytes(key, f->v.text ? f->v.text : "", f->v.text ? strlen(f->v.text) : 0);
		break;
	}
}

/* The first field of the payload, not what the event's header carries. */
static const struct event_field *first_field(const struct event *e)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++)
		if (!text_same_fold(e->fields[i].name, "ActivityID") &&
		    !text_same_fold(e->fields[i].name, "RelatedActivityID"))
			return &e->fields[i];
	return NULL;
}

static void key_thread(struct pair_key *key, const struct event *e)
{
	pair_key_u64(key, e->thread ? e->thread->tid : 0);
}

static void key_derived(struct pair_key *key, const struct event *e)
{
	const char *activity = activity_of(e);
	const struct event_field *first = first_field(e);

	if (activity && (!first || is_activity_path(activity, e->process ? e->process->pid : 0)))
		pair_key_bytes(key, activity, strlen(activity));
	else if (first)
		key_field(key, first);
	else
		key_thread(key, e);
}

static void key_of(struct event_match *m, const struct event *e, struct pair_key *key)
{
	const struct event_field *f;
	const char *activity;

	pair_key_begin(key, e->process);
	switch (m->context) {
	case CONTEXT_DERIVED:
		key_derived(key, e);
		break;
	case CONTEXT_THREAD:
		key_thread(key, e);
		break;
	case CONTEXT_ACTIVITY:
		activity = activity_of(e);
		if (activity)
			pair_key_bytes(key, activity, strlen(activity));
		else
			m->without_field++;
		break;
	case CONTEXT_FIELD:
		f = event_field(e, m->field);
		if (f)
			key_field(key, f);
		else
			m->without_field++;
		break;
	}
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool filters_pass(struct event_match *m, const struct event *e)
{
	unsigned i;

	for (i = 0; i < m->nfilters; i++) {
		if (field_filter_pass(&m->filters[i], e))
			continue;
		m->duration.base.counts.dropped_filter++;
		return false;
	}
	return true;
}

/* "Provider/Event of NAME (pid N), thread T: Field=value, ...", cut at some 400 bytes. */
static void say_event(const struct event_match *m, const struct event *e, struct buf *why)
{
	char printed[FIELD_TEXT_BYTES];
	const char *text;
	uint32_t i;

	buf_printf(why, "%s%c%s", m->provider, is_probe(m) ? ':' : '/', m->start);
	process_text(e->process ? process_name(e->process) : "", e->process ? e->process->pid : 0, why);
	if (e->thread)
		buf_printf(why, ", thread %" PRIu32, e->thread->tid);
	for (i = 0; i < e->nfields && why->len < 400; i++) {
		text = field_text(&e->fields[i], printed);
		buf_printf(why, "%s%s=%.100s%s", i ? ", " : ": ", e->fields[i].name, text,
			   strlen(text) > 100 ? "..." : "");
	}
}

static void single(struct event_match *m, const struct event *e, struct buf *why, struct sense *out)
{
	m->duration.base.counts.matched++;
	out->hit = true;
	say_event(m, e, why);
}

/* By kind, by the number that was named, or by name. */
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

void event_match_sense(struct trigger *t, const struct event *e, struct buf *why, struct sense *out)
{
	struct event_match *m = (struct event_match *)t;
	bool start = is_named(e, m->start, m->start_kind, m->start_id), stop;
	struct pair_key key;

	stop = !start && m->stop && is_named(e, m->stop, m->stop_kind, m->stop_id);
	if ((start || stop) && e->kind == EVENT_GENERIC &&
	    (!e->provider || !provider_is(m->provider, e->provider)))
		start = stop = false;
	if ((start || stop) && duration_wants(&m->duration, e)) {
		if (start && !filters_pass(m, e))
			return;
		if (start && !m->stop) {
			single(m, e, why, out);
			return;
		}
		key_of(m, e, &key);
		if (start)
			pairs_start(&m->duration.pairs, &key, e, PAIR_KEEP_LAST);
		else
			duration_stop(&m->duration, &key, e, "", why, out);
	}
	if (e->kind != EVENT_GENERIC)
		duration_other(&m->duration, e, why, out);
}

/* ---- status ---------------------------------------------------------------------------------- */

static const struct field_filter *dead_filter(const struct event_match *m)
{
	unsigned i;

	for (i = 0; i < m->nfilters; i++)
		if (m->filters[i].regex && regex_is_dead(m->filters[i].regex))
			return &m->filters[i];
	return NULL;
}

void event_match_status(const struct trigger *t, struct trigger_status *out)
{
	const struct event_match *m = (const struct event_match *)t;
	const struct field_filter *dead = dead_filter(m);

	if (m->stop) {
		duration_status(t, out);
	} else {
		trigger_status_base(t, out);
		snprintf(out->text, sizeof(out->text), "%s%s",
			 t->counts.seen ? "armed" : "no such event yet",
			 t->in_window ? ", in its incident's window" : "");
	}
	if (dead) {
		out->phase = TRIGGER_DEAD;
		snprintf(out->text, sizeof(out->text), "dead: the expression '%.60s' took over %u steps "
			 "%u times and was switched off", dead->value, REGEX_MATCH_LIMIT, REGEX_GIVE_UP);
	}
}

const struct trigger_ops event_match_trigger = {
	.name = "stop-on-etw-event",
	.usage = "PROVIDER/EVENT[;FieldFilter=...][;TriggerMSec=...][;StopEvent=...][;StartStopID=...]"
		 "[;Process=...][;Keywords=...][;Level=...][;InFlight=true][;Stack=true]",
	.summary = "keep an incident at an event, or when a start takes longer until its stop",
	.open = open_event,
	.needs = event_match_needs,
	.feed = trigger_feed,
	.fired = trigger_fired,
	.status = event_match_status,
	.close = event_match_close,
	.sense = event_match_sense,
	.save = trigger_save_limit,
	.load = trigger_load_limit,
	.wish = event_match_wish,
};
