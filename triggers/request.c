#include "triggers/request.h"

#include "triggers/duration.h"
#include "triggers/event_match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PARTS_MAX 3u
#define LINE_BYTES 1024

struct preset {
	struct trigger base;
	struct trigger *parts[PARTS_MAX];
	unsigned nparts;                     /* 0 = off */
};

/* PROVIDER/EVENT and keys, ending in NULL; TriggerMSec and the user's keys are appended. */
static const char *const request_lines[] = {
	"{DE4649C9-15E8-4FEA-9D85-1CDDA520C334}/EventID(1);StopEvent=EventID(2);Level=1",
	"*Microsoft.AspNetCore.Hosting/Request/Start;StopEvent=Request/Stop;StartStopID=ActivityID",
	NULL,
};
static const char *const app_fabric_lines[] = {
	"{A77DCF21-545F-4191-B3D0-C396CF2683F2}/EventID(123);StopEvent=EventID(127);"
	"StartStopID=1;Level=5",
	NULL,
};

static void preset_close(struct trigger *t)
{
	struct preset *p = (struct preset *)t;

	if (!p)
		return;
	while (p->nparts)
		event_match_close(p->parts[--p->nparts]);
	free(p->base.spec);
	free(p);
}

static bool has_key(const char *keys, const char *key)
{
	size_t n = strlen(key);

	for (; *keys == ';'; keys += 1 + strcspn(keys + 1, ";"))
		if (strncasecmp(keys + 1, key, n) == 0 && keys[1 + n] == '=')
			return true;
	return false;
}

static int open_part(struct preset *p, const char *line, const struct spec *s,
		     const struct trigger_env *env, struct err *err)
{
	char text[LINE_BYTES];
	const char *keys = s->text + s->head_len;
	int n = snprintf(text, sizeof(text), "%s;TriggerMSec=%.*s%s%s", line, (int)s->head_len,
			 s->text, has_key(keys, "InFlight") ? "" : ";InFlight=true", keys);
	int rc;

	if (n < 0 || (size_t)n >= sizeof(text))
		return err_set(err, ERR_USAGE, "'%.100s...': the rule is too long", s->text);
	rc = event_match_open(p->base.ops, NULL, text, text, "request", env, &p->parts[p->nparts],
			      err);
	if (!rc)
		p->nparts++;
	return rc;
}

static int preset_open(const struct trigger_ops *ops, const char *title, const char *const *lines,
		       const char *text, const struct trigger_env *env, struct trigger **out,
		       struct err *err)
{
	struct preset *p = calloc(1, sizeof(*p));
	struct spec s;
	double ms = 0;
	int rc;

	spec_begin(&s, text);
	if (!p)
		return err_memory(err, "for the rule '%.200s'", text);
	rc = trigger_init(&p->base, ops, title, text,
			  1u << EVENT_GENERIC | 1u << EVENT_TICK | 1u << EVENT_PROCESS_EXIT, err);
	if (!rc)
		rc = spec_number(&s, title, text, s.head_len, &ms, err);
	if (!rc && ms < 0)
		rc = err_set(err, ERR_USAGE, "%s: '%.60s' is below zero", title, text);
	for (; !rc && ms > 0 && *lines; lines++)
		rc = open_part(p, *lines, &s, env, err);
	if (rc) {
		preset_close(&p->base);
		return rc;
	}
	if (p->nparts)
		p->base.limit = p->parts[0]->limit;
	*out = &p->base;
	return 0;
}

static int request_open(const char *spec, const struct trigger_env *env, struct trigger **out,
			struct err *err)
{
	return preset_open(&request_trigger, "StopOnRequestOverMsec", request_lines, spec, env, out,
			   err);
}

static int app_fabric_open(const char *spec, const struct trigger_env *env, struct trigger **out,
			   struct err *err)
{
	return preset_open(&app_fabric_trigger, "StopOnAppFabricOverMsec", app_fabric_lines, spec,
			   env, out, err);
}

const char *preset_line(const struct trigger *t, unsigned i)
{
	const struct preset *p = (const struct preset *)t;

	if ((t->ops != &request_trigger && t->ops != &app_fabric_trigger) || i >= p->nparts)
		return NULL;
	return p->parts[i]->spec;
}

