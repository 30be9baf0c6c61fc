/* A process that changes its mappings without end costs only so much: see state_linux.h. */
#include "source/perf/state_private.h"

#include "base/log.h"
#include "base/os.h"

/* mapped_until_ns is when its budget is whole again. */
bool perf_state_spend_mapping(struct perf_state *s, struct perf_process *p)
{
	const uint64_t cost_ns = NS_PER_SEC / MAPPINGS_PER_SEC_MAX;

	p->mapped_until_ns = p->mapped_until_ns > s->now_ns ? p->mapped_until_ns : s->now_ns;
	if (p->mapped_until_ns + cost_ns <= s->now_ns + MAPPINGS_CALM_NS)
		p->mapped_until_ns += cost_ns;
	else
		p->maps_flood = true;
	if (!p->maps_flood || p->flood_logged)
		return !p->maps_flood;
	p->flood_logged = true;
	log_line(s->cfg.log, LOG_WARN,
		 "%s (%u) changes its executable mappings more than %u times a second: further "
		 "changes are skipped until it has been calm for %u s, and its new code is unknown",
		 process_name(p->process), p->pid, MAPPINGS_PER_SEC_MAX,
		 (unsigned)(MAPPINGS_CALM_NS / NS_PER_SEC));
	return false;
}

/* What was mapped there is gone: its code must not have the old name. */
void perf_state_skip_mapping(struct perf_state *s, struct perf_process *p,
			     const struct perf_record *r)
{
	maps_remove(&p->maps, r->u.mmap.start, r->u.mmap.start + r->u.mmap.bytes, s->now_ns);
	atomic_fetch_add_explicit(&s->skipped_mappings, 1, memory_order_relaxed);
	atomic_store_explicit(&s->skipped_pid, p->pid, memory_order_relaxed);
}

uint64_t perf_state_skipped(const struct perf_state *s, uint32_t *pid)
{
	*pid = atomic_load(&s->skipped_pid);
	return atomic_load(&s->skipped_mappings);
}

/* Read the mappings of a process anew when it is calm again; its threads may be others then. */
void perf_state_end_flood(struct perf_state *s, struct perf_process *p)
{
	if (!p->maps_flood || s->now_ns < p->mapped_until_ns)
		return;
	p->maps_flood = false;
	if (perf_scan_process(s->scan, p->pid) == ERR_LIMIT)
		p->maps_flood = true;        /* later */
}
