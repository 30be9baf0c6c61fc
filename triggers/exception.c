#include "triggers/exception.h"

#include "base/text.h"
#include "triggers/duration.h"
#include "triggers/gc_duration.h"
#include "triggers/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLR_KEYWORD_EXCEPTION 0x8000u
#define CXX_PROVIDER "C++"                   /* Linux */
#define EXCEPTION_EVENT "Exception/Start"

static int exception_open(const char *spec, const struct trigger_env *env, struct trigger **out,
			  struct err *err)
{
	struct pattern *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_memory(err, "for the rule '%.200s'", spec);
	rc = trigger_init(&p->base, &exception_trigger, "StopOnException", spec,
			  1u << EVENT_GENERIC, err);
	if (!rc)
		rc = pattern_open(p, spec, spec, false, env, err);
	if (rc) {
		pattern_close(&p->base);
		return rc;
	}
	*out = &p->base;
	return 0;
}

/* C++ only in named processes: each throw then costs more in all programs of the library. */
static int exception_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	const struct pattern *p = (const struct pattern *)t;
	struct need_event *e;
	unsigned i;
	int rc = needs_provider(out, CLR_PROVIDER, CLR_KEYWORD_EXCEPTION, 4, err);

	if (rc || !p->processes.n)
		return rc;
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_memory(err, "for the rule '%.200s'", t->spec);
	strcpy(e->provider, CXX_PROVIDER);
	strcpy(e->name, EXCEPTION_EVENT);
	e->stack = true;
	for (i = 0; !rc && i < p->processes.n; i++) {
		if (p->processes.items[i].pid)
			snprintf(e->filter, sizeof(e->filter), "ProcessID=%" PRIu32,
				 p->processes.items[i].pid);
		else
			snprintf(e->filter, sizeof(e->filter), "ProcessName=%s",
				 p->processes.items[i].name);
		rc = needs_event(out, e, err);
	}
	free(e);
	return rc;
}

static bool exception_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	if (i)
		return false;
	*out = (struct trigger_wish){.provider = CLR_PROVIDER, .event = "Exception/Start",
				     .processes = &((const struct pattern *)t)->processes};
	return true;
}

static const char *text_of(const struct event *e, const char *field)
{
	const struct event_field *f = event_field(e, field);

	return f && f->type == FIELD_TEXT && f->v.text ? f->v.text : "";
}

static bool matches(struct pattern *p, const char *type, const char *message)
{
	char text[PATTERN_TEXT_BYTES];

	if (!p->regex)
		return true;
	if (!*type && !*message)
		return false;
	snprintf(text, sizeof(text), "%.1000s: %s", type, message);
	return (*message && pattern_match(p, text)) || (*type && pattern_match(p, type));
}

static void exception_sense(struct trigger *t, const struct event *e, struct buf *why,
			    struct sense *out)
{
	struct pattern *p = (struct pattern *)t;
	const char *type, *message;

	if (!e->name || strcmp(e->name, EXCEPTION_EVENT) != 0 || !e->provider ||
	    (!text_same_fold(e->provider, CLR_PROVIDER) && strcmp(e->provider, CXX_PROVIDER) != 0))
		return;
	t->counts.seen++;
	if (!process_filter_pass(&p->processes, e->process)) {
		t->counts.dropped_process++;
		return;
	}
	type = text_of(e, "ExceptionType");
	message = text_of(e, "ExceptionMessage");
	if (!matches(p, type, message)) {
		t->counts.dropped_filter++;
		return;
	}
	t->counts.matched++;
	out->hit = true;
	buf_printf(why, "exception %.200s%s%.300s,", *type ? type : "?", *message ? ": " : "",
		   message);
	process_text(e->process, why);
	if (e->thread)
		buf_printf(why, ", thread %" PRIu32, e->thread->tid);
}

const struct trigger_ops exception_trigger = {
	.name = "stop-on-exception",
	.usage = "REGEX[;Process=...]   (matched against \"Type: Message\" and against the type)",
	.summary = "keep an incident when a .NET or C++ exception that matches is thrown",
	.open = exception_open,
	.needs = exception_needs,
	.feed = trigger_feed,
	.fired = trigger_fired,
	.status = pattern_status,
	.close = pattern_close,
	.sense = exception_sense,
	.wish = exception_wish,
};
