/*
 * The recorder's own cost, looked at once a second of the real clock. What is decided here takes effect
 * in the source, which says so by EVENT_RATE among its events: there a segment ends, so that each has
 * one period, and the reason is put beside it.
 */
#include "engine/engine_private.h"

#include <stdio.h>

/* The start reads every process and the programs that run: what that takes says nothing of later. */
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
	struct budget_level asked = {e->cfg->capture.freq_hz, copies_stack(e) ? e->cfg->capture.stack_kb : 0};

	budget_init(&e->budget, &e->cfg->budget, asked, e->cfg->capture.allow_fp);
}

static void level_text(const struct engine *e, const struct budget_level *level, char *out, size_t n)
{
	if (!copies_stack(e))
		snprintf(out, n, "%u Hz", level->freq_hz);
	else if (level->stack_kb)
		snprintf(out, n, "%u Hz with %u KB of stack", level->freq_hz, level->stack_kb);
	else
		snprintf(out, n, "%u Hz by frame pointers", level->freq_hz);
}

/* "the recorder took 1.4 % of a CPU, its limit being 1 %"; the same of memory. */
static void why_text(const struct budget *b, enum budget_move move, char *out, size_t n)
{
	if (move == BUDGET_UP)
		snprintf(out, n, "the recorder takes %.2f %% of a CPU again", b->cpu_pct);
	else if (b->over_rss)
		snprintf(out, n, "the recorder took %.0f MB of memory, its limit being %.0f MB",
			 (double)b->rss_bytes / 1048576, (double)b->limits.max_rss_bytes / 1048576);
	else
		snprintf(out, n, "the recorder took %.2f %% of a CPU, its limit being %.4g %%", b->cpu_pct,
			 b->limits.max_cpu_pct);
}

static void apply(struct engine *e, const struct budget_level *level)
{
	struct source_level to = {level->freq_hz, level->stack_kb};

	feed_set_level(&e->feed, &to);
}

void engine_budget_look(struct engine *e)
{
	const struct budget_level *now;
	enum budget_move move;
	uint64_t cpu_ns, rss_bytes;
	char level[80];

	if (!e->cfg->live || os_now_ns() - e->start_ns < START_NS)
		return;
	os_self_usage(&cpu_ns, &rss_bytes);
	move = budget_feed(&e->budget, os_now_ns(), cpu_ns, rss_bytes);
	now = &e->budget.levels[e->budget.level];
	level_text(e, now, level, sizeof(level));
	if (move != BUDGET_STAYS) {
		why_text(&e->budget, move, e->budget_reason, sizeof(e->budget_reason));
		log_line(e->log, move == BUDGET_DOWN ? LOG_WARN : LOG_INFO, "%s: sampling goes on at %s",
			 e->budget_reason, level);
		apply(e, now);
	} else if (budget_exhausted(&e->budget) && !e->budget.at_bottom_told) {
		char why[200];

		e->budget.at_bottom_told = true;
		why_text(&e->budget, BUDGET_DOWN, why, sizeof(why));
		log_line(e->log, LOG_WARN, "%s, and there is nothing left to take back: it stays at %s", why,
			 level);
	}
}

void engine_budget_rate(struct engine *e, struct event *event)
{
	engine_seal(e);
	segment_set_period(e->builder, STREAM_CPU, (uint64_t)event->value);
	if (!event->name || !*event->name)
		event->name = e->budget_reason;
}