static int preset_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	const struct preset *p = (const struct preset *)t;
	unsigned i;
	int rc = 0;

	for (i = 0; !rc && i < p->nparts; i++)
		rc = event_match_needs(p->parts[i], out, err);
	return rc;
}

/* Each part has two wishes at most. */
static bool preset_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	const struct preset *p = (const struct preset *)t;

	return i / 2 < p->nparts && event_match_wish(p->parts[i / 2], i % 2, out);
}

/* All parts share one limit, which moves for all at once. */
static void share_limit(struct preset *p, const struct threshold *limit)
{
	unsigned i;

	for (i = 0; i < p->nparts; i++)
		if (p->parts[i]->limit != limit)
			*p->parts[i]->limit = *limit;
}

static void preset_sense(struct trigger *t, const struct event *e, struct buf *why,
			 struct sense *out)
{
	struct preset *p = (struct preset *)t;
	uint64_t covered = t->counts.covered;
	unsigned i;

	memset(&t->counts, 0, sizeof(t->counts));
	t->counts.covered = covered;
	for (i = 0; i < p->nparts; i++) {
		const struct trigger_counts *c = &p->parts[i]->counts;

		if (!out->hit)
			event_match_sense(p->parts[i], e, why, out);
		t->counts.seen += c->seen;
		t->counts.matched += c->matched;
		t->counts.dropped_process += c->dropped_process;
		t->counts.dropped_filter += c->dropped_filter;
		t->counts.orphans += c->orphans;
		t->counts.lost += c->lost;
	}
	if (out->measured)
		trigger_value(t, out->value, e->time_ns);
}

static bool preset_feed(struct trigger *t, const struct event *e, struct buf *why)
{
	bool fires = trigger_feed(t, e, why);

	if (fires)
		share_limit((struct preset *)t, t->limit);
	return fires;
}

static int preset_load(struct trigger *t, const void *bytes, size_t n, uint64_t away_ns,
		       struct err *err)
{
	int rc = trigger_load_limit(t, bytes, n, away_ns, err);

	if (!rc && t->limit)
		share_limit((struct preset *)t, t->limit);
	return rc;
}

static void preset_limit_changed(struct trigger *t)
{
	share_limit((struct preset *)t, t->limit);
}

static void preset_status(const struct trigger *t, struct trigger_status *out)
{
	const struct preset *p = (const struct preset *)t;
	char ms[NUMBER_TEXT_BYTES];
	struct buf line = {0};

	trigger_status_base(t, out);
	out->unit = "ms";
	if (!p->nparts) {
		snprintf(out->text, sizeof(out->text), "off: its limit is 0");
		return;
	}
	ms_text(t->value, ms);
	buf_printf(&line, "%s%s, limit > ", t->value != t->value ? "no request has ended yet" : ms,
		   t->value != t->value ? "" : " ms");
	threshold_text(t->limit, &line);
	buf_printf(&line, " ms%s", trigger_window_text(t));
	snprintf(out->text, sizeof(out->text), "%s", buf_text(&line));
	buf_free(&line);
}

#define PRESET_OPS(name_, summary_, open_)                                                      \
	{                                                                                       \
		.name = name_, .usage = "MS[;Process=...][;InFlight=false][;Floor=...]",        \
		.summary = summary_, .open = open_, .needs = preset_needs, .feed = preset_feed, \
		.fired = trigger_fired, .status = preset_status, .close = preset_close,         \
		.sense = preset_sense, .save = trigger_save_limit, .load = preset_load,         \
		.limit_changed = preset_limit_changed, .wish = preset_wish,                     \
	}

const struct trigger_ops request_trigger =
	PRESET_OPS("stop-on-request-over-msec",
		   "keep an incident when a request of IIS or ASP.NET Core takes longer than MS",
		   request_open);
const struct trigger_ops app_fabric_trigger = PRESET_OPS(
	"stop-on-app-fabric-over-msec",
	"keep an incident when an AppFabric request takes longer than MS", app_fabric_open);
