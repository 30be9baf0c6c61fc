#include "listing/select.h"

#include "base/array.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *event_provider(const struct event *e)
{
	return e->provider ? e->provider : "";
}

const char *event_name(const struct event *e)
{
	return e->name && *e->name ? e->name : event_kind_text(e->kind);
}

/* ---- making ---------------------------------------------------------------------------------- */

static int take_column(struct event_select *s, const char *text, size_t n, struct err *err)
{
	struct event_column *c = &s->columns[s->ncolumns];
	char whole[200];
	struct spec spec = {.text = whole, .err = err, .value = text, .value_len = n};
	size_t name = strcspn(text, "<>=!~");

	if (s->ncolumns == EVENT_COLUMNS_MAX)
		return err_set(err, ERR_USAGE, "--columns: over %u of them", EVENT_COLUMNS_MAX);
	if (!n)
		return err_set(err, ERR_USAGE, "--columns '%.60s': between two commas there is no "
			       "field; a list is 'Size>=1024,FileName'", s->o->columns);
	snprintf(whole, sizeof(whole), "--columns %.*s", (int)(n < 150 ? n : 150), text);
	name = name < n ? name : n;
	c->field = text_dup(text, name);
	if (!c->field)
		return err_memory(err, "for the columns");
	s->ncolumns++;
	c->has_condition = name < n;
	return c->has_condition ? field_filter_open(&spec, &c->condition) : 0;
}

static int take_columns(struct event_select *s, struct err *err)
{
	const char *at = s->o->columns;
	int rc = 0;

	while (at && !rc) {
		size_t n = strcspn(at, ",");

		rc = take_column(s, at, n, err);
		at = at[n] ? at + n + 1 : NULL;
	}
	return rc;
}

static int take_regex(const char *option, const char *pattern, struct regex **out, struct err *err)
{
	return pattern ? regex_open(option, pattern, strlen(pattern), true, out, err) : 0;
}

int event_select_open(struct event_select *s, const struct options *o, struct err *err)
{
	const char *text = o->event_text;
	int rc;

	*s = (struct event_select){.o = o, .not_text = text && *text == '!'};
	rc = take_regex("--name", o->event_name, &s->name, err);
	if (!rc && o->process && strpbrk(o->process, "^$*+?()[]{}|\\"))
		rc = take_regex("--process", o->process, &s->process, err);
	if (!rc)
		rc = take_regex("--text", text && s->not_text ? text + 1 : text, &s->text, err);
	if (!rc)
		rc = take_columns(s, err);
	if (rc)
		event_select_close(s);
	return rc;
}

void event_select_close(struct event_select *s)
{
	while (s->ncolumns) {
		struct event_column *c = &s->columns[--s->ncolumns];

		free(c->field);
		field_filter_close(&c->condition);
	}
	regex_close(s->name);
	regex_close(s->text);
	regex_close(s->process);
	s->name = s->text = s->process = NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* "GC/Start", or with its provider before it. */
static bool name_matches(struct event_select *s, const struct event *e)
{
	char whole[512];

	if (regex_match(s->name, event_name(e), strlen(event_name(e))))
		return true;
	snprintf(whole, sizeof(whole), "%s/%s", event_provider(e), event_name(e));
	return *event_provider(e) && regex_match(s->name, whole, strlen(whole));
}

static bool meets_conditions(struct event_select *s, const struct event *e)
{
	bool all = true;
	uint32_t i;

	for (i = 0; i < s->ncolumns; i++) {
		struct event_column *c = &s->columns[i];
		const struct event_field *field = event_field(e, c->field);
		bool met = !c->has_condition || field_filter_pass(&c->condition, e);

		all &= met;
		c->field_seen |= field || met;
		if (c->has_condition && field && field->type != FIELD_TEXT &&
		    !c->condition.is_number && c->condition.op != FIELD_MATCHES)
			s->no_number = c;
	}
	return all;
}

static bool rule_hits(struct event_select *s, const struct event *e)
{
	struct sense sense = {0};
	struct buf why = {0};

	s->rule->ops->sense(s->rule, e, &why, &sense);
	buf_free(&why);
	return sense.hit;
}

static bool process_fits(struct event_select *s, const struct process *process)
{
	const char *name = process ? process_name(process) : "";
	bool fits = process && (process_is_meant(process, s->o->process) ||
				(s->process && regex_match(s->process, name, strlen(name))));

	s->process_seen |= fits;
	return fits;
}

bool event_select_takes(struct event_select *s, const struct event *e, double ms)
{
	const struct options *o = s->o;

	return (!o->process || process_fits(s, e->process)) &&
	       (!s->rule || rule_hits(s, e)) &&
	       ms >= o->start_ms && ms <= o->end_ms &&
	       (!o->provider || text_same_fold(o->provider, event_provider(e))) &&
	       (!s->name || name_matches(s, e)) && meets_conditions(s, e);
}

bool event_select_takes_text(struct event_select *s, const char *text, size_t n)
{
	return !s->text || regex_match(s->text, text, n) != s->not_text;
}

bool event_select_has_rest(const struct event_select *s)
{
	uint32_t i;

	for (i = 0; i < s->ncolumns; i++)
		if (strcmp(s->columns[i].field, "*") == 0)
			return true;
	return !s->ncolumns;
}

bool event_select_is_rest(const struct event_select *s, const char *field)
{
	uint32_t i;

	for (i = 0; i < s->ncolumns; i++)
		if (text_same_fold(s->columns[i].field, field))
			return false;
	return event_select_has_rest(s);
}
