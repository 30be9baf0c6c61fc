/*
 * The merge thread: releases events of all sources in time order. It alone owns the open segment,
 * the rules and the windows of incidents. Live it never waits for a disk, and for a source at most
 * LATE_NS. Time is the time of events: windows and ticks advance with released time.
 */
#include "engine/engine_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LATE_NS (250 * NS_PER_MS)            /* sources that lag more are not waited for */
#define WINDOW_NS (40 * NS_PER_MS)           /* between two looks while a window is open */
#define LAG_TURN_NS (100 * NS_PER_MS)        /* else, at most, if a source lags as much */
#define IDLE_MIN_NS (10 * NS_PER_MS)
#define BATCH 4096u                          /* events of a file between two looks around */
#define HOUSEKEEPING_NS NS_PER_SEC
#define GAP_TICKS 36000u                     /* a gap of an hour; see tick_step() */
#define OPENING_MAX_NS (10 * NS_PER_SEC)     /* that --max-collect-sec does not count */

/* ---- events --------------------------------------------------------------------------------- */

/* Keep events about the recorder itself, at the time each describes. */
static void keep_own_events(struct engine *e)
{
	struct merge *m = &e->merge;
	const struct event *from;

	while ((from = queue_peek(m->own)) != NULL) {
		struct event event = *from;

		engine_keep(e, &event);
		queue_pop(m->own);
	}
	if (m->seal_past)
		engine_seal_past(e);
	m->seal_past = false;
}

/*
 * The time from one tick to the next: 100 ms. In a gap of over an hour the step grows to
 * 1/36,000 of the gap so far: nothing that waits is noticed late by more than 0.003 % of its time,
 * and a damaged time stamp of the year 2500 costs 600,000 ticks, not 10^11.
 */
static uint64_t tick_step(uint64_t gap_ns, uint64_t left_ns)
{
	uint64_t step_ns = gap_ns / GAP_TICKS;

	step_ns = step_ns < left_ns ? step_ns : left_ns;     /* the last tick stays in place */
	step_ns -= step_ns % TICK_NS;
	return step_ns ? step_ns : TICK_NS;
}

/*
 * Whether --max-collect-sec is over. Live it counts from when every source delivers: opening them
 * may have taken long. One that does not begin at all does not make it longer for ever.
 */
static bool is_time_over(const struct engine *e)
{
	const struct merge *m = &e->merge;
	uint64_t most_ns = e->capture->max_collect_ns, from_ns = m->start_ns;

	if (e->policy->by_clock)
		from_ns = m->begun_ns ? m->begun_ns : m->start_ns + OPENING_MAX_NS;
	return most_ns && m->now_ns >= from_ns && m->now_ns - from_ns >= most_ns;
}

static void release_ticks(struct engine *e, uint64_t until_ns)
{
	struct event event = {.kind = EVENT_TICK, .cpu = CPU_NONE, .stack = STACK_NONE};
	uint64_t step_ns;
	struct merge *m = &e->merge;
	const uint64_t gap_from_ns = m->next_tick_ns;

	while (m->next_tick_ns <= until_ns && m->next_tick_ns != UINT64_MAX && !m->closed) {
		m->now_ns = event.time_ns = m->next_tick_ns;
		step_ns = tick_step(m->now_ns - gap_from_ns, until_ns - m->now_ns);
		m->next_tick_ns =
			step_ns < UINT64_MAX - m->now_ns ? m->now_ns + step_ns : UINT64_MAX;
		if (m->now_ns >= m->next_tables_ns) {
			tables_keep_room(e);
			m->next_tables_ns = m->now_ns + NS_PER_SEC;
		}
		rules_feed(e, &event);
		keep_own_events(e);
		/* Only what a rule saw may go on beyond its end. */
		if (e->cfg->ntriggers || m->now_ns > m->next_end_ns)
			engine_windows(e, m->now_ns, NULL);
		past_tick(e);
		if (is_time_over(e)) {
			engine_stop(e, STOP_TIME, NULL);
			m->closed = true;
		}
	}
}

/* If policy->start() did not set the clock, the first event does. */
static void begin_time(struct engine *e, uint64_t first_ns)
{
	struct merge *m = &e->merge;

	m->started = true;
	m->start_ns = m->now_ns = m->last_ns = first_ns;
	if (e->policy->begin)
		e->policy->begin(e, first_ns);
	m->next_tick_ns = m->start_ns + TICK_NS;
}

