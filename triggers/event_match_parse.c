#include "triggers/event_match_private.h"

#include "base/array.h"
#include "base/text.h"
#include "triggers/gc_duration.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A copy of a part of the rule's text. */
static int take_text(const struct spec *s, const char *text, size_t n, char **out)
{
	free(*out);
	*out = text_dup(text, n);
	return *out ? 0 : spec_no_memory(s);
}

/* What ends the provider in "uprobe:/path/of/program:symbol" and "usdt:/path:provider:name". */
static const char *probe_colon(const char *text, size_t len)
{
	static const char *const providers[] = {"uprobe:", "usdt:"};
	size_t i, n;

	for (i = 0; i < COUNT_OF(providers); i++) {
		n = strlen(providers[i]);
		if (len > n && strncasecmp(text, providers[i], n) == 0)
			return text + n - 1;
	}
	return NULL;
}

bool event_match_is_probe(const struct event_match *m)
{
	return text_same_fold(m->provider, "uprobe") || text_same_fold(m->provider, "usdt");
}

static int parse_head(struct event_match *m, const struct spec *s)
{
	const char *colon = probe_colon(s->text, s->head_len);
	const char *slash = colon ? colon : memchr(s->text, '/', s->head_len);
	size_t n;
	int rc;

	/* "sched:sched_switch", as --providers and perf have it */
	if (!slash)
		slash = memchr(s->text, ':', s->head_len);
	n = slash ? (size_t)(slash - s->text) : 0;

	if (!n || n + 1 == s->head_len)
		return spec_wrong(s, "'%.*s' is not PROVIDER/EVENT, like "
				  "Microsoft-Windows-DotNETRuntime/GC/Start, or on Linux "
				  "sched/sched_process_exit",
				  s->head_len > 100 ? 100 : (int)s->head_len, s->text);
	if (n >= PROVIDER_NAME_MAX)
		return err_set(s->err, ERR_USAGE,
			       "'%.100s...': a provider's name has at most %d bytes", s->text,
			       PROVIDER_NAME_MAX - 1);
	rc = take_text(s, s->text, n, &m->provider);
	return rc ? rc : take_text(s, slash + 1, s->head_len - n - 1, &m->start);
}

static int take_keywords(struct event_match *m, const struct spec *s)
{
	char copy[24] = "", *end = copy;

	if (s->value_len < sizeof(copy))
		memcpy(copy, s->value, s->value_len);
	if (isxdigit((unsigned char)*copy))
		m->keywords = strtoull(copy, &end, 16);
	if (end == copy || *end || (end - copy) > 18)
		return spec_wrong(s, "Keywords '%.*s' is not a hexadecimal number like 0x8000",
				  quoted_len(s->value_len), s->value);
	return 0;
}

static int take_level(struct event_match *m, const struct spec *s)
{
	static const char *const words[] = {
		"Always", "Critical", "Error", "Warning", "Informational", "Verbose",
		"0", "1", "2", "3", "4", "5",
	};
	int level = spec_choice(s, words, COUNT_OF(words));

	if (level < 0)
		return spec_wrong(s, "Level is 0 to 5, or Always, Critical, Error, Warning, "
				  "Informational or Verbose");
	m->level = (uint8_t)(level % 6);
	return 0;
}

static int take_filter(struct event_match *m, const struct spec *s)
{
	int rc;

	if (m->nfilters == FIELD_FILTERS_MAX)
		return spec_wrong(s, "a rule has at most %u filters", FIELD_FILTERS_MAX);
	rc = field_filter_open(s, &m->filters[m->nfilters]);
	m->nfilters += !rc;
	return rc;
}

