#include "triggers/event_match_private.h"

#include "base/array.h"
#include "base/text.h"
#include "triggers/gc_duration.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy of a part of the rule's text. */
static int take_text(const struct spec *s, const char *text, size_t n, char **out, struct err *err)
{
	free(*out);
	*out = text_dup(text, n);
	return *out ? 0 : err_memory(err, "for the rule '%.200s'", s->text);
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

static int parse_head(struct event_match *m, const struct spec *s, struct err *err)
{
	const char *colon = probe_colon(s->text, s->head_len);
	const char *slash = colon ? colon : memchr(s->text, '/', s->head_len);
	size_t n = slash ? (size_t)(slash - s->text) : 0;

	if (!n || n + 1 == s->head_len)
		return err_set(err, ERR_USAGE,
			       "'%.200s': '%.*s' is not PROVIDER/EVENT, like "
			       "Microsoft-Windows-DotNETRuntime/GC/Start, or on Linux "
			       "sched/sched_process_exit",
			       s->text, s->head_len > 100 ? 100 : (int)s->head_len, s->text);
	if (n >= PROVIDER_NAME_MAX)
		return err_set(err, ERR_USAGE,
			       "'%.100s...': a provider's name has at most %d bytes", s->text,
			       PROVIDER_NAME_MAX - 1);
	return take_text(s, s->text, n, &m->provider, err) ||
	       take_text(s, slash + 1, s->head_len - n - 1, &m->start, err) ? ERR_MEMORY : 0;
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
		return err_set(err, ERR_USAGE,
			       "'%.200s': Keywords '%.*s' is not a hexadecimal number like 0x8000",
			       s->text, part->value_len > 60 ? 60 : (int)part->value_len,
			       part->value);
	return 0;
}

static int take_level(struct event_match *m, const struct spec *s, const struct spec_part *part,
		      struct err *err)
{
	static const char *const names[] = {"Always", "Critical", "Error",
					    "Warning", "Informational", "Verbose"};
	uint8_t i;

	for (i = 0; i < 6; i++) {
		if (!spec_value_is(part, names[i]) &&
		    !(part->value_len == 1 && part->value[0] == (char)('0' + i)))
			continue;
		m->level = i;
		return 0;
	}
	return err_set(err, ERR_USAGE,
		       "'%.200s': Level is 0 to 5, or Always, Critical, Error, Warning, "
		       "Informational or Verbose",
		       s->text);
}

static int take_filter(struct event_match *m, const struct spec *s, const struct spec_part *part,
		       struct err *err)
{
	int rc;

	if (m->nfilters == FIELD_FILTERS_MAX)
		return err_set(err, ERR_USAGE, "'%.200s': a rule has at most %u filters", s->text,
			       FIELD_FILTERS_MAX);
	rc = field_filter_open(s->text, part->value, part->value_len, &m->filters[m->nfilters],
			       err);
	if (!rc)
		m->nfilters++;
	return rc;
}

static int take_stop(struct event_match *m, const struct spec *s, const struct spec_part *part,
		     struct err *err)
{
	size_t n = strlen(m->provider), skip = 0;

	/* PerfView's guide writes PROVIDER/ before it. */
	if (part->value_len > n &&
	    (part->value[n] == '/' || (part->value[n] == ':' && event_match_is_probe(m))) &&
	    strncasecmp(part->value, m->provider, n) == 0)
		skip = n + 1;
	if (part->value_len == skip)
		return err_set(err, ERR_USAGE, "'%.200s': StopEvent is empty", s->text);
	return take_text(s, part->value + skip, part->value_len - skip, &m->stop, err);
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
		return take_text(s, part->value, part->value_len, &m->field, err);
	} else {
		return err_set(err, ERR_USAGE,
			       "'%.200s': StartStopID is a field's name, ThreadID or ActivityID",
			       s->text);
	}
	return 0;
}

