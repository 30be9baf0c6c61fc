/*
 * The recorder's own cost, checked once a second of the real clock. A decision takes effect in the
 * source, which puts EVENT_RATE among its events: there a segment ends, so that each has one
 * period, and the event gets the reason. Merge thread.
 */
#include "engine/engine_private.h"

#include <stdio.h>

/* The start reads every process and the programs that run: its cost does not tell what follows. */
#define START_NS (30 * NS_PER_SEC)

static bool copies_stack(const struct engine *e)
{
	uint32_t i;

	for (i = 0; i < e->feed.n; i++)
		if (e->feed.sources[i].ops->copies_stack)
			return true;
	return false;
}

void engine_budget_open(struct engine *e)
{
	const struct capture *c = e->capture;
	struct budget_level asked = {c->freq_hz, copies_stack(e) ? c->stack_kb : 0};

	budget_init(&e->merge.budget, &e->cfg->budget, asked, c->allow_fp);
}

static void level_text(const struct engine *e, const struct budget_level *level, char *out,
		       size_t n)
{
	if (!copies_stack(e))
		snprintf(out, n, "%u Hz", level->freq_hz);
	else if (level->stack_kb)
		snprintf(out, n, "%u Hz with %u KB of stack", level->freq_hz, level->stack_kb);
	else
		snprintf(out, n, "%u Hz by frame pointers", level->freq_hz);
}

/* "the recorder took 1.4 % of a CPU, over its limit of 1 %"; the same for memory. */
static void why_text(const struct budget *b, enum budget_move move, char *out, size_t n)
{
	if (move == BUDGET_UP)
		snprintf(out, n, "the recorder takes %.2f %% of a CPU again", b->cpu_pct);
	else if (b->over_rss)
		snprintf(out, n, "the recorder took %.0f MB of memory, over its limit of %.0f MB",
			 (double)b->rss_bytes / 1048576, (double)b->limits.max_rss_bytes / 1048576);
	else
		snprintf(out, n, "the recorder took %.2f %% of a CPU, over its limit of %.4g %%",
			 b->cpu_pct, b->limits.max_cpu_pct);
}

void engine_budget_look(struct engine *e)
{
	struct merge *m = &e->merge;
	const struct budget_level *now;
	enum budget_move move;
	uint64_t cpu_ns, rss_bytes;
	char level[80], why[200];

	if (!e->policy->by_clock || os_now_ns() - m->start_ns < START_NS)
		return;
	os_self_usage(&cpu_ns, &rss_bytes);
	move = budget_feed(&m->budget, os_now_ns(), cpu_ns, rss_bytes);
	now = &m->budget.levels[m->budget.level];
	level_text(e, now, level, sizeof(level));
	if (move != BUDGET_STAYS) {
		why_text(&m->budget, move, m->budget_reason, sizeof(m->budget_reason));
		log_line(e->log, move == BUDGET_DOWN ? LOG_WARN : LOG_INFO,
			 "%s: sampling continues at %s", m->budget_reason, level);
		feed_set_level(&e->feed, &(struct source_level){now->freq_hz, now->stack_kb});
	} else if (budget_exhausted(&m->budget) && !m->budget.reported_exhausted) {
		m->budget.reported_exhausted = true;
		why_text(&m->budget, BUDGET_DOWN, why, sizeof(why));
		log_line(e->log, LOG_WARN,
			 "%s, and sampling cannot be reduced further: it stays at %s", why, level);
	}
}

void engine_budget_rate(struct engine *e, struct event *event)
{
	engine_seal(e);
	segment_set_period(e->merge.builder, STREAM_CPU, (uint64_t)event->value);
	if (!event->name || !*event->name)
		event->name = e->merge.budget_reason;
}
