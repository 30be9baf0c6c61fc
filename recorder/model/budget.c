#include "model/budget.h"

#include "base/array.h"

#include <string.h>

#define SEC_NS 1000000000ULL
#define OVER_READINGS 5u
#define CALM_NS (60 * SEC_NS)
#define CALM_MAX_NS (16 * CALM_NS)

static const unsigned steps_hz[] = {49, 19};
#define STEP_STACK_KB 8u
#define BASE_HZ 99u

double budget_default_cpu_pct(unsigned cpus, unsigned freq_hz)
{
	double pct = 0.3 * cpus > 1 ? 0.3 * cpus : 1;

	return freq_hz > BASE_HZ ? pct * freq_hz / BASE_HZ : pct;
}

void budget_init(struct budget *b, const struct budget_limits *limits, struct budget_level asked,
		 bool allow_fp)
{
	struct budget_level next = asked;
	unsigned i;

	memset(b, 0, sizeof(*b));
	b->limits = *limits;
	b->wait_ns = CALM_NS;
	b->levels[b->nlevels++] = asked;
	for (i = 0; i < COUNT_OF(steps_hz); i++) {
		if (next.freq_hz <= steps_hz[i])
			continue;
		next.freq_hz = steps_hz[i];
		b->levels[b->nlevels++] = next;
	}
	if (next.stack_kb > STEP_STACK_KB) {
		next.stack_kb = STEP_STACK_KB;
		b->levels[b->nlevels++] = next;
	}
	if (next.stack_kb && allow_fp) {
		next.stack_kb = 0;
		b->levels[b->nlevels++] = next;
	}
}

static void note_use(struct budget *b, uint64_t passed_ns, uint64_t used_ns, uint64_t rss_bytes)
{
	b->cpu_pct = 100 * (double)used_ns / (double)passed_ns;
	b->rss_bytes = rss_bytes;
	b->over_cpu = b->limits.max_cpu_pct > 0 && b->cpu_pct > b->limits.max_cpu_pct;
	b->over_rss = b->limits.max_rss_bytes && rss_bytes > b->limits.max_rss_bytes;
	if (b->over_cpu || b->over_rss)
		b->over++;
	else if (b->over)
		b->over--;
}

/* Sampling less does not halve memory: for memory it is enough to be below the limit. */
static bool is_calm(const struct budget *b)
{
	return !(b->limits.max_cpu_pct > 0 && b->cpu_pct > b->limits.max_cpu_pct / 2) &&
	       !b->over_rss;
}

static enum budget_move step_down(struct budget *b, uint64_t now_ns)
{
	if (b->moved_ns && now_ns - b->moved_ns < b->wait_ns)
		b->wait_ns = 2 * b->wait_ns < CALM_MAX_NS ? 2 * b->wait_ns : CALM_MAX_NS;
	else
		b->wait_ns = CALM_NS;
	b->moved_ns = 0;
	b->over = 0;
	b->calm_ns = 0;
	b->level++;
	return BUDGET_DOWN;
}

static enum budget_move step_up(struct budget *b, uint64_t now_ns)
{
	b->moved_ns = now_ns;
	b->over = 0;
	b->calm_ns = 0;
	b->level--;
	return BUDGET_UP;
}

enum budget_move budget_feed(struct budget *b, uint64_t now_ns, uint64_t cpu_ns, uint64_t rss_bytes)
{
	uint64_t passed_ns = now_ns - b->last_ns;
	uint64_t used_ns = cpu_ns > b->last_cpu_ns ? cpu_ns - b->last_cpu_ns : 0;
	bool first = !b->last_ns;

	if (!first && now_ns <= b->last_ns)
		return BUDGET_STAYS;
	b->last_ns = now_ns;
	b->last_cpu_ns = cpu_ns;
	if (first)
		return BUDGET_STAYS;
	note_use(b, passed_ns, used_ns, rss_bytes);
	if (b->over >= OVER_READINGS) {
		b->over = OVER_READINGS;
		if (b->level + 1 < b->nlevels)
			return step_down(b, now_ns);
	}
	if (is_calm(b))
		b->calm_ns += passed_ns;
	else
		b->calm_ns -= 2 * passed_ns < b->calm_ns ? 2 * passed_ns : b->calm_ns;
	if (b->level && b->calm_ns > b->wait_ns)
		return step_up(b, now_ns);
	return BUDGET_STAYS;
}

bool budget_exhausted(const struct budget *b)
{
	return b->over >= OVER_READINGS && b->level + 1 == b->nlevels;
}
