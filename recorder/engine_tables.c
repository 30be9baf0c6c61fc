/*
 * The tables of processes, threads and frames: forgetting what nothing lists any more, and, when one
 * is nearly full because segments list so much, giving up the oldest of the past instead of losing
 * the present. Merge thread.
 */
#include "engine_private.h"

#define SWEEP_MARGIN_NS (10 * NS_PER_SEC)    /* a dropped process or object is kept this long */
#define TABLE_FULL_PCT 90u                   /* then the ring gives up its oldest segments, */
#define TABLE_ROOMY_PCT 85u                  /* until this; not at every segment anew */
#define EVICT_PART 16u                       /* this part of them at a time */

/*
 * What one process may take of a segment; a full one has 8,192 samples, and 2 new nodes for each on an
 * ordinary load, of all processes together. A table that is half full would be full before the ring is, and
 * so would be the memory where history had to go for it: then less of what fills that one, so that history
 * lasts. Of new processes as many as the table holds for REACH_NS: 62 a second, which is a machine that builds
 * programs; 10,000 an hour never come near it.
 */
static const struct segment_quota ample = {
	.nodes = 16384, .frames = 4096, .threads = 1024, .events = 1024, .event_bytes = 32 << 10,
	.sideband = 8192, .processes = 8192,
};
static const struct segment_quota tight = {
	.nodes = 8192, .frames = 512, .threads = 128, .sideband = 256, .processes = 256,
};
#define TABLE_TIGHT_PCT 50u
#define REACH_NS (900 * NS_PER_SEC)          /* or what an incident keeps, if that is longer */
#define SIDEBAND_PART 4u                     /* of those without samples: this part as many */

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

static bool tables_over(const struct engine *e, unsigned pct)
{
	return processes_over(e, pct) || frames_over(e, pct);
}

static uint64_t tables_used(const struct engine *e)
{
	struct processes_use processes;
	struct frames_use frames;

	processes_use(e->processes, &processes);
	frames_use(e->frames, &frames);
	return (uint64_t)processes.processes + processes.threads + frames.frames;
}

/* How long a segment gets that fills as fast as this one, which may have been sealed early; NULL = as it can. */
static double full_ns(const struct segment *s)
{
	double span_ns = s ? (double)(s->t1_ns - s->t0_ns) : 0, ns = SEGMENT_MAX_NS;

	if (s && s->nsamples && span_ns * SEGMENT_MAX_SAMPLES / s->nsamples < ns)
		ns = span_ns * SEGMENT_MAX_SAMPLES / s->nsamples;
	if (s && s->nevents && span_ns * SEGMENT_MAX_EVENTS / s->nevents < ns)
		ns = span_ns * SEGMENT_MAX_EVENTS / s->nevents;
	return ns;
}

double engine_processes_reach_s(double new_s)
{
	const double room = PROCESSES_MAX / 100.0 * (TABLE_FULL_PCT + TABLE_ROOMY_PCT) / 2;
	const double most_s = PROCESSES_MAX / 100.0 * TABLE_ROOMY_PCT / (REACH_NS / 1e9) * (1 + 1.0 / SIDEBAND_PART);

	return room / (new_s < most_s ? new_s : most_s);
}

static uint32_t new_processes(const struct engine *e, const struct segment *last)
{
	uint64_t keeps_ns = e->cfg->pre_ns + e->cfg->post_ns, reach_ns = keeps_ns > REACH_NS ? keeps_ns : REACH_NS;
	double n = PROCESSES_MAX * (TABLE_ROOMY_PCT / 100.0) * full_ns(last) / (double)reach_ns;

	return n > ample.processes ? ample.processes : n > tight.processes ? (uint32_t)n : tight.processes;
}

/* At the start of each segment. Of a file everything is wanted, and nothing leaves early. */
void engine_set_quota(struct engine *e, const struct segment *last)
{
	bool tight_memory = memory_budget_is_tight(&e->memory);
	struct segment_quota quota = ample;

	if (e->cfg->file)
		return;
	if (tight_memory || frames_over(e, TABLE_TIGHT_PCT)) {
		quota.nodes = tight.nodes;
		quota.frames = tight.frames;
	}
	if (tight_memory || processes_over(e, TABLE_TIGHT_PCT)) {
		quota.threads = tight.threads;
		quota.processes = new_processes(e, last);
		quota.sideband = quota.processes / SIDEBAND_PART;
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

	if (!tables_over(e, TABLE_FULL_PCT))
		return;
	engine_sweep_all(e);
	while (tables_over(e, TABLE_ROOMY_PCT)) {
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
