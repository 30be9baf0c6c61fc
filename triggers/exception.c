#include "triggers/exception.h"

#include "base/text.h"
#include "triggers/duration.h"
#include "triggers/gc_duration.h"
#include "triggers/pattern.h"

#include <stdio.h>
#include <string.h>

#define CLR_KEYWORD_EXCEPTION 0x8000u
#define CXX_PROVIDER "C++"                   /* Linux */
#define JAVA_PROVIDER "Java"                 /* the same */
#define EXCEPTION_EVENT "Exception/Start"

static int exception_open(struct trigger *t, const struct trigger_env *env, struct err *err)
{
	return pattern_open((struct pattern *)t, t->text, false, env, err);
}

/*
 * C++ only in named processes: each throw then costs more in all programs of the library. A Java
 * exception notes its stack, which costs as much.
 */
static int exception_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	struct need_event e = {.provider = JAVA_PROVIDER, .name = EXCEPTION_EVENT, .stack = true,
			       .whose = t->processes};
	int rc = needs_provider(out, CLR_PROVIDER, CLR_KEYWORD_EXCEPTION, 4, err);
	unsigned i;

	if (!rc)
		rc = needs_event(out, &e, err);
	snprintf(e.provider, sizeof(e.provider), "%s", CXX_PROVIDER);
	for (i = 0; !rc && i < t->processes.n; i++) {
		snprintf(e.filter, sizeof(e.filter), "%s=%s",
			 t->processes.items[i].pid ? "ProcessID" : "ProcessName",
			 t->processes.items[i].name);
		rc = needs_event(out, &e, err);
	}
	return rc;
}

static bool exception_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	*out = (struct trigger_wish){.provider = CLR_PROVIDER, .event = EXCEPTION_EVENT,
				     .processes = &t->processes};
	return i == 0;
}

static const char *text_of(const struct event *e, const char *field)
{
	const struct event_field *f = event_field(e, field);

	return f && f->type == FIELD_TEXT && f->v.text ? f->v.text : "";
}

static bool exception_matches(struct pattern *p, const char *type, const char *message)
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
	const char *type, *message;

	regex_tick(((struct pattern *)t)->regex, e->time_ns);
	if (!e->name || strcmp(e->name, EXCEPTION_EVENT) != 0 || !e->provider ||
	    (!text_same_fold(e->provider, CLR_PROVIDER) && strcmp(e->provider, CXX_PROVIDER) != 0 &&
	     strcmp(e->provider, JAVA_PROVIDER) != 0))
		return;
	if (!trigger_wants(t, e->process))
		return;
	type = text_of(e, "ExceptionType");
	message = text_of(e, "ExceptionMessage");
	if (!trigger_matches(t, exception_matches((struct pattern *)t, type, message), out))
		return;
	buf_printf(why, "exception %.200s%s%.300s,", *type ? type : "?", *message ? ": " : "",
		   message);
	origin_text(e, why);
}

const struct trigger_ops exception_trigger = {
	.name = "stop-on-exception",
	.title = "StopOnException",
	.usage = "REGEX[;Process=...]   (matched against \"Type: Message\" and against the type)",
	.summary = "keep an incident when a .NET, Java or C++ exception that matches is thrown",
	.bytes = sizeof(struct pattern),
	.kinds = 1u << EVENT_GENERIC | 1u << EVENT_TICK,
	.open = exception_open,
	.needs = exception_needs,
	.feed = trigger_feed,
	.status = pattern_status,
	.close = pattern_close,
	.sense = exception_sense,
	.wish = exception_wish,
};
