#include "analysis/backtest.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define TICK_NS (100 * NS_PER_MS)
#define GAP_TICKS 36000u                 /* at most, in a gap between two events */

int backtest_init(struct backtest *b, struct trigger *const *rules, uint32_t n, uint64_t post_ns,
		  bool only_count, struct err *err)
{
	uint32_t i;

	memset(b, 0, sizeof(*b));
	b->rules = calloc(n + 1u, sizeof(*b->rules));
	if (!b->rules)
		return err_memory(err, "for the rules");
	for (i = 0; i < n; i++)
		b->rules[i].trigger = rules[i];
	b->nrules = n;
	b->post_ns = post_ns;
	b->only_count = only_count;
	return 0;
}

void backtest_free(struct backtest *b)
{
	while (b->nfirings)
		free(b->firings[--b->nfirings].why);
	free(b->firings);
	free(b->rules);
	memset(b, 0, sizeof(*b));
}

static int keep_firing(struct backtest *b, uint32_t rule, const struct event *e,
		       const struct buf *why, struct err *err)
{
	struct backtest_firing *f;
	struct trigger *t = b->rules[rule].trigger;
	struct trigger_status status;

	if (b->only_count || b->nfirings == BACKTEST_FIRINGS_MAX)
		return 0;
	if (ARRAY_NEXT(b->firings, b->nfirings))
		return err_memory(err, "for the firings");
	f = &b->firings[b->nfirings];
	trigger_status(t, &status);
	f->rule = rule;
	f->time_ns = e->time_ns;
	f->value = status.value;
	f->limit = status.limit;
	f->why = text_dup(buf_text(why), SIZE_MAX);
	if (!f->why)
		return err_memory(err, "for the firings");
	b->nfirings++;
	return 0;
}

static int feed_rules(struct backtest *b, const struct event *e, struct err *err)
{
	struct buf why = {0};
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < b->nrules; i++) {
		struct backtest_rule *r = &b->rules[i];
		struct trigger *t = r->trigger;

		if (r->in_window && e->time_ns >= r->window_end_ns &&
		    !(t->ops->lasts && e->time_ns - r->window_end_ns < TRIGGER_LASTS_NS &&
		      t->ops->lasts(t, r->fired_ns))) {
			r->in_window = false;
			trigger_fired(t);
		}
		if (t->kinds && !(t->kinds >> e->kind & 1))
			continue;
		buf_reset(&why);
		if (!t->ops->feed(t, e, &why))
			continue;
		r->fired++;
		r->in_window = true;
		r->fired_ns = e->time_ns;
		r->window_end_ns = e->time_ns + b->post_ns;
		rc = keep_firing(b, i, e, &why, err);
	}
	buf_free(&why);
	return rc;
}

static int tick_until(struct backtest *b, uint64_t until_ns, struct err *err)
{
	struct event tick = {.kind = EVENT_TICK, .cpu = CPU_NONE, .stack = STACK_NONE};
	uint64_t step_ns = TICK_NS;
	int rc = 0;

	if (until_ns > b->next_tick_ns && (until_ns - b->next_tick_ns) / TICK_NS > GAP_TICKS)
		step_ns = (until_ns - b->next_tick_ns) / GAP_TICKS;
	for (; !rc && b->next_tick_ns <= until_ns; b->next_tick_ns += step_ns) {
		tick.time_ns = b->next_tick_ns;
		rc = feed_rules(b, &tick, err);
	}
	return rc;
}

int backtest_feed(struct backtest *b, const struct event *e, struct err *err)
{
	int rc;

	if (!b->started) {
		b->started = true;
		b->first_ns = e->time_ns;
		b->next_tick_ns = e->time_ns + TICK_NS;
	}
	b->events++;
	if (e->time_ns > b->last_ns)
		b->last_ns = e->time_ns;
	rc = tick_until(b, e->time_ns, err);
	return rc ? rc : feed_rules(b, e, err);
}

int backtest_end(struct backtest *b, uint64_t until_ns, struct err *err)
{
	return b->started ? tick_until(b, until_ns, err) : 0;
}
