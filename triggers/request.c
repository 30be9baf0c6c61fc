#include "triggers/request.h"

#include "base/array.h"
#include "triggers/duration.h"
#include "triggers/event_match.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PARTS_MAX 3u
#define LINE_BYTES 1024

struct preset {
	struct trigger base;
	struct trigger *parts[PARTS_MAX];
	unsigned nparts;                     /* 0 = off */
};

/*
 * PROVIDER/EVENT and keys; TriggerMSec and the user's keys are appended. The start's fields that
 * say which request it is.
 */
static const struct {
	const struct trigger_ops *ops;
	const char *line;
	const char *says[3];
} lines[] = {
	{&request_trigger,
	 "{DE4649C9-15E8-4FEA-9D85-1CDDA520C334}/EventID(1);StopEvent=EventID(2);Level=1",
	 {"RequestVerb", "RequestURL"}},
	{&request_trigger,
	 "*Microsoft.AspNetCore.Hosting/Request/Start;StopEvent=Request/Stop;"
	 "StartStopID=ActivityID",
	 {"method", "path"}},
	{&app_fabric_trigger, "{A77DCF21-545F-4191-B3D0-C396CF2683F2}/EventID(123);"
			      "StopEvent=EventID(127);StartStopID=1;Level=5", {NULL}},
};

static void preset_close(struct trigger *t)
{
	struct preset *p = (struct preset *)t;

	while (p->nparts)
		trigger_close(p->parts[--p->nparts]);
}

static bool has_key(const char *keys, const char *key)
{
	size_t n = strlen(key);

	for (; *keys == ';'; keys += 1 + strcspn(keys + 1, ";"))
		if (strncasecmp(keys + 1, key, n) == 0 && keys[1 + n] == '=')
			return true;
	return false;
}

static int open_part(struct preset *p, size_t at, const struct spec *s,
		     const struct trigger_env *env)
{
	struct trigger **part = &p->parts[p->nparts];
	const char *keys = s->text + s->head_len;
	char text[LINE_BYTES];
	int n = snprintf(text, sizeof(text), "%s;TriggerMSec=%.*s%s%s", lines[at].line,
			 (int)s->head_len, s->text,
			 has_key(keys, "InFlight") ? "" : ";InFlight=true", keys);
	int rc;

	if (n < 0 || (size_t)n >= sizeof(text))
		return err_set(s->err, ERR_USAGE, "'%.100s...': the rule is too long", s->text);
	rc = trigger_open(&event_match_trigger, text, env, part, s->err);
	if (rc)
		return rc;
	((struct duration *)*part)->what = "request";
	((struct duration *)*part)->says = lines[at].says;
	/* All parts share one limit, which moves for all at once. */
	(*part)->limit = p->parts[0]->limit;
	p->nparts++;
	return 0;
}

static int preset_open(struct trigger *t, const struct trigger_env *env, struct err *err)
{
	struct preset *p = (struct preset *)t;
	struct spec s;
	double ms = 0;
	size_t i;
	int rc;

	spec_begin(&s, t->text, err);
	rc = spec_number(&s, t->ops->title, t->text, s.head_len, &ms);
	if (!rc && ms < 0)
		return err_set(err, ERR_USAGE, "%s: '%.60s' is below zero", t->ops->title, t->text);
	for (i = 0; !rc && ms > 0 && i < COUNT_OF(lines); i++)
		if (lines[i].ops == t->ops)
			rc = open_part(p, i, &s, env);
	if (p->nparts)
		t->limit = p->parts[0]->limit;
	return rc;
}

const char *preset_line(const struct trigger *t, unsigned i)
{
	const struct preset *p = (const struct preset *)t;

	if ((t->ops != &request_trigger && t->ops != &app_fabric_trigger) || i >= p->nparts)
		return NULL;
	return p->parts[i]->text;
}

static int preset_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	const struct preset *p = (const struct preset *)t;
	unsigned i;
	int rc = 0;

	for (i = 0; !rc && i < p->nparts; i++)
		rc = event_match_trigger.needs(p->parts[i], out, err);
	return rc;
}

/* Each part has two wishes at most. */
static bool preset_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	const struct preset *p = (const struct preset *)t;

	return i / 2 < p->nparts && event_match_trigger.wish(p->parts[i / 2], i % 2, out);
}

static void preset_sense(struct trigger *t, const struct event *e, struct buf *why,
			 struct sense *out)
{
	struct preset *p = (struct preset *)t;
	struct trigger_counts sums = {.covered = t->counts.covered};
	unsigned i;

	for (i = 0; i < p->nparts; i++) {
		const struct trigger_counts *c = &p->parts[i]->counts;

		if (!out->hit)
			event_match_trigger.sense(p->parts[i], e, why, out);
		sums.seen += c->seen;
		sums.matched += c->matched;
		sums.dropped_process += c->dropped_process;
		sums.dropped_filter += c->dropped_filter;
		sums.orphans += c->orphans;
		sums.lost += c->lost;
	}
	t->counts = sums;
	if (out->measured)
		trigger_value(t, out->value, e->time_ns);
}

static void preset_status(const struct trigger *t, struct trigger_status *out)
{
	bool ended = t->value == t->value;
	char ms[NUMBER_TEXT_BYTES];
	struct buf line = {0};

	out->unit = "ms";
	if (!t->limit) {
		snprintf(out->text, sizeof(out->text), "off: its limit is 0");
		return;
	}
	ms_text(t->value, ms);
	buf_printf(&line, "%s%s, limit > ", ended ? ms : "no request has ended yet",
		   ended ? " ms" : "");
	threshold_text(t->limit, &line);
	buf_printf(&line, " ms%s", trigger_window_text(t));
	snprintf(out->text, sizeof(out->text), "%s", buf_text(&line));
	buf_free(&line);
}

#define PRESET_OPS \
	.usage = "MS[;Process=...][;InFlight=false][;Floor=...]", .bytes = sizeof(struct preset), \
	.kinds = 1u << EVENT_GENERIC | 1u << EVENT_TICK | 1u << EVENT_PROCESS_EXIT, \
	.saves_limit = true, .open = preset_open, .needs = preset_needs, .feed = trigger_feed, \
	.status = preset_status, .close = preset_close, .sense = preset_sense, .wish = preset_wish

const struct trigger_ops request_trigger = {
	.name = "stop-on-request-over-msec", .title = "StopOnRequestOverMsec",
	.summary = "keep an incident when a request of IIS or ASP.NET Core takes longer than MS",
	PRESET_OPS,
};
const struct trigger_ops app_fabric_trigger = {
	.name = "stop-on-app-fabric-over-msec", .title = "StopOnAppFabricOverMsec",
	.summary = "keep an incident when an AppFabric request takes longer than MS",
	PRESET_OPS,
};
