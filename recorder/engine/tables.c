/*
 * The tables of processes, threads and frames: forgetting what nothing lists any more, and, when one
 * is nearly full because segments list so much, giving up the oldest of the past instead of losing
 * the present. Merge thread.
 */
#include "engine/engine_private.h"

#define SWEEP_MARGIN_NS (10 * NS_PER_SEC)    /* a dropped process or object is kept this long */
/* Then the ring gives up its oldest segments, until the second; not all the time anew. */
#define FRAMES_FULL_PCT 90u
#define FRAMES_ROOMY_PCT 85u
#define PROCESSES_FULL_PCT 80u               /* what ended less than SWEEP_MARGIN_NS ago must have room, too */
#define PROCESSES_ROOMY_PCT 75u
#define EVICT_PART 16u                       /* this part of them at a time */

/*
 * What one process may take of a segment; a full one has 8,192 samples, and 2 new nodes for each on an
 * ordinary load, of all processes together. A table that is half full would be full before the ring is, and
 * so would be the memory where history had to go for it: then less of what fills that one, so that history
 * lasts. Of new processes as many as the table holds for an incident's window: 110 a second with samples for
 * one of five minutes or less, which is more than a machine of two CPUs that builds programs has.
 */
static const struct segment_quota ample = {
	.nodes = 16384, .frames = 4096, .threads = 1024, .events = 1024, .event_bytes = 32 << 10,
	.sideband = 8192, .processes = 8192,
};
static const struct segment_quota tight = {
	.nodes = 8192, .frames = 512, .threads = 128,
};
#define TABLE_TIGHT_PCT 50u
#define REACH_LEAST_NS (300 * NS_PER_SEC)
#define SIDEBAND_PART 4u                     /* with starts and ends alone, and with other events: this part as many */
#define ALL_OF_THEM (1 + 2.0 / SIDEBAND_PART)

/* A slice of the frames, so that it takes no time; everything else. */
void engine_sweep(struct engine *e)
{
	if (e->now_ns <= SWEEP_MARGIN_NS)
		return;
	frames_sweep(e->frames, e->now_ns - SWEEP_MARGIN_NS);
	processes_sweep(e->processes, e->now_ns - SWEEP_MARGIN_NS);
}

void engine_sweep_all(struct engine *e)
{
	if (e->now_ns <= SWEEP_MARGIN_NS)
		return;
	frames_sweep_all(e->frames, e->now_ns - SWEEP_MARGIN_NS);
	processes_sweep(e->processes, e->now_ns - SWEEP_MARGIN_NS);
}

static bool over(uint64_t used, uint64_t max, unsigned pct)
{
	return used * 100 > max * pct;
}

static bool processes_over(const struct engine *e, unsigned pct)
{
	struct processes_use use;

	processes_use(e->processes, &use);
	return over(use.processes, PROCESSES_MAX, pct) || over(use.threads, THREADS_MAX, pct);
}

static bool frames_over(const struct engine *e, unsigned pct)
{
	struct frames_use use;

	frames_use(e->frames, &use);
	return over(use.frames, FRAMES_MAX, pct);
}

static bool tables_are_full(const struct engine *e)
{
	return processes_over(e, PROCESSES_FULL_PCT) || frames_over(e, FRAMES_FULL_PCT);
}

static bool tables_are_roomy(const struct engine *e)
{
	return !processes_over(e, PROCESSES_ROOMY_PCT) && !frames_over(e, FRAMES_ROOMY_PCT);
}

static uint64_t tables_used(const struct engine *e)
{
	struct processes_use processes;
	struct frames_use frames;

	processes_use(e->processes, &processes);
	frames_use(e->frames, &frames);
	return (uint64_t)processes.processes + processes.threads + frames.frames;
}

/* New processes with samples that may be listed in each second, so that the window is reached. */
static double new_processes_s(uint64_t keeps_ns)
{
	uint64_t reach_ns = keeps_ns > REACH_LEAST_NS ? keeps_ns : REACH_LEAST_NS;

	return PROCESSES_MAX / 100.0 * PROCESSES_ROOMY_PCT / ((double)reach_ns / 1e9) / ALL_OF_THEM;
}

double engine_processes_reach_s(double new_s, uint64_t keeps_ns)
{
	const double room = PROCESSES_MAX / 100.0 * (PROCESSES_FULL_PCT + PROCESSES_ROOMY_PCT) / 2;
	double most_s = new_processes_s(keeps_ns) * ALL_OF_THEM;

	return room / (new_s < most_s ? new_s : most_s);
}

/* At the start of each segment. Of a file everything is wanted, and nothing leaves early. */
void engine_set_quota(struct engine *e)
{
	bool tight_memory = memory_budget_is_tight(&e->memory);
	struct segment_quota quota = ample;

	if (e->cfg->capture.file)
		return;
	if (tight_memory || frames_over(e, TABLE_TIGHT_PCT)) {
		quota.nodes = tight.nodes;
		quota.frames = tight.frames;
	}
	if (tight_memory || processes_over(e, TABLE_TIGHT_PCT)) {
		quota.threads = tight.threads;
		quota.processes_s = 1 + (uint32_t)new_processes_s(e->cfg->capture.pre_ns + e->cfg->capture.post_ns);
		quota.sideband_s = 1 + quota.processes_s / SIDEBAND_PART;
	}
	segment_set_quota(e->builder, &quota);
}

static void tell(struct engine *e)
{
	struct processes_use processes;
	struct frames_use frames;

	if (e->tables_told)
		return;
	e->tables_told = true;
	processes_use(e->processes, &processes);
	frames_use(e->frames, &frames);
	log_line(e->log, LOG_WARN,
		 "%u processes, %u threads and %u frames are remembered, near a table's ceiling: "
		 "the oldest history is given up to make room", processes.processes,
		 processes.threads, frames.frames);
}

/*
 * Forgetting comes first: what evicted segments listed may not have been swept yet. Only what is in
 * use after a whole sweep is paid for with history.
 */
void engine_keep_tables_open(struct engine *e)
{
	struct ring_use use;
	uint64_t before;
	uint32_t n;

	if (!tables_are_full(e))
		return;
	engine_sweep_all(e);
	while (!tables_are_roomy(e)) {
		ring_use(e->ring, &use);
		if (!use.segments)
			return;
		tell(e);
		before = tables_used(e);
		for (n = use.segments / EVICT_PART + 1; n; n--)
			ring_evict_oldest(e->ring);
		engine_sweep_all(e);
		/* What fills them lives now, and no history makes room for it. */
		if (tables_used(e) + before / 1000 >= before)
			return;
	}
}
