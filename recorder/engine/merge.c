/*
 * The merge thread: releases events of all sources in time order, and is the sole owner of the
 * interner, the open segment and the triggers. It waits for a disk never (from a file it does:
 * engine/file.c), for a source at most LATE_NS. Time is the time of events: windows and ticks advance
 * with released time.
 */
#include "engine/engine_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_NS (40 * NS_PER_MS)             /* between two looks while events come, or a window is open */
#define IDLE_NS (100 * NS_PER_MS)            /* when none do, at most: each wake-up costs some 45 us of CPU */
#define IDLE_MIN_NS (10 * NS_PER_MS)
#define FILE_IDLE_NS (2 * NS_PER_MS)         /* a file source fills its queue in that time, not more */
#define FILE_BATCH 4096u                     /* events between two looks at anything else */
#define HOUSEKEEPING_NS NS_PER_SEC
#define GAP_TICKS 36000u                     /* a gap of an hour; see tick() */

/* ---- ticks ------------------------------------------------------------------------------------- */

/*
 * A tick every 100 ms until then. In a gap of over an hour each tick is later by a 36,000th of the gap
 * so far: nothing that waits is noticed late by more than 0.003 % of its time, and a damaged time stamp
 * of the year 2500 costs 600,000 ticks, not 10^11.
 */
static uint64_t tick_step(uint64_t gap_ns, uint64_t left_ns)
{
	uint64_t step_ns = gap_ns / GAP_TICKS;

	step_ns = step_ns < left_ns ? step_ns : left_ns;     /* the last one is where it always was */
	step_ns -= step_ns % TICK_NS;
	return step_ns ? step_ns : TICK_NS;
}

static void tick(struct engine *e, uint64_t until_ns)
{
	struct event event = {.kind = EVENT_TICK, .cpu = CPU_NONE, .stack = STACK_NONE};
	uint64_t gap_from_ns = e->next_tick_ns, step_ns;

	while (e->next_tick_ns <= until_ns && e->next_tick_ns != UINT64_MAX && !e->closed) {
		event.time_ns = e->next_tick_ns;
		step_ns = tick_step(event.time_ns - gap_from_ns, until_ns - event.time_ns);
		e->next_tick_ns = step_ns < UINT64_MAX - event.time_ns ? event.time_ns + step_ns
								       : UINT64_MAX;
		e->now_ns = event.time_ns;
		if (event.time_ns >= e->next_tables_ns) {
			engine_keep_tables_open(e);
			e->next_tables_ns = event.time_ns + NS_PER_SEC;
		}
		engine_rules_feed(e, &event);
		engine_windows(e, e->now_ns, NULL);
		if (e->cfg->capture.max_collect_ns && e->now_ns - e->start_ns >= e->cfg->capture.max_collect_ns) {
			engine_stop(e, STOP_TIME, NULL);
			e->closed = true;
		}
	}
}

/* ---- events ----------------------------------------------------------------------------------- */

static void fresh_frame(void *ctx, struct frame *frame)
{
	struct engine *e = ctx;
	struct symbol symbol;
	uint32_t i;

	for (i = 0; i < e->feed.n; i++) {
		const struct feed_source *s = &e->feed.sources[i];

		if (!s->ops->name_frame || !s->ops->name_frame(s->source, frame, &symbol))
			continue;
		frame_set_function(e->frames, frame, symbol.offset, symbol.name, NULL, symbol.module);
		return;
	}
	symbols_want(e->symbols, frame);
}

bool engine_keep(struct engine *e, struct event *event)
{
	int rc;

	if (segment_is_full(e->builder, event->time_ns)) {
		engine_seal(e);
		engine_keep_tables_open(e);
	}
	event->stack = STACK_NONE;
	if (event->nstack_frames)
		event->stack = segment_stack_of(e->builder, event, fresh_frame, e);
	if (event->nstack_frames && event->stack == STACK_NONE)
		event->quality = QUALITY_BROKEN;     /* a table is full: the sample stays, its stack not */
	rc = segment_add(e->builder, event);
	if (rc == ERR_LIMIT)
		e->flooded++;                /* told once a second: note_own_losses() */
	else if (rc)
		e->lost++;
	if (!rc && event->kind == EVENT_SAMPLE)
		e->samples++;
	return rc != ERR_LIMIT;
}

