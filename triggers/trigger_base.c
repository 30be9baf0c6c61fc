/* What all kinds of rules share; see trigger.h. */
#include "triggers/threshold.h"
#include "triggers/trigger.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int trigger_init(struct trigger *t, const struct trigger_ops *ops, const char *title,
		 const char *spec, uint32_t kinds, struct err *err)
{
	size_t ntitle = title ? strlen(title) : 0, nspec = strlen(spec);
	char *text = malloc(ntitle + nspec + 2);

	if (!text)
		return err_memory(err, "for the rule '%.200s'", spec);
	sprintf(text, "%s%s%s", title ? title : "", ntitle && nspec ? ":" : "", spec);
	t->ops = ops;
	t->kinds = kinds;
	t->value = t->nearest = NAN;
	t->spec = text;
	return 0;
}

void trigger_value(struct trigger *t, double value, uint64_t time_ns)
{
	t->value = value;
	if (t->nearest != t->nearest ||
	    (t->limit ? threshold_nearer(t->limit, value, t->nearest) : value > t->nearest)) {
		t->nearest = value;
		t->nearest_ns = time_ns;
	}
}

bool trigger_feed(struct trigger *t, const struct event *e, struct buf *why)
{
	struct sense sense = {.value = NAN};

	t->ops->sense(t, e, why, &sense);
	if (!sense.hit)
		return false;
	if (t->in_window) {
		t->counts.covered++;
		return false;
	}
	t->in_window = true;
	if (t->limit)
		threshold_fired(t->limit, e->time_ns);
	return true;
}

void trigger_fired(struct trigger *t)
{
	t->in_window = false;
	t->nearest = NAN;
	t->nearest_ns = 0;
}

void trigger_set_limit(struct trigger *t, double limit)
{
	t->limit->limit = limit;
	if (t->ops->limit_changed)
		t->ops->limit_changed(t);
}

int trigger_save_limit(const struct trigger *t, struct buf *out)
{
	if (t->limit && threshold_moves(t->limit))
		threshold_save(t->limit, out);
	return buf_check(out, "a rule's state", NULL);
}

int trigger_load_limit(struct trigger *t, const void *bytes, size_t n, uint64_t away_ns,
		       struct err *err)
{
	if (!t->limit || !threshold_moves(t->limit))
		return 0;
	return threshold_load(t->limit, bytes, n, away_ns, err);
}

const char *trigger_window_text(const struct trigger *t)
{
	return t->in_window ? ", in its incident's window" : "";
}

void trigger_status_base(const struct trigger *t, struct trigger_status *out)
{
	memset(out, 0, sizeof(*out));
	out->phase = t->counts.seen ? TRIGGER_ARMED : TRIGGER_WAITING_DATA;
	out->value = t->value;
	out->limit = t->limit ? threshold_now(t->limit) : NAN;
	out->nearest = t->nearest;
	out->nearest_ns = t->nearest_ns;
	out->counts = t->counts;
}