/* The event at which a rule fired is in its incident, even above its process's quota. */
static void keep_despite_quota(struct engine *e, const struct event *event)
{
	struct merge *m = &e->merge;

	if (segment_add_wanted(m->builder, event) == 0 && m->flooded > m->flooded_reported)
		m->flooded--;
	past_keep(e, event, true);
}

/*
 * Read a process's command line and home at its first event, while it lives. That may be too early:
 * exec(2) writes the command line last, which takes milliseconds on a busy machine. So ask again at
 * its 1st, 2nd, 4th, 8th... sample; and when it moved to another control group, or at every 256th
 * sample where the kernel does not tell of moves. A segment has one home for each process, so it
 * ends where one moves.
 */
static void want_facts(struct engine *e, const struct event *event)
{
	struct process *p = event->process;
	bool wanted = !atomic_load_explicit(&p->has_event, memory_order_relaxed) &&
		      !atomic_exchange(&p->has_event, true);
	uint64_t moved_ns = atomic_load(&p->moved_ns);

	if (moved_ns != p->moved_asked_ns && event->time_ns >= moved_ns) {
		p->moved_asked_ns = moved_ns;
		wanted = true;
		if (p->nsamples)
			engine_seal_moved(e);
	}
	if (event->kind == EVENT_SAMPLE) {
		p->nsamples++;
		wanted |= (p->nsamples & (p->nsamples - 1)) == 0 ||
			  (!moved_ns && p->nsamples % 256 == 0);
	}
	if (wanted)
		symbols_process(e->symbols, p);
}

/* What a source says that it lost. A stranger can make it say so of events, but not of samples. */
static void count_loss(struct merge *m, const struct event *event)
{
	enum loss_kind kind = loss_kind_from_text(event->name);

	if (kind < LOSS_KINDS)
		m->lost_by_kind[kind] += (uint64_t)event->value;
	if (loss_counts(kind))
		m->lost += (uint64_t)event->value;
	if (kind == LOSS_KERNEL)
		m->lost_samples += (uint64_t)event->value;
}

static void deliver_event(struct engine *e, const struct event *from)
{
	struct merge *m = &e->merge;
	struct event event = *from;
	bool kept, fired;

	if (!m->started)
		begin_time(e, event.time_ns);
	if (event.time_ns >= m->next_tick_ns)
		release_ticks(e, event.time_ns);
	if (m->closed)
		return;
	if (event.time_ns > m->next_end_ns && e->policy->by_clock)
		engine_windows(e, event.time_ns, NULL);
	m->events++;
	if (event.time_ns < m->last_ns) {
		event.flags |= EVENT_FLAG_LATE;
		m->late++;
	} else {
		m->last_ns = event.time_ns;
	}
	switch (event.kind) {
	case EVENT_IMAGE:
		if (event.nstack_frames)
			symbols_prefetch(e->symbols, event.stack_frames[0].object,
					 event.process ? event.process->pid : 0);
		return;
	case EVENT_LOST:
		count_loss(m, &event);
		break;
	case EVENT_RATE:
		costs_rate(e, &event);
		break;
	default:
		break;
	}
	if (event.process)
		want_facts(e, &event);
	if (event.nstack_frames)
		feed_settle(&e->feed, &event);
	kept = engine_keep(e, &event);
	fired = rules_feed(e, &event);
	if (fired && !kept)
		keep_despite_quota(e, &event);
	keep_own_events(e);
}

static void put_loss(struct engine *e, enum loss_kind kind, uint64_t n)
{
	const struct merge *m = &e->merge;
	struct event event = {.kind = EVENT_LOST, .cpu = CPU_NONE, .stack = STACK_NONE,
			      .value = (double)n};

	event.time_ns = m->now_ns > m->last_ns ? m->now_ns : m->last_ns;
	event.name = loss_kind_text(kind);
	deliver_event(e, &event);
}

/* Say once whose code objects have filled a share of the table. */
static void note_share(struct engine *e, const struct frames_use *use)
{
	if (!use->over_share || e->merge.share_logged)
		return;
	e->merge.share_logged = true;
	log_line(e->log, LOG_WARN,
		 "programs of user %u map more files with code than half of the table holds (%u): "
		 "code in further ones has no names; `recorder show` counts them",
		 (unsigned)use->over_share_uid, OBJECTS_MAX / 2);
}

