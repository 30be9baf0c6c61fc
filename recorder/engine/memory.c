/*
 * The recorder's own memory, checked once a second of the real clock: caches and the ring shrink to
 * what --max-rss-mb has room for. When that is not enough, sampling less (budget.c) remains. Merge
 * thread.
 */
#include "engine/engine_private.h"

#include "model/own_event.h"

#include <stdio.h>

static void apply(struct engine *e)
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

void memory_open(struct engine *e)
{
	const struct memory_share asked = {
		.ring_bytes = e->cfg->ring_bytes, .pinned_bytes = e->cfg->pinned_bytes,
		.table_bytes = e->cfg->table_bytes, .symbol_bytes = e->cfg->symbol_bytes,
	};

	memory_budget_init(&e->merge.memory, e->policy->by_clock ? e->cfg->budget.max_rss_bytes : 0,
			   &asked);
	if (e->merge.memory.max_bytes)
		apply(e);
}

static double mb(uint64_t bytes)
{
	return (double)bytes / 1048576;
}

/* "51 MB are resident, and the limit is 50 MB: the buffer held 9.9 MB, and may hold 9.5 MB now" */
static void say(struct engine *e, enum memory_move move, uint64_t before)
{
	const struct memory_budget *m = &e->merge.memory;
	char text[240];
	const struct event_field field = {
		.name = OWN_MEMORY_TEXT, .type = FIELD_TEXT, .v.text = text};
	int n = snprintf(text, sizeof(text), "%.1f MB are resident, and the limit is %.0f MB: ",
			 mb(m->rss_bytes), mb(m->max_bytes));
	size_t at = n > 0 && (size_t)n < sizeof(text) ? (size_t)n : 0;

	switch (move) {
	case MEMORY_CACHES:
		snprintf(text + at, sizeof(text) - at,
			 "unwind tables may take %.1f MB and symbols %.1f MB "
			 "now",
			 mb(m->now.table_bytes), mb(m->now.symbol_bytes));
		break;
	case MEMORY_RING:
		snprintf(text + at, sizeof(text) - at,
			 "the buffer held %.1f MB, and may hold %.1f MB "
			 "now",
			 mb(before), mb(m->now.ring_bytes));
		break;
	case MEMORY_UP:
		snprintf(text + at, sizeof(text) - at,
			 "the buffer may hold %.1f MB again, unwind tables %.1f "
			 "MB, symbols %.1f MB",
			 mb(m->now.ring_bytes), mb(m->now.table_bytes), mb(m->now.symbol_bytes));
		break;
	default:
		return;                      /* unused memory of the heap went back: no news */
	}
	log_line(e->log, move == MEMORY_UP ? LOG_INFO : LOG_WARN, "%s", text);
	if (e->merge.started)
		own_event_put(e, e->merge.now_ns, CPU_NONE, OWN_MEMORY, &field, 1);
}

void memory_look(struct engine *e)
{
	enum memory_move move;
	uint64_t cpu_ns, rss_bytes;
	struct ring_use use;

	if (!e->merge.memory.max_bytes)
		return;
	os_self_usage(&cpu_ns, &rss_bytes);
	ring_use(e->ring, &use);
	move = memory_budget_feed(&e->merge.memory, os_now_ns(), rss_bytes, use.bytes);
	if (move == MEMORY_STAYS)
		return;
	if (move != MEMORY_TRIM)
		apply(e);
	if (move == MEMORY_RING)             /* forget what only evicted segments listed */
		tables_sweep_all(e);
	if (move != MEMORY_UP)
		os_give_memory_back();
	say(e, move, use.bytes);
}
