/* Live recording never waits for the store: what does not fit in memory is given up and counted. */
#include "engine/engine_private.h"

#define SETTLE_NS (5 * NS_PER_SEC)       /* what an incident waits for names, in all */
#define LONG_DELAY_NS (2 * NS_PER_SEC)   /* worth a segment for what came before it */

static void live_start(struct engine *e)
{
	uint32_t freq_hz = e->capture->freq_hz, i;

	segment_set_period(e->merge.builder, STREAM_CPU, NS_PER_SEC / (freq_hz ? freq_hz : 1));
	past_rate(e, NS_PER_SEC / (freq_hz ? freq_hz : 1), "");
	for (i = 0; i < e->feed.n; i++)
		queue_wakes(e->feed.sources[i].queue, e->shared.wake_merge);
	if (!e->policy->by_clock)
		return;
	e->merge.started = true;
	e->merge.start_ns = e->merge.now_ns = os_now_ns();
	e->merge.next_tick_ns = e->merge.start_ns + TICK_NS;
}

static uint64_t live_wall_ns(const struct engine *e, uint64_t time_ns)
{
	uint64_t now_ns = os_now_ns(), wall_ns = os_wall_ns();

	(void)e;
	return wall_ns - (now_ns > time_ns ? now_ns - time_ns : 0);
}

/* The last incident of a run is kept all the same: none follows. */
static bool live_has_room(struct engine *e)
{
	uint32_t waiting;

	os_mutex_lock(e->shared.lock);
	waiting = e->shared.npending;
	os_mutex_unlock(e->shared.lock);
	return waiting < ENGINE_PENDING_MAX || e->merge.stopping_sources;
}

static void live_fired(struct engine *e, const struct firing *f)
{
	if (f->event && f->time_ns < f->event->time_ns)
		return;                      /* placed in the past: --replay-late */
	own_event_put_ring(e, f->time_ns);
	evicted_put(e, f->time_ns > f->pre_ns ? f->time_ns - f->pre_ns : 0, f->time_ns);
	e->merge.seal_past |= f->post_ns >= LONG_DELAY_NS;
}

static void live_limit_held(struct engine *e, uint64_t evicted_until_ns)
{
	os_mutex_lock(e->shared.lock);
	e->shared.held_bytes = pending_held_bytes(e, evicted_until_ns);
	pending_relieve(e, evicted_until_ns);
	engine_wake_writer(e);
	os_mutex_unlock(e->shared.lock);
}

static void live_end(struct engine *e, enum engine_stop how, struct window_end *why)
{
	(void)e;
	why->cut = how == STOP_TIME ? "the time limit ended recording" : "recording was stopped";
}

static bool live_wants_last(const struct engine *e, enum engine_stop how)
{
	(void)e;
	return how == STOP_TIME || how == STOP_ASKED;
}

#define LIVE \
	.activity = "recording", \
	.starts = "recording had begun", \
	.full = "the store", \
	.most_incidents = ENGINE_PENDING_MAX, \
	.in_background = true, \
	.rules_pause = true, \
	.rules_persist = true, \
	.settle_ns = SETTLE_NS, \
	.start = live_start, \
	.wall_ns = live_wall_ns, \
	.has_room = live_has_room, \
	.fired = live_fired, \
	.limit_held = live_limit_held, \
	.end = live_end, \
	.wants_last = live_wants_last

const struct policy live_policy = {LIVE, .by_clock = true, .sources_ended = STOP_FAILED};
const struct policy replay_policy = {LIVE, .sources_ended = STOP_ASKED};