/* What our own queues, quotas and tables refused is told as any other loss is, by events. */
static void put_own_losses(struct engine *e)
{
	struct merge *m = &e->merge;
	struct tables_use use;
	uint64_t refused;
	uint32_t i;

	for (i = 0; i < e->feed.n; i++) {
		uint64_t lost = queue_lost(e->feed.sources[i].queue);

		if (lost != m->queue_lost_reported[i])
			put_loss(e, e->feed.sources[i].ops->stacks ? LOSS_QUEUE : LOSS_EVENTS,
				 lost - m->queue_lost_reported[i]);
		if (e->feed.sources[i].ops->stacks)
			m->lost_samples += lost - m->queue_lost_reported[i];
		m->queue_lost_reported[i] = lost;
	}
	if (m->flooded != m->flooded_reported)
		put_loss(e, LOSS_FLOOD, m->flooded - m->flooded_reported);
	m->flooded_reported = m->flooded;
	use = tables_use(e);
	refused = use.processes.refused + use.frames.refused;
	if (refused != m->refused_reported)
		put_loss(e, LOSS_TABLE, refused - m->refused_reported);
	m->refused_reported = refused;
	note_share(e, &use.frames);
}

/* ---- release -------------------------------------------------------------------------------- */

/* Up to where every source has delivered; UINT64_MAX when all have ended. */
static uint64_t released_until(const struct engine *e)
{
	uint64_t lowest = UINT64_MAX, now = os_now_ns(), behind = LATE_NS;
	uint32_t i;

	for (i = 0; i < e->feed.n; i++) {
		uint64_t released = queue_released(e->feed.sources[i].queue, now);

		lowest = released < lowest ? released : lowest;
		if (e->feed.sources[i].ops->behind_ns > behind)
			behind = e->feed.sources[i].ops->behind_ns;
	}
	if (e->policy->by_clock && lowest < now - behind)
		lowest = now - behind;
	return lowest;
}

/*
 * Whether the writer has decided which firings repeat an incident: then they do not count, and the
 * run goes on.
 */
static bool dedup_is_decided(struct engine *e)
{
	uint32_t waiting;

	/* policy->fired() already waited for the writer where nothing may be lost. */
	if (!e->capture->dedup_ns || e->policy->loses_nothing)
		return true;
	os_mutex_lock(e->shared.lock);
	waiting = e->shared.npending;
	os_mutex_unlock(e->shared.lock);
	return !waiting && e->rules.firings >= rules_wanted_firings(e);
}

static void end_when_done(struct engine *e)
{
	if (!e->cfg->ntriggers || e->rules.firings < rules_wanted_firings(e) ||
	    e->merge.open_windows || !dedup_is_decided(e))
		return;
	engine_stop(e, STOP_DONE, NULL);
	e->merge.closed = true;
}

/* A source sets its first watermark when it has begun to watch. */
static void check_begun(struct engine *e)
{
	uint64_t now_ns;
	uint32_t i;

	if (atomic_load(&e->begun))
		return;
	now_ns = os_now_ns();
	for (i = 0; i < e->feed.n; i++)
		if (!queue_released(e->feed.sources[i].queue, now_ns))
			return;
	e->merge.begun_ns = now_ns;
	atomic_store(&e->begun, true);
	os_wake(e->wake_control);
}

/* Deliver what may be delivered; true when there was anything. */
static bool release_events(struct engine *e)
{
	const bool one_source = e->policy->one_source;
	uint64_t until_ns = released_until(e);
	struct merge *m = &e->merge;
	struct feed_source *source;
	const struct event *event;
	uint32_t n = 0;

	while ((event = feed_peek(&e->feed, &source)) != NULL &&
	       (event->time_ns <= until_ns || one_source)) {
		if (!m->closed)
			deliver_event(e, event);
		queue_pop(source->queue);
		/* At once: how much of a file is read must not depend on how many events waited. */
		if (one_source && !m->closed)
			end_when_done(e);
		if (++n == BATCH && one_source)
			return true;
	}
	if (until_ns != UINT64_MAX && m->started && !m->closed)
		release_ticks(e, until_ns);
	/* When all have ended, recording was stopped: end_run() cuts what is open. */
	if (until_ns != UINT64_MAX && until_ns > m->next_end_ns && e->policy->by_clock &&
	    !m->closed)
		engine_windows(e, until_ns, NULL);
	return n > 0;
}