/* Not live: time starts with the first event. */
static void start(struct engine *e, uint64_t first_ns)
{
	e->started = true;
	e->start_ns = e->now_ns = e->last_ns = first_ns;
	if (e->cfg->capture.file)
		engine_file_begin(e, first_ns);
	e->next_tick_ns = e->start_ns + TICK_NS;
}

static void deliver(struct engine *e, const struct event *from)
{
	struct event event = *from;
	bool kept;

	if (!e->started)
		start(e, event.time_ns);
	tick(e, event.time_ns);
	if (e->closed)
		return;
	if (event.time_ns > e->next_end_ns && e->cfg->live)
		engine_windows(e, event.time_ns, NULL);
	e->events++;
	if (event.time_ns < e->last_ns) {
		event.flags |= EVENT_FLAG_LATE;
		e->late++;
	} else {
		e->last_ns = event.time_ns;
	}
	switch (event.kind) {
	case EVENT_IMAGE:
		if (event.nstack_frames)
			symbols_prefetch(e->symbols, event.stack_frames[0].object,
					 event.process ? event.process->pid : 0);
		return;
	case EVENT_LOST:
		if (loss_kind_from_text(event.name) != LOSS_FLOOD)
			e->lost += (uint64_t)event.value;
		break;
	case EVENT_RATE:
		engine_budget_rate(e, &event);
		break;
	default:
		break;
	}
	/* A process that is met for the first time: its command line, while it lives. */
	if (event.process && !atomic_exchange(&event.process->met, true))
		symbols_process(e->symbols, event.process);
	kept = engine_keep(e, &event);
	/* What a rule fired at is in its incident, whatever its process has had. */
	if (engine_rules_feed(e, &event) && !kept && segment_add_wanted(e->builder, &event) == 0 &&
	    e->flooded > e->flooded_told)
		e->flooded--;
}

static void put_loss(struct engine *e, enum loss_kind kind, uint64_t n)
{
	struct event event = {.kind = EVENT_LOST, .cpu = CPU_NONE, .stack = STACK_NONE,
			      .value = (double)n};

	event.time_ns = e->now_ns > e->last_ns ? e->now_ns : e->last_ns;
	event.name = loss_kind_text(kind);
	deliver(e, &event);
}

/* What our own queues and tables refused is a loss like any other: put it among the events. */
static void note_own_losses(struct engine *e)
{
	struct processes_use processes;
	struct frames_use frames;
	uint32_t i;

	for (i = 0; i < e->feed.n; i++) {
		uint64_t lost = queue_lost(e->feed.sources[i].queue);

		if (lost != e->queue_lost_told[i])
			put_loss(e, LOSS_QUEUE, lost - e->queue_lost_told[i]);
		e->queue_lost_told[i] = lost;
	}
	if (e->flooded != e->flooded_told)
		put_loss(e, LOSS_FLOOD, e->flooded - e->flooded_told);
	e->flooded_told = e->flooded;
	processes_use(e->processes, &processes);
	frames_use(e->frames, &frames);
	if (processes.refused + frames.refused != e->refused_told)
		put_loss(e, LOSS_TABLE, processes.refused + frames.refused - e->refused_told);
	e->refused_told = processes.refused + frames.refused;
}

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
	if (e->cfg->live && lowest < now - behind)
		lowest = now - behind;
	return lowest;
}

/* With --dedup the last firing may turn out to be a repetition: until the writer has decided, go on. */
static bool all_told_apart(struct engine *e)
{
	uint32_t waiting;

	if (!e->cfg->capture.dedup_ns || e->cfg->capture.file)       /* a file waits at each firing */
		return true;
	os_mutex_lock(e->lock);
	waiting = e->npending;
	os_mutex_unlock(e->lock);
	return !waiting && e->firings >= engine_rules_wanted(e);
}

static void end_when_done(struct engine *e)
{
	if (!e->cfg->ntriggers || e->firings < engine_rules_wanted(e) || e->in_window || !all_told_apart(e))
		return;
	engine_stop(e, STOP_DONE, NULL);
	e->closed = true;
}

/* A source tells its first watermark when it has begun to watch. */
static void note_begun(struct engine *e)
{
	uint64_t now_ns;
	uint32_t i;

	if (atomic_load(&e->begun))
		return;
	now_ns = os_now_ns();
	for (i = 0; i < e->feed.n; i++)
		if (!queue_released(e->feed.sources[i].queue, now_ns))
			return;
	atomic_store(&e->begun, true);
	os_wake(e->wake_control);
}