static int take_one_stop(struct event_match *m, const struct spec *s, const char *text, size_t len,
			 char **out)
{
	size_t n = strlen(m->provider), skip = 0;
	struct buf same = {0};

	/* PerfView's guide writes PROVIDER/ before it. */
	if (len > n && (text[n] == '/' || (text[n] == ':' && event_match_is_probe(m))) &&
	    strncasecmp(text, m->provider, n) == 0)
		skip = n + 1;
	if (len == skip)
		return spec_wrong(s, "StopEvent is empty");
	/* A function or probe of the same program. */
	if (event_match_is_probe(m) && strchr(m->start, ':') &&
	    !memchr(text + skip, ':', len - skip))
		buf_printf(&same, "%.*s", (int)(strrchr(m->start, ':') - m->start) + 1, m->start);
	buf_put(&same, text + skip, len - skip);
	*out = same.data;
	return same.failed ? spec_no_memory(s) : 0;
}

/* One, or two with '|' between: whichever comes first. */
static int take_stop(struct event_match *m, const struct spec *s)
{
	const char *bar = memchr(s->value, '|', s->value_len);
	size_t len = bar ? (size_t)(bar - s->value) : s->value_len;
	int rc = take_one_stop(m, s, s->value, len, &m->stop);

	return rc || !bar ? rc : take_one_stop(m, s, bar + 1, s->value_len - len - 1, &m->also);
}

/* NAME:+OFFSET(ArgN),...: checked by the source, which knows the program. */
static int take_texts(struct event_match *m, const struct spec *s)
{
	unsigned n = 0;
	size_t at, len;

	if (!event_match_is_probe(m))
		return spec_wrong(s, "Text is read from the memory of a program: it is for uprobe: "
				  "only");
	if (s->value_len >= EVENT_TEXTS_MAX)
		return spec_wrong(s, "Text is too long");
	for (at = 0; at < s->value_len && n < COUNT_OF(m->text_names); n++) {
		len = strcspn(s->value + at, ":,;");
		len = len < EVENT_FIELD_MAX ? len : EVENT_FIELD_MAX - 1;
		memcpy(m->text_names[n], s->value + at, len);
		m->text_names[n][len] = '\0';
		m->says[n] = m->text_names[n];
		at += strcspn(s->value + at, ",;") + 1;
	}
	m->duration.says = m->says;
	return take_text(s, s->value, s->value_len, &m->texts);
}

static int take_context(struct event_match *m, const struct spec *s)
{
	static const char *const words[] = {"ThreadID", "ActivityID", ""};
	static const enum context contexts[] = {CONTEXT_THREAD, CONTEXT_ACTIVITY};
	int choice = spec_choice(s, words, COUNT_OF(words));

	if (choice == 2)
		return spec_wrong(s, "StartStopID is a field's name, ThreadID or ActivityID");
	m->context = choice < 0 ? CONTEXT_FIELD : contexts[choice];
	return choice < 0 ? take_text(s, s->value, s->value_len, &m->field) : 0;
}

static int take_trigger_ms(struct event_match *m, const struct spec *s)
{
	double *limit = &m->duration.threshold.limit;
	int rc = spec_value_number(s, "TriggerMSec", limit);

	return !rc && *limit < 0 ? spec_wrong(s, "TriggerMSec is below zero") : rc;
}

static int take_stack(struct event_match *m, const struct spec *s)
{
	return spec_bool(s, &m->stack);
}

static int accept_key(struct event_match *m, const struct spec *s)
{
	(void)m;
	(void)s;
	return 0;
}

static int take_key(void *rule, struct spec *s)
{
	static const struct {
		const char *key;
		int (*take)(struct event_match *m, const struct spec *s);
	} keys[] = {
		{"Keywords", take_keywords}, {"Level", take_level}, {"FieldFilter", take_filter},
		{"StopEvent", take_stop}, {"StartStopID", take_context},
		{"TriggerMSec", take_trigger_ms}, {"Stack", take_stack}, {"Text", take_texts},
		{"Verbose", accept_key}, {"BufferSizeMB", accept_key},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(keys); i++)
		if (spec_key_is(s, keys[i].key))
			return keys[i].take(rule, s);
	return duration_key(rule, s);
}

#define ALLOWED_KEYS \
	"Keywords, Level, FieldFilter, TriggerMSec, StopEvent, StartStopID, Stack, Text, " \
	"Verbose, BufferSizeMB, " DURATION_KEYS

/*
 * Put the stop of a start on Linux, by the names of tracepoints and of programs' own probes, or a
 * function's return; nothing when the name tells none.
 */
