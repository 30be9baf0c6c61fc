#include "model/memory_budget.h"

#include <string.h>

#define SEC_NS 1000000000ULL
#define MB ((uint64_t)1 << 20)
#define STEP_NS (2 * SEC_NS)
#define TRIM_AGAIN_NS (10 * SEC_NS)
#define CALM_NS (60 * SEC_NS)
#define LEAST_RING_BYTES MB

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int memory_share(uint64_t max_bytes, const struct memory_share *wanted, struct memory_share *out,
		 struct err *err)
{
	uint64_t room;

	*out = *wanted;
	if (!max_bytes)
		return 0;
	if (max_bytes < MEMORY_LEAST_BYTES)
		return err_set(err, ERR_USAGE, "--max-rss-mb %u is too low: the recorder itself "
			       "takes some %u MB, and caches and history need room; give it %u or "
			       "more, or 0 for no limit", (unsigned)(max_bytes / MB),
			       (unsigned)(MEMORY_BASE_BYTES / MB),
			       (unsigned)(MEMORY_LEAST_BYTES / MB));
	room = max_bytes - MEMORY_BASE_BYTES - MEMORY_LEAST_TABLE_BYTES - MEMORY_LEAST_SYMBOL_BYTES;
	out->ring_bytes = smaller(wanted->ring_bytes, room / 8 * 5);
	out->pinned_bytes = smaller(wanted->pinned_bytes, room / 8);
	out->table_bytes = smaller(wanted->table_bytes, MEMORY_LEAST_TABLE_BYTES + room);
	out->symbol_bytes = smaller(wanted->symbol_bytes, MEMORY_LEAST_SYMBOL_BYTES + room);
	return 0;
}

void memory_budget_init(struct memory_budget *m, uint64_t max_bytes,
			const struct memory_share *asked)
{
	memset(m, 0, sizeof(*m));
	m->max_bytes = max_bytes;
	m->asked = m->now = *asked;
}

/* Of what they hold: half of what they may hold can be more than that. */
static uint64_t half(uint64_t may_bytes, uint64_t held_bytes, uint64_t least_bytes)
{
	return larger(smaller(may_bytes, held_bytes) / 2, least_bytes);
}

static bool halve_caches(struct memory_share *now, const struct memory_share *held)
{
	uint64_t tables = half(now->table_bytes, held->table_bytes, MEMORY_LEAST_TABLE_BYTES);
	uint64_t symbols = half(now->symbol_bytes, held->symbol_bytes, MEMORY_LEAST_SYMBOL_BYTES);

	if (tables >= now->table_bytes && symbols >= now->symbol_bytes)
		return false;
	now->table_bytes = smaller(now->table_bytes, tables);
	now->symbol_bytes = smaller(now->symbol_bytes, symbols);
	return true;
}

static enum memory_move step_down(struct memory_budget *m, uint64_t now_ns,
				  const struct memory_share *held)
{
	uint64_t high = m->max_bytes - m->max_bytes / 16;
	uint64_t over = m->rss_bytes > high ? m->rss_bytes - high : 0;
	uint64_t least = larger(m->asked.ring_bytes / 4, LEAST_RING_BYTES), to;

	m->calm_ns = 0;
	if (now_ns < m->next_ns && m->rss_bytes <= m->max_bytes)
		return MEMORY_STAYS;
	m->next_ns = now_ns + STEP_NS;
	if (!m->trimmed_ns || (over && now_ns - m->trimmed_ns >= TRIM_AGAIN_NS)) {
		m->trimmed_ns = now_ns;
		return MEMORY_TRIM;
	}
	if (halve_caches(&m->now, held))
		return MEMORY_CACHES;
	to = held->ring_bytes > over + least ? held->ring_bytes - over : least;
	if (!over || to >= m->now.ring_bytes)
		return MEMORY_STAYS;
	m->now.ring_bytes = to;
	return MEMORY_RING;
}

static uint64_t eighth_more(uint64_t now, uint64_t asked)
{
	return smaller(now + asked / 8, asked);
}

static enum memory_move step_up(struct memory_budget *m)
{
	m->calm_ns = 0;
	if (m->now.ring_bytes < m->asked.ring_bytes) {
		m->now.ring_bytes = eighth_more(m->now.ring_bytes, m->asked.ring_bytes);
	} else if (m->now.table_bytes < m->asked.table_bytes ||
		   m->now.symbol_bytes < m->asked.symbol_bytes) {
		m->now.table_bytes = eighth_more(m->now.table_bytes, m->asked.table_bytes);
		m->now.symbol_bytes = eighth_more(m->now.symbol_bytes, m->asked.symbol_bytes);
	} else {
		return MEMORY_STAYS;
	}
	return MEMORY_UP;
}

enum memory_move memory_budget_feed(struct memory_budget *m, uint64_t now_ns, uint64_t rss_bytes,
				    const struct memory_share *held)
{
	uint64_t passed_ns = m->last_ns && now_ns > m->last_ns ? now_ns - m->last_ns : 0;

	m->last_ns = now_ns;
	m->rss_bytes = rss_bytes;
	if (!m->max_bytes)
		return MEMORY_STAYS;
	if (rss_bytes > m->max_bytes - m->max_bytes / 8)
		return step_down(m, now_ns, held);
	m->trimmed_ns = 0;
	m->calm_ns = rss_bytes < m->max_bytes - m->max_bytes / 4 ? m->calm_ns + passed_ns : 0;
	return m->calm_ns > CALM_NS ? step_up(m) : MEMORY_STAYS;
}
