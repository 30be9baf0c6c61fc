/*
 * The recorder's own cost, checked once a second of the real clock. First caches and the ring
 * shrink to what --max-rss-mb has room for. When that is not enough, or CPU time is over its limit,
 * sampling gets less: that takes effect in the source, which puts EVENT_RATE among its events.
 * There a segment ends, so that each has one period, and the event gets the reason. Merge thread.
 */
#include "engine/engine_private.h"

#include "model/own_event.h"

#include <stdio.h>

/* The start reads every process and the programs that run: its cost does not tell what follows. */
#define START_NS (30 * NS_PER_SEC)

static double mb(uint64_t bytes)
{
	return (double)bytes / 1048576;
}

/* ---- memory --------------------------------------------------------------------------------- */

static void share_memory(struct engine *e)
{
	const struct memory_share *now = &e->merge.memory.now;
	uint32_t i;

	ring_set_max(e->ring, (size_t)now->ring_bytes);
	symbols_set_max(e->symbols, (size_t)now->symbol_bytes);
	for (i = 0; i < e->feed.n; i++) {
		if (e->feed.sources[i].ops->set_memory)
			e->feed.sources[i].ops->set_memory(e->feed.sources[i].source,
							   (size_t)now->table_bytes);
	}
}

/* "51 MB are resident, and the limit is 50 MB: the buffer held 9.9 MB, and may hold 9.5 MB now" */
static void report_memory(struct engine *e, enum memory_move move, uint64_t before)
{
	const struct memory_budget *m = &e->merge.memory;
	char done[120], text[240];

	switch (move) {
	case MEMORY_CACHES:
		snprintf(done, sizeof(done),
			 "unwind tables may take %.1f MB and symbols %.1f MB now",
			 mb(m->now.table_bytes), mb(m->now.symbol_bytes));
		break;
	case MEMORY_RING:
		snprintf(done, sizeof(done), "the buffer held %.1f MB, and may hold %.1f MB now",
			 mb(before), mb(m->now.ring_bytes));
		break;
	case MEMORY_UP:
		snprintf(done, sizeof(done), "the buffer may hold %.1f MB again, unwind tables "
			 "%.1f MB, symbols %.1f MB", mb(m->now.ring_bytes),
			 mb(m->now.table_bytes), mb(m->now.symbol_bytes));
		break;
	default:
		return;                      /* unused memory of the heap went back: no news */
	}
	snprintf(text, sizeof(text), "%.1f MB are resident, and the limit is %.0f MB: %s",
		 mb(m->rss_bytes), mb(m->max_bytes), done);
	own_event_say(e, move == MEMORY_UP ? LOG_INFO : LOG_WARN, OWN_MEMORY, text);
}

static struct memory_share held_now(struct engine *e)
{
	struct memory_share held = {0};
	struct source_status status;
	struct symbols_use symbols;
	struct ring_use use;
	uint32_t i;

	ring_use(e->ring, &use);
	symbols_use(e->symbols, &symbols);
	held.ring_bytes = use.bytes;
	held.symbol_bytes = symbols.cache_bytes;
	for (i = 0; i < e->feed.n; i++)
		if (e->feed.sources[i].ops->set_memory &&
		    feed_status(&e->feed.sources[i], &status))
			held.table_bytes += status.table_bytes;
	return held;
}

static void look_at_memory(struct engine *e)
{
	struct memory_share held;
	enum memory_move move;
	uint64_t cpu_ns, rss_bytes;

	if (!e->merge.memory.max_bytes)
		return;
	os_self_usage(&cpu_ns, &rss_bytes);
	held = held_now(e);
	move = memory_budget_feed(&e->merge.memory, os_now_ns(), rss_bytes, &held);
	if (move == MEMORY_STAYS)
		return;
	if (move != MEMORY_TRIM)
		share_memory(e);
	if (move == MEMORY_RING)             /* forget what only evicted segments listed */
		tables_sweep(e, true);
	if (move != MEMORY_UP)
		os_give_memory_back();
	report_memory(e, move, held.ring_bytes);
}

/* ---- sampling ------------------------------------------------------------------------------- */

static bool copies_stack(const struct engine *e)
{
	uint32_t i;

	for (i = 0; i < e->feed.n; i++)
		if (e->feed.sources[i].ops->copies_stack)
			return true;
	return false;
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
			 mb(b->rss_bytes), mb(b->limits.max_rss_bytes));
	else
		snprintf(out, n, "the recorder took %.2f %% of a CPU, over its limit of %.4g %%",
			 b->cpu_pct, b->limits.max_cpu_pct);
}

struct own_usage costs_own(struct engine *e)
{
	struct own_usage own;

	os_self_usage(&own.cpu_ns, &own.rss_bytes);
	symbols_sandbox_usage(e->symbols, &own.sandbox_cpu_ns, &own.sandbox_rss_bytes);
	feed_add_usage(&e->feed, &own.sandbox_cpu_ns, &own.sandbox_rss_bytes);
	own.cpu_ns += own.sandbox_cpu_ns;
	return own;
}

static void look_at_sampling(struct engine *e)
{
	struct merge *m = &e->merge;
	const struct budget_level *now;
	enum budget_move move;
	struct own_usage own;
	char level[80], why[200];

	if (!e->policy->by_clock || os_now_ns() - m->start_ns < START_NS)
		return;
	own = costs_own(e);
	move = budget_feed(&m->budget, os_now_ns(), own.cpu_ns, own.rss_bytes);
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

/* ---- both ----------------------------------------------------------------------------------- */

static void set_budget(struct engine *e)
{
	const struct capture *c = e->capture;
	struct budget_level asked = {c->freq_hz, copies_stack(e) ? c->stack_kb : 0};

	budget_init(&e->merge.budget, &e->cfg->budget, asked, c->allow_fp);
}

void costs_change(struct engine *e)
{
	struct merge *m = &e->merge;

	set_budget(e);
	snprintf(m->budget_reason, sizeof(m->budget_reason), "the configuration was read anew");
	feed_set_level(&e->feed, &(struct source_level){e->capture->freq_hz, e->capture->stack_kb});
}

void costs_open(struct engine *e)
{
	const struct engine_config *cfg = e->cfg;
	const struct memory_share memory = {
		.ring_bytes = cfg->ring_bytes, .pinned_bytes = cfg->pinned_bytes,
		.table_bytes = cfg->table_bytes, .symbol_bytes = cfg->symbol_bytes,
	};

	set_budget(e);
	memory_budget_init(&e->merge.memory, e->policy->by_clock ? cfg->budget.max_rss_bytes : 0,
			   &memory);
	if (e->merge.memory.max_bytes)
		share_memory(e);
}

void costs_look(struct engine *e)
{
	look_at_memory(e);
	look_at_sampling(e);
}

void costs_rate(struct engine *e, struct event *event)
{
	engine_seal(e);
	segment_set_period(e->merge.builder, STREAM_CPU, (uint64_t)event->value);
	if (!event->name || !*event->name)
		event->name = e->merge.budget_reason;
	past_rate(e, (uint64_t)event->value, event->name);
}