static int take_trigger_ms(struct event_match *m, const struct spec *s,
			   const struct spec_part *part, struct err *err)
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
		int (*take)(struct event_match *m, const struct spec *s,
			    const struct spec_part *part, struct err *err);
	} keys[] = {
		{"Keywords", take_keywords}, {"Level", take_level}, {"FieldFilter", take_filter},
		{"StopEvent", take_stop}, {"StartStopID", take_context},
		{"TriggerMSec", take_trigger_ms}, {"Stack", take_stack},
		{"Verbose", NULL}, {"BufferSizeMB", NULL},
	};
	bool taken;
	size_t i;
	int rc;

	for (i = 0; i < COUNT_OF(keys); i++) {
		if (spec_key_is(part, keys[i].key))
			return keys[i].take ? keys[i].take(m, s, part, err) : 0;
	}
	rc = duration_key(&m->duration, s, part, &taken, err);
	if (!rc && !taken)
		rc = spec_unknown_key(s, part,
				      "Keywords, Level, FieldFilter, TriggerMSec, StopEvent, "
				      "StartStopID, Stack, Verbose, BufferSizeMB, " DURATION_KEYS,
				      err);
	return rc;
}

/*
 * The stop of a start on Linux, by the names of tracepoints and of programs' own probes, or a
 * function's return. NULL = the name tells none. A thread nests such starts and stops.
 */
static char *linux_stop(const struct event_match *m)
{
	static const struct {
		const char *start, *stop, *provider;   /* NULL = any */
	} ends[] = {
		{"__start", "__done", "usdt"}, {"__begin", "__end", "usdt"},
		{"__entry", "__return", "usdt"}, {"_entry", "_exit", NULL},
		{"_enter", "_exit", NULL}, {"_begin", "_end", NULL},
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
		for (i = 0; from == SIZE_MAX && i < COUNT_OF(ends); i++) {
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

/* The stop of a start, when the rule does not name it. */
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
		if (take_text(s, m->start, n, &m->stop, err))
			return ERR_MEMORY;
		strcpy(m->stop + n - 5, isupper((unsigned char)m->start[n - 5]) ? "Stop" : "stop");
		return 0;
	}
	if (id >= 0) {
		snprintf(text, sizeof(text), "EventID(%d)", id + 1);
		return take_text(s, text, SIZE_MAX, &m->stop, err);
	}
	return err_set(err, ERR_USAGE, "'%.200s': TriggerMSec needs a stop event, and the name "
		       "'%.100s' does not imply one; add ;StopEvent=NAME", s->text, m->start);
}

/* Refuse filters that exclude each other: the rule would never fire. */
static int check_filters(const struct event_match *m, const struct spec *s, struct err *err)
{
	unsigned i, k;

	for (i = 0; i < m->nfilters; i++) {
		for (k = i + 1; k < m->nfilters; k++) {
			const struct field_filter *a = &m->filters[i], *b = &m->filters[k];

			if (field_filters_exclude(a, b))
				return err_set(
					err, ERR_USAGE,
					"'%.200s': no event passes both "
					"%.40s%s%.40s and %.40s%s%.40s, so it could never fire",
					s->text, a->field, field_op_text(a->op), a->value, b->field,
					field_op_text(b->op), b->value);
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

int event_match_parse(struct event_match *m, struct spec *s, struct err *err)
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
		free(m->stop);               /* PerfView ignores it for single events too */
		m->stop = NULL;
		if (threshold_moves(&m->duration.threshold) || m->duration.in_flight)
			return err_set(err, ERR_USAGE,
				       "'%.200s': InFlight and a limit that moves need "
				       "TriggerMSec, which is 0",
				       s->text);
		return 0;
	}
	if (!m->stop)
		rc = derive_stop(m, s, err);
	/* Collections of these have no number, and their first field is always the same. */
	if (m->context == CONTEXT_DERIVED && (text_same_fold(m->provider, V8_PROVIDER) ||
					      text_same_fold(m->provider, CPYTHON_PROVIDER)))
		m->context = CONTEXT_THREAD;
	return rc ? rc : check_stop(m, s, err);
}