static void put_linux_stop(const struct event_match *m, struct buf *out)
{
	static const struct {
		const char *start, *stop, *provider;   /* NULL = any */
	} ends[] = {
		{"__start", "__done", "usdt"}, {"__begin", "__end", "usdt"},
		{"__entry", "__return", "usdt"}, {"_entry", "_exit", NULL},
		{"_enter", "_exit", NULL}, {"_begin", "_end", NULL},
	};
	size_t i;

	if (text_ends_fold(m->start, "%return"))
		return;
	if (strncasecmp(m->start, "sys_enter_", 10) == 0)
		buf_printf(out, "sys_exit_%s", m->start + 10);
	else if (text_same_fold(m->provider, "uprobe"))
		buf_printf(out, "%s%%return", m->start);
	for (i = 0; !out->len && i < COUNT_OF(ends); i++)
		if (text_ends_fold(m->start, ends[i].start) &&
		    (!ends[i].provider || text_same_fold(m->provider, ends[i].provider)))
			buf_printf(out, "%.*s%s", (int)(strlen(m->start) - strlen(ends[i].start)),
				   m->start, ends[i].stop);
}

/* The stop of a start, when the rule does not name it. */
static int derive_stop(struct event_match *m, const struct spec *s)
{
	int id = event_id_of(m->start), n = (int)strlen(m->start) - 5;
	struct buf stop = {0};

	put_linux_stop(m, &stop);
	/* A thread nests such starts and stops. */
	if (stop.len && m->context == CONTEXT_DERIVED)
		m->context = CONTEXT_THREAD;
	if (!stop.len && text_ends_fold(m->start, "Start"))
		buf_printf(&stop, "%.*s%s", n, m->start,
			   isupper((unsigned char)m->start[n]) ? "Stop" : "stop");
	else if (!stop.len && id >= 0)
		buf_printf(&stop, "EventID(%d)", id + 1);
	m->stop = stop.data;
	if (stop.failed)
		return spec_no_memory(s);
	return m->stop ? 0 : spec_wrong(s, "TriggerMSec needs a stop event, and the name '%.100s' "
					"does not imply one; add ;StopEvent=NAME", m->start);
}

/* Refuse filters that exclude each other: the rule would never fire. */
static int check_filters(const struct event_match *m, const struct spec *s)
{
	unsigned i, k;

	for (i = 0; i < m->nfilters; i++) {
		for (k = i + 1; k < m->nfilters; k++) {
			const struct field_filter *a = &m->filters[i], *b = &m->filters[k];

			if (field_filters_exclude(a, b))
				return spec_wrong(s, "no event passes both %.40s%s%.40s and "
						  "%.40s%s%.40s, so it could never fire",
						  a->field, field_op_text(a->op), a->value,
						  b->field, field_op_text(b->op), b->value);
		}
	}
	return 0;
}

int event_match_parse(struct event_match *m, struct spec *s)
{
	const struct threshold *limit = &m->duration.threshold;
	int rc = parse_head(m, s);

	if (!rc)
		rc = spec_keys(s, take_key, m, ALLOWED_KEYS);
	if (!rc)
		rc = check_filters(m, s);
	if (rc)
		return rc;
	if (!(limit->limit > 0)) {
		free(m->stop);               /* PerfView ignores it for single events too */
		free(m->also);
		m->stop = m->also = NULL;
		if (threshold_moves(limit) || m->duration.in_flight)
			return spec_wrong(s, "InFlight and a limit that moves need TriggerMSec, "
					  "which is 0");
		return 0;
	}
	if (!m->stop)
		rc = derive_stop(m, s);
	if (rc)
		return rc;
	/* Collections of these have no number, and their first field is always the same. */
	if (m->context == CONTEXT_DERIVED && (text_same_fold(m->provider, V8_PROVIDER) ||
					      text_same_fold(m->provider, CPYTHON_PROVIDER)))
		m->context = CONTEXT_THREAD;
	return event_name_is(m->start, m->stop) ? spec_wrong(s, "StopEvent is the start itself")
						: 0;
}
