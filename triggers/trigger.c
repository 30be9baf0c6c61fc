#include "triggers/trigger.h"

#include "triggers/composite.h"
#include "triggers/event_match.h"
#include "triggers/exception.h"
#include "triggers/gc_duration.h"
#include "triggers/log_message.h"
#include "triggers/perf_counter.h"
#include "triggers/process.h"
#include "triggers/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct trigger_ops *const triggers[] = {
	&perf_counter_trigger,
	&start_counter_trigger,
	&gc_over_trigger,
	&gc_suspend_over_trigger,
	&bgc_final_pause_over_trigger,
	&gen2_gc_trigger,
	&event_match_trigger,
	&exception_trigger,
	&request_trigger,
	&app_fabric_trigger,
	&log_message_trigger,
	&process_trigger,
	&composite_trigger,
	NULL,
};

const struct trigger_ops *trigger_kind(const char *name)
{
	size_t i;

	for (i = 0; triggers[i]; i++)
		if (strcmp(triggers[i]->name, name) == 0)
			return triggers[i];
	return NULL;
}

/*
 * Cut ";KEY" or ";KEY=VALUE" from the end of a specification. returns the value, "" = without one;
 * NULL = it does not end so.
 */
static const char *take_end(char *spec, const char *key)
{
	char *at = strrchr(spec, ';'), *value;

	if (!at || strncasecmp(at + 1, key, strlen(key)) != 0)
		return NULL;
	value = at + 1 + strlen(key);
	if (*value && *value != '=')
		return NULL;
	*at = '\0';
	return *value ? value + 1 : value;
}

/* What every kind may end in, in any order. */
static void take_ends(struct trigger *t, char *spec)
{
	const char *value;
	bool more;

	do {
		more = false;
		if (!t->stacks && (value = take_end(spec, "Stacks"))) {
			t->stacks = value;
			more = true;
		}
		if (!t->peers && (value = take_end(spec, "Peers"))) {
			t->peers = value;
			more = true;
		}
	} while (more);
}

int trigger_open(const struct trigger_ops *ops, const char *spec, const struct trigger_env *env,
		 struct trigger **out, struct err *err)
{
	const char *title = ops->title ? ops->title : "";
	size_t nspec = strlen(spec);
	struct trigger *t = calloc(1, ops->bytes + strlen(title) + 2 * (nspec + 2));
	char *shown, *text;
	int rc;

	if (!t)
		return err_memory(err, "for the rule '%.200s'", spec);
	shown = (char *)t + ops->bytes;
	sprintf(shown, "%s%s%s", title, *title && nspec ? ":" : "", spec);
	text = shown + strlen(shown) + 1;
	strcpy(text, spec);
	take_ends(t, text);
	t->ops = ops;
	t->spec = shown;
	t->text = text;
	t->kinds = ops->kinds;
	t->value = t->nearest = NAN;
	rc = t->peers && !*t->peers
		     ? err_set(err, ERR_USAGE, "'%.200s': Peers= names other recorders, as in "
			       ";Peers=web*", spec)
		     : ops->open(t, env, err);
	if (rc)
		trigger_close(t);
	else
		*out = t;
	return rc;
}

void trigger_close(struct trigger *t)
{
	if (t && t->ops->close)
		t->ops->close(t);
	free(t);
}

void trigger_fired(struct trigger *t)
{
	t->in_window = false;
	t->nearest = NAN;
	t->nearest_ns = 0;
}

void trigger_status(const struct trigger *t, struct trigger_status *out)
{
	*out = (struct trigger_status){
		.phase = t->counts.seen ? TRIGGER_ARMED : TRIGGER_WAITING_DATA,
		.value = t->value, .limit = t->limit ? threshold_now(t->limit) : NAN,
		.nearest = t->nearest, .nearest_ns = t->nearest_ns, .counts = t->counts,
	};
	snprintf(out->text, sizeof(out->text), "%s%s",
		 t->counts.seen ? "armed" : "no such event yet", trigger_window_text(t));
	if (t->ops->status)
		t->ops->status(t, out);
}

void trigger_set_limit(struct trigger *t, double limit)
{
	t->limit->limit = limit;
}

static bool saves_limit(const struct trigger *t)
{
	return t->ops->saves_limit && t->limit && threshold_moves(t->limit);
}

int trigger_save(const struct trigger *t, struct buf *out)
{
	if (saves_limit(t))
		threshold_save(t->limit, out);
	return buf_check(out, "a rule's state", NULL);
}

int trigger_load(struct trigger *t, const void *bytes, size_t n, uint64_t away_ns, struct err *err)
{
	return saves_limit(t) ? threshold_load(t->limit, bytes, n, away_ns, err) : 0;
}

/* ---- for the kinds --------------------------------------------------------------------------- */

bool trigger_feed(struct trigger *t, const struct event *e, struct buf *why)
{
	struct sense sense = {.value = NAN};

	t->ops->sense(t, e, why, &sense);
	if (!sense.hit)
		return false;
	if (t->in_window) {
		t->counts.covered++;
		if (t->limit)
			threshold_follow(t->limit, sense.value);
		return false;
	}
	t->in_window = true;
	if (t->limit)
		threshold_fired(t->limit, sense.value, e->time_ns);
	return true;
}

bool trigger_wants(struct trigger *t, const struct process *process)
{
	bool wanted = process_filter_pass(&t->processes, process);

	t->counts.seen++;
	t->counts.dropped_process += !wanted;
	return wanted;
}

bool trigger_matches(struct trigger *t, bool passes, struct sense *out)
{
	if (passes)
		t->counts.matched++;
	else
		t->counts.dropped_filter++;
	out->hit = passes;
	return passes;
}

void trigger_value(struct trigger *t, double value, uint64_t time_ns)
{
	struct trigger_interval *interval = &t->interval;

	t->value = value;
	if (value == value) {
		interval->max = interval->n && interval->max > value ? interval->max : value;
		interval->sum += value;
		interval->n++;
	}
	if (t->nearest != t->nearest ||
	    (t->limit ? threshold_nearer(t->limit, value, t->nearest) : value > t->nearest)) {
		t->nearest = value;
		t->nearest_ns = time_ns;
	}
}

const char *trigger_window_text(const struct trigger *t)
{
	return t->in_window ? ", in its incident's window" : "";
}