/* Deliver what may be delivered; true when there was anything. */
static bool release(struct engine *e)
{
	uint64_t until_ns = released_until(e);
	struct feed_source *source;
	const struct event *event;
	uint32_t n = 0;

	/* A file is the only source, so its order is the order; it must not wait for a watermark. */
	while ((event = feed_peek(&e->feed, &source)) != NULL &&
	       (event->time_ns <= until_ns || e->cfg->capture.file)) {
		if (!e->closed)
			deliver(e, event);
		feed_pop(source);
		/* At once: how much of a file was read does not depend on how many events waited. */
		if (e->cfg->capture.file && !e->closed)
			end_when_done(e);
		if (++n == FILE_BATCH && e->cfg->capture.file)
			return true;
	}
	if (until_ns != UINT64_MAX && e->started && !e->closed)
		tick(e, until_ns);
	/* When all have ended, recording was stopped: end_run() cuts what is open. */
	if (until_ns != UINT64_MAX && until_ns > e->next_end_ns && e->cfg->live && !e->closed)
		engine_windows(e, until_ns, NULL);
	return n > 0;
}

/* ---- housekeeping ----------------------------------------------------------------------------- */

static void publish(struct engine *e)
{
	struct ring_use use;
	uint64_t open_first_ns = segment_first_ns(e->builder);

	ring_use(e->ring, &use);
	os_mutex_lock(e->lock);
	e->view.now_ns = e->now_ns;
	e->view.start_ns = e->start_ns;
	e->view.samples = e->samples;
	e->view.lost = e->lost;
	e->view.flooded = e->flooded_told;
	e->view.late = e->late;
	e->view.open_samples = segment_open_samples(e->builder);
	e->view.open_bytes = segment_open_bytes(e->builder);
	e->view.oldest_ns = use.oldest_ns ? use.oldest_ns : open_first_ns;
	e->view.firings = e->firings;
	e->view.budget = e->budget;
	engine_rules_publish(e);
	os_mutex_unlock(e->lock);
}

static void housekeeping(struct engine *e)
{
	uint64_t now = os_now_ns();

	if (now < e->next_housekeeping_ns)
		return;
	e->next_housekeeping_ns = now + HOUSEKEEPING_NS;
	if (e->started)
		note_own_losses(e);
	if (segment_is_full(e->builder, e->now_ns))
		engine_seal(e);
	engine_sweep(e);
	engine_rules_remember(e, false);
	engine_memory_look(e);
	engine_budget_look(e);
	publish(e);
}

/* ---- the end ---------------------------------------------------------------------------------- */

static void stop_sources(struct engine *e)
{
	if (e->stopping_sources)
		return;
	e->stopping_sources = true;
	feed_stop(&e->feed);
}

static void take_snapshot(struct engine *e)
{
	struct firing f = {.rule = MANUAL_RULE, .rule_text = "manual", .value = NAN, .limit = NAN,
			   .time_ns = e->now_ns, .pre_ns = e->cfg->capture.pre_ns, .post_ns = e->cfg->capture.post_ns};
	char *reason;

	os_mutex_lock(e->lock);
	reason = e->snapshot_reason;
	e->snapshot_reason = NULL;
	/* When it was asked for, not up to where events have been released by now. */
	if (e->cfg->live && !e->stopping_sources && e->snapshot_ns > e->now_ns)
		f.time_ns = e->snapshot_ns;
	os_mutex_unlock(e->lock);
	if (!reason)
		return;
	f.reason = reason;
	engine_fire(e, &f);
	free(reason);
}

/* The last incident, of a run that somebody or its time limit ended: it waits for nothing. */
static void last_incident(struct engine *e, enum engine_stop how)
{
	struct firing f = {.rule = MANUAL_RULE, .value = NAN, .limit = NAN, .time_ns = e->now_ns,
			   .pre_ns = e->cfg->capture.pre_ns};
	char reason[300];

	os_mutex_lock(e->lock);
	snprintf(reason, sizeof(reason), "%s", e->stop_reason ? e->stop_reason : "recording ended");
	os_mutex_unlock(e->lock);
	f.rule_text = how == STOP_TIME ? "max-collect-sec" : "manual";
	if (how == STOP_TIME)
		snprintf(reason, sizeof(reason), "MaxCollectSec: %.0f s have passed",
			 (double)e->cfg->capture.max_collect_ns / 1e9);
	f.reason = reason;
	if (e->last_ns > e->now_ns)
		f.time_ns = e->now_ns = e->last_ns;
	if (!e->cfg->ntriggers && e->now_ns > e->start_ns)
		f.pre_ns = e->now_ns - e->start_ns;          /* all that there is */
	engine_fire(e, &f);
}