/* ---- housekeeping --------------------------------------------------------------------------- */

static void publish_status(struct engine *e)
{
	const struct merge *m = &e->merge;
	uint64_t open_first_ns = segment_first_ns(m->builder);
	struct ring_use use;
	bool fails;

	ring_use(e->ring, &use);
	os_mutex_lock(e->shared.lock);
	fails = m->lost_samples != e->shared.view.lost_samples;
	e->shared.view = (struct status_view){
		.now_ns = m->now_ns,
		.start_ns = m->start_ns,
		.samples = m->samples,
		.lost = m->lost,
		.lost_samples = m->lost_samples,
		.late = m->late,
		.flooded = m->flooded_reported,
		.open_samples = segment_open_samples(m->builder),
		.open_bytes = segment_open_bytes(m->builder),
		.oldest_ns = use.oldest_ns ? use.oldest_ns : open_first_ns,
		.budget = m->budget,
		.firings = e->rules.firings,
	};
	memcpy(e->shared.view.lost_by_kind, m->lost_by_kind, sizeof(m->lost_by_kind));
	e->shared.view.source_stalls =
		stalls_text(e, e->shared.view.stalled, sizeof(e->shared.view.stalled));
	fails |= e->shared.view.stalled[0] != '\0';
	rules_publish(e);
	os_mutex_unlock(e->shared.lock);
	if (fails)
		os_wake(e->wake_control);    /* which says so */
}

static void housekeeping(struct engine *e)
{
	struct merge *m = &e->merge;
	uint64_t now = os_now_ns();

	if (now < m->next_housekeeping_ns)
		return;
	m->next_housekeeping_ns = now + HOUSEKEEPING_NS;
	if (m->started)
		put_own_losses(e);
	if (segment_is_full(m->builder, m->now_ns))
		engine_seal(e);
	tables_look(e);
	rules_save(e, false);
	rules_tell(e);
	costs_look(e);
	stalls_look(e);
	clock_look(e);
	keep_own_events(e);
	publish_status(e);
}

static void take_snapshot(struct engine *e)
{
	struct firing f = {.rule = MANUAL_RULE, .rule_text = "manual", .value = NAN, .limit = NAN,
			   .time_ns = e->merge.now_ns, .pre_ns = e->capture->pre_ns,
			   .post_ns = e->capture->post_ns};
	struct shared *s = &e->shared;
	char *reason;

	os_mutex_lock(s->lock);
	reason = s->snapshot_reason;
	s->snapshot_reason = NULL;
	/* The moment of the request, which may lie behind what has been released by now. */
	if (e->policy->by_clock && !e->merge.stopping_sources && s->snapshot_ns > f.time_ns)
		f.time_ns = s->snapshot_ns;
	os_mutex_unlock(s->lock);
	if (!reason)
		return;
	f.reason = reason;
	engine_fire(e, &f);
	keep_own_events(e);
	free(reason);
}

/* ---- the end -------------------------------------------------------------------------------- */

/* The last incident, of a run that somebody or its time limit ended: nothing follows its firing. */
static void last_incident(struct engine *e, enum engine_stop how)
{
	struct merge *m = &e->merge;
	struct firing f = {.rule = MANUAL_RULE, .rule_text = "manual", .value = NAN, .limit = NAN,
			   .pre_ns = e->capture->pre_ns};
	char reason[300];

	if (how == STOP_TIME) {
		f.rule_text = "max-collect-sec";
		snprintf(reason, sizeof(reason), "MaxCollectSec: %.0f s have passed",
			 (double)e->capture->max_collect_ns / 1e9);
	} else {
		os_mutex_lock(e->shared.lock);
		snprintf(reason, sizeof(reason), "%s",
			 e->shared.stop_reason ? e->shared.stop_reason : "recording ended");
		os_mutex_unlock(e->shared.lock);
	}
	f.reason = reason;
	if (m->last_ns > m->now_ns)
		m->now_ns = m->last_ns;
	f.time_ns = m->now_ns;
	if (!e->cfg->ntriggers && m->now_ns > m->start_ns)
		f.pre_ns = m->now_ns - m->start_ns;          /* everything that there is */
	engine_fire(e, &f);
	keep_own_events(e);
}

