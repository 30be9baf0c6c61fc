/*
 * The tables of processes, threads and frames: they forget what nothing lists any more. When one is
 * nearly full because segments list so much, the oldest history is given up, so that the present is
 * not lost. Merge thread.
 */
#include "engine/engine_private.h"

/* Above FULL the ring gives up its oldest segments until ROOMY; the gap keeps it from recurring. */
#define FRAMES_FULL_PCT 90u
#define FRAMES_ROOMY_PCT 85u
#define PROCESSES_FULL_PCT 80u               /* leaves room for what ended lately */
#define PROCESSES_ROOMY_PCT 75u
#define EVICT_PART 16u                       /* a 16th of the segments at a time */

/*
 * How much of a segment one process may take. A full segment has 8,192 samples, and on an ordinary
 * load two new nodes for each, for all processes together; a JVM brings 9 for each when it starts,
 * and 3.5 by the segment's end. A table that is half full would fill up before the ring does; then
 * the quota for what fills it is tight, so that history lasts. New
 * processes: as many as the table holds for an incident's window, which is 110 a second with
 * samples for a window of five minutes or less, more than a machine of two CPUs starts while it
 * builds programs.
 */
static const struct segment_quota ample = {
	.nodes = 16384, .frames = 8192, .nodes_each = 8, .threads = 1024, .events = 1024,
	.event_bytes = 32 << 10, .sideband = 8192, .processes = 8192,
};
static const struct segment_quota tight = {
	.nodes = 8192, .frames = 512, .threads = 128,
};
#define TABLE_TIGHT_PCT 50u
#define REACH_LEAST_NS (300 * NS_PER_SEC)
#define SIDEBAND_PART 4u                     /* a 4th as many with starts and ends only */
#define WITH_SIDEBAND (1 + 2.0 / SIDEBAND_PART)
#define SWEEP_NS (8 * NS_PER_SEC)

void tables_sweep(struct engine *e, bool all)
{
	uint64_t before_ns = feed_forgets_before(&e->feed, e->merge.now_ns);

	if (!before_ns)
		return;
	(all ? frames_sweep_all : frames_sweep)(e->frames, before_ns);
	processes_sweep(e->processes, before_ns);
}

/*
 * With two busy CPUs, looking at all processes and objects each second was 40 % of what this thread
 * executed.
 */
void tables_look(struct engine *e)
{
	struct merge *m = &e->merge;

	if (!e->policy->by_clock || m->now_ns >= m->next_sweep_ns) {
		tables_sweep(e, false);
		m->next_sweep_ns = m->now_ns + SWEEP_NS;
	} else {
		frames_sweep_more(e->frames, feed_forgets_before(&e->feed, m->now_ns));
	}
}

struct tables_use tables_use(const struct engine *e)
{
	struct tables_use use;

	processes_use(e->processes, &use.processes);
	frames_use(e->frames, &use.frames);
	return use;
}

static bool is_over(uint64_t used, uint64_t max, unsigned pct)
{
	return used * 100 > max * pct;
}

static bool processes_over(const struct tables_use *use, unsigned pct)
{
	return is_over(use->processes.processes, PROCESSES_MAX, pct) ||
	       is_over(use->processes.threads, THREADS_MAX, pct);
}

static bool frames_over(const struct tables_use *use, unsigned pct)
{
	return is_over(use->frames.frames, FRAMES_MAX, pct);
}

static uint64_t sum_used(const struct tables_use *use)
{
	return (uint64_t)use->processes.processes + use->processes.threads + use->frames.frames;
}

/* New processes with samples that may be listed each second, for the table to hold the window. */
static double new_processes_s(uint64_t keeps_ns)
{
	uint64_t reach_ns = keeps_ns > REACH_LEAST_NS ? keeps_ns : REACH_LEAST_NS;

	return PROCESSES_MAX / 100.0 * PROCESSES_ROOMY_PCT / ((double)reach_ns / 1e9) /
	       WITH_SIDEBAND;
}

double engine_processes_reach_s(double new_s, uint64_t keeps_ns)
{
	const double room = PROCESSES_MAX / 100.0 * (PROCESSES_FULL_PCT + PROCESSES_ROOMY_PCT) / 2;
	double most_s = new_processes_s(keeps_ns) * WITH_SIDEBAND;

	return room / (new_s < most_s ? new_s : most_s);
}

void tables_set_quota(struct engine *e)
{
	bool tight_memory = memory_budget_is_tight(&e->merge.memory);
	struct segment_quota quota = ample;
	struct tables_use use = tables_use(e);

	if (e->policy->loses_nothing)
		return;
	if (tight_memory || frames_over(&use, TABLE_TIGHT_PCT)) {
		quota.nodes = tight.nodes;
		quota.frames = tight.frames;
		quota.nodes_each = tight.nodes_each;
	}
	if (tight_memory || processes_over(&use, TABLE_TIGHT_PCT)) {
		quota.threads = tight.threads;
		quota.processes_s =
			1 + (uint32_t)new_processes_s(e->capture->pre_ns + e->capture->post_ns);
		quota.sideband_s = 1 + quota.processes_s / SIDEBAND_PART;
	}
	/* Of one program and what it starts, all starts and ends are wanted while there is room. */
	if (e->capture->root_pid && !quota.sideband_s)
		quota.sideband = 0;
	if (e->capture->all_events)
		quota.events = quota.event_bytes = 0;
	segment_set_quota(e->merge.builder, &quota);
	past_set_quota(e, &quota);
}

static void log_full(struct engine *e, const struct tables_use *use)
{
	if (e->merge.full_tables_logged)
		return;
	e->merge.full_tables_logged = true;
	log_line(e->log, LOG_WARN,
		 "%u processes, %u threads and %u frames are remembered, and a table is nearly "
		 "full: the oldest history is given up to make room", use->processes.processes,
		 use->processes.threads, use->frames.frames);
}

/*
 * Forgetting comes first: what evicted segments listed may not have been swept yet. History pays
 * only for what is in use after a whole sweep.
 */
void tables_keep_room(struct engine *e)
{
	struct tables_use use = tables_use(e);
	struct ring_use ring;
	uint64_t before;
	uint32_t n;

	if (!processes_over(&use, PROCESSES_FULL_PCT) && !frames_over(&use, FRAMES_FULL_PCT))
		return;
	tables_sweep(e, true);
	for (;;) {
		use = tables_use(e);
		if (!processes_over(&use, PROCESSES_ROOMY_PCT) &&
		    !frames_over(&use, FRAMES_ROOMY_PCT))
			return;
		ring_use(e->ring, &ring);
		if (!ring.segments)
			return;
		log_full(e, &use);
		before = sum_used(&use);
		for (n = ring.segments / EVICT_PART + 1; n; n--)
			ring_give_up_oldest(e->ring);
		tables_sweep(e, true);
		use = tables_use(e);
		/* What fills them is alive: giving up history does not help. */
		if (sum_used(&use) + before / 1000 >= before)
			return;
	}
}