/* Without rules a file is one incident already; of one that is not read to its end nobody wants more. */
static bool wants_last_incident(const struct engine *e, enum engine_stop how)
{
	if (how != STOP_TIME && how != STOP_ASKED)
		return false;
	return !e->cfg->capture.file || (how == STOP_TIME && e->cfg->ntriggers && e->started);
}

static void end_run(struct engine *e, enum engine_stop how)
{
	struct window_end why = {.cut = how == STOP_TIME ? "the time limit ended recording"
							 : "recording was stopped"};
	struct pending *p;
	char text[400];

	e->stopping_sources = true;
	if (how == STOP_ABORT) {
		os_mutex_lock(e->lock);
		e->aborted = true;
		for (p = e->first_pending; p; p = p->next)
			p->discard = true;
		os_mutex_unlock(e->lock);
	}
	if (how != STOP_ABORT)
		take_snapshot(e);            /* asked for just before the end */
	if (e->cfg->capture.file)
		engine_file_end(e, how, text, sizeof(text), &why);
	if (wants_last_incident(e, how))
		last_incident(e, how);
	engine_windows(e, e->now_ns, &why);
	engine_rules_remember(e, true);
	publish(e);
	os_mutex_lock(e->lock);
	e->merge_done = true;
	engine_hurry_writer(e);
	os_mutex_unlock(e->lock);
	atomic_store(&e->merge_ended, true);
	os_wake(e->wake_control);
}

/*
 * How long until there is something to do. What waits to be released comes due when the release, which follows the
 * clock, gets there; with nothing waiting all threads' idle looks are at the same instants, which costs less. A
 * queue that fills quickly ends the wait (queue_wakes()).
 */
static uint64_t idle_ns(struct engine *e, bool busy)
{
	uint64_t now_ns = os_now_ns(), wait_ns = IDLE_NS - now_ns % IDLE_NS, until_ns;
	const struct event *event;
	struct feed_source *source;

	if (e->cfg->capture.file)
		return FILE_IDLE_NS;
	if (busy || e->in_window || atomic_load(&e->stop) != STOP_NO)
		return BUSY_NS;
	event = feed_peek(&e->feed, &source);
	if (!event)
		return wait_ns;
	until_ns = released_until(e);
	if (until_ns >= event->time_ns || event->time_ns - until_ns < IDLE_MIN_NS)
		return IDLE_MIN_NS;
	return event->time_ns - until_ns < wait_ns ? event->time_ns - until_ns : wait_ns;
}

void engine_merge_main(void *ctx)
{
	struct engine *e = ctx;
	bool any = true, ended = false, busy = false;
	uint64_t wait_ns;

	os_thread_priority(e->cfg->capture.file ? OS_PRIORITY_NORMAL : OS_PRIORITY_HIGH);
	for (;;) {
		/* Looked at before the queues: what ended sources have put is then in them. */
		ended = feed_ended(&e->feed);
		any = release(e);
		note_begun(e);
		housekeeping(e);
		take_snapshot(e);
		end_when_done(e);
		if (atomic_load(&e->stop) != STOP_NO)
			stop_sources(e);
		if (ended && !any)
			break;
		busy |= any;
		if (any)
			continue;
		wait_ns = engine_windows_wait(e, idle_ns(e, busy));
		os_mutex_lock(e->lock);
		if (!e->snapshot_reason && (e->stopping_sources || atomic_load(&e->stop) == STOP_NO))
			os_cond_wait(e->wake_merge, e->lock, wait_ns);
		os_mutex_unlock(e->lock);
		busy = false;
	}
	if (atomic_load(&e->stop) == STOP_NO)
		engine_stop(e, e->cfg->capture.file ? STOP_END : e->cfg->live ? STOP_FAILED : STOP_ASKED,
			    "end of file");
	if (e->started)
		note_own_losses(e);
	end_run(e, (enum engine_stop)atomic_load(&e->stop));
}