static void discard_pending(struct engine *e)
{
	struct pending *p;

	os_mutex_lock(e->shared.lock);
	e->shared.aborted = true;
	for (p = e->shared.first_pending; p; p = p->next)
		p->discard = true;
	os_mutex_unlock(e->shared.lock);
}

static void end_run(struct engine *e, enum engine_stop how)
{
	struct window_end why = {0};

	engine_end_sealer(e);
	e->merge.stopping_sources = true;
	if (how == STOP_ABORT)
		discard_pending(e);
	else
		take_snapshot(e);            /* requested just before the end */
	e->policy->end(e, how, &why);
	if (e->policy->wants_last(e, how))
		last_incident(e, how);
	engine_windows(e, e->merge.now_ns, &why);
	past_end(e);
	rules_save(e, true);
	publish_status(e);
	os_mutex_lock(e->shared.lock);
	e->shared.merge_done = true;
	engine_hurry_writer(e);
	os_mutex_unlock(e->shared.lock);
	atomic_store(&e->merge_ended, true);
	os_wake(e->wake_control);
}

/* ---- the loop ------------------------------------------------------------------------------- */

/*
 * How long until there is something to do. An event that waits is due once released time reaches
 * it. Else what comes until the next turn shares the wake-up, which costs 45 us of CPU: most of it
 * is a cold cache. A queue that fills quickly ends the wait (queue_wakes()).
 */
static uint64_t idle_ns(struct engine *e, bool busy)
{
	uint64_t now_ns = os_now_ns(), until_ns = released_until(e), turn_ns, wait_ns;
	const struct event *event;
	struct feed_source *source;

	if (e->policy->idle_ns)
		return e->policy->idle_ns;
	if (e->merge.open_windows || atomic_load(&e->stop) != STOP_NO)
		return WINDOW_NS;
	turn_ns = source_turn_ns(&e->merge.pace, e->merge.events, now_ns);
	if (turn_ns > LAG_TURN_NS && until_ns + LAG_TURN_NS < now_ns)
		turn_ns = LAG_TURN_NS;
	wait_ns = turn_ns - (now_ns - SOURCE_TAKE_NS) % turn_ns;
	event = busy ? NULL : feed_peek(&e->feed, &source);
	if (!event)
		return wait_ns;
	if (until_ns >= event->time_ns || event->time_ns - until_ns < IDLE_MIN_NS)
		return IDLE_MIN_NS;
	return event->time_ns - until_ns < wait_ns ? event->time_ns - until_ns : wait_ns;
}

static void sleep_until_woken(struct engine *e, uint64_t wait_ns)
{
	struct shared *s = &e->shared;

	os_mutex_lock(s->lock);
	if (!s->snapshot_reason && !s->reload &&
	    (e->merge.stopping_sources || atomic_load(&e->stop) == STOP_NO))
		os_cond_wait(s->wake_merge, s->lock, wait_ns);
	os_mutex_unlock(s->lock);
}

void merge_main(void *ctx)
{
	struct engine *e = ctx;
	bool any = true, ended = false, busy = false;

	engine_begin_sealer(e);
	os_thread_priority(e->policy->in_background ? OS_PRIORITY_HIGH : OS_PRIORITY_NORMAL);
	while (!ended || any) {
		ended = feed_ended(&e->feed);
		any = release_events(e);
		symbols_begin(e->symbols);
		check_begun(e);
		housekeeping(e);
		own_event_put_marks(e);
		take_snapshot(e);
		reload_take(e);
		end_when_done(e);
		if (atomic_load(&e->stop) != STOP_NO && !e->merge.stopping_sources) {
			e->merge.stopping_sources = true;
			e->merge.stopping_since_ns = os_now_ns();
			feed_stop(&e->feed);
		}
		if (e->merge.stopping_sources && !ended)
			stalls_leave_behind(e);
		busy |= any;
		if (any || ended)
			continue;
		sleep_until_woken(e, engine_windows_wait(e, idle_ns(e, busy)));
		busy = false;
	}
	if (atomic_load(&e->stop) == STOP_NO)
		engine_stop(e, e->policy->sources_ended, "end of file");
	if (e->merge.started)
		put_own_losses(e);
	end_run(e, (enum engine_stop)atomic_load(&e->stop));
}
