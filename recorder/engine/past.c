/*
 * The history on disk: the merge thread puts every event into a second open segment too, which is
 * sealed every ten seconds, and a thread of its own writes what is sealed. What is written is
 * final: a segment that is written again while it grows costs twice the bytes on the disk, and the
 * ring's own segments stay as large as they are. Nobody waits for this thread. While its disk is
 * slow, full or gone, segments wait in memory; the oldest of too many are dropped, and log and
 * status say so.
 *
 * What `recorder top` reads is a second one of the same kind, "<store>.top.history". It is kept
 * only while somebody asks for it, is sealed when he asks, and is removed afterwards.
 */
#include "base/array.h"
#include "base/text.h"
#include "base/version.h"
#include "engine/engine_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYNC_NS (10 * NS_PER_SEC)
#define QUEUE_BYTES_MAX ((size_t)8 << 20)    /* about an hour of two busy CPUs */
#define SETTLE_NS NS_PER_SEC                 /* how long names are waited for before a write, */
#define SETTLE_PART 4u                       /* and after it: of the time between two rounds */
#define AHEAD_PART 20u                       /* of it: events come late, and a write takes time */
#define RETRY_NS (10 * NS_PER_SEC)
#define LOOK_NS NS_PER_SEC
#define MANY_PART 4u                         /* of the listed frames: their names are put at once */
#define NAMED_LATE 3u                        /* segments that may still get names */
#define TOP_BYTES ((uint64_t)32 << 20)
#define TOP_IDLE_NS (15 * NS_PER_SEC)        /* after the last question it is removed */

/* ---- the merge thread ------------------------------------------------------------------------ */

int past_open(struct engine *e, struct err *err)
{
	uint32_t i;

	for (i = 0; i < PASTS; i++) {
		e->shared.pasts[i].engine = e;
		e->shared.pasts[i].wake = os_cond_new();
		if (!e->shared.pasts[i].wake)
			return err_memory(err, "for the history");
	}
	if (!e->cfg->live || !e->cfg->history_bytes)
		return 0;
	return segment_builder_new(e->frames, e->processes,
				   &e->shared.pasts[PAST_HISTORY].builder, err);
}

/* Drop the oldest; under the lock. */
static void drop_first(struct past *q)
{
	struct segment *s = q->items[0];

	memmove(q->items, q->items + 1, --q->n * sizeof(*q->items));
	q->bytes -= s->memory_bytes;
	segment_unref(s);
}

static void free_window(struct past_window *w)
{
	free(w->rule);
	free(w->reason);
}

void past_close(struct engine *e)
{
	uint32_t i;

	for (i = 0; i < PASTS; i++) {
		struct past *q = &e->shared.pasts[i];

		while (q->nwindows)
			free_window(&q->windows[--q->nwindows]);
		while (q->n)
			drop_first(q);
		free(q->items);
		segment_builder_free(q->builder);
		os_cond_free(q->wake);
	}
}

/* Hand what is open to the thread that writes it. */
static void seal(struct past *q)
{
	struct engine *e = q->engine;
	struct segment *s = NULL;
	bool kept = true;

	if (segment_seal(q->builder, &s, NULL))
		return;
	os_mutex_lock(e->shared.lock);
	if (s) {
		q->last_number = s->number;
		q->sealed = q->asked;
		kept = !ARRAY_ROOM(q->items, q->cap, q->n + 1);
		if (kept) {
			q->items[q->n++] = s;
			q->bytes += s->memory_bytes;
		}
	}
	q->sealed_ns = e->merge.now_ns;
	while (q->bytes > QUEUE_BYTES_MAX && q->n > 1) {
		q->dropped++;
		q->dropped_samples += q->items[0]->nsamples;
		drop_first(q);
	}
	os_cond_signal(q->wake);
	os_mutex_unlock(e->shared.lock);
	if (!kept)
		segment_unref(s);
}

/* Frames are in the table already: the open segment came first. */
static void keep(struct past *q, const struct event *event, bool wanted)
{
	struct segment_builder *b = q->builder;
	struct event copy = *event;

	if (segment_is_full(b, event->time_ns))
		seal(q);
	copy.stack = STACK_NONE;
	if (copy.nstack_frames)
		copy.stack = segment_stack_again(b, q->engine->merge.builder, event);
	if (copy.nstack_frames && copy.stack == STACK_NONE)
		copy.quality = QUALITY_BROKEN;
	(wanted ? segment_add_wanted : segment_add)(b, &copy);
}

void past_keep(struct engine *e, const struct event *event, bool wanted)
{
	uint32_t i;

	for (i = 0; i < PASTS; i++)
		if (e->shared.pasts[i].builder)
			keep(&e->shared.pasts[i], event, wanted);
}

/* A file has one rate, so that its samples tell the load: another one begins. */
static void note_step(struct past *q, uint64_t period_ns, const char *why)
{
	struct past_step *step;

	os_mutex_lock(q->engine->shared.lock);
	q->nsteps += q->nsteps < PAST_STEPS;
	step = &q->steps[q->nsteps - 1];
	step->after = q->last_number;
	step->period_ns = period_ns;
	snprintf(step->why, sizeof(step->why), "sampling went on at %.0f Hz: %s",
		 1e9 / (double)period_ns, why);
	os_mutex_unlock(q->engine->shared.lock);
}

void past_rate(struct engine *e, uint64_t period_ns, const char *why)
{
	uint64_t before_ns = e->merge.period_ns;
	uint32_t i;

	if (!period_ns)
		return;
	e->merge.period_ns = period_ns;
	for (i = 0; i < PASTS; i++) {
		struct past *q = &e->shared.pasts[i];

		if (!q->builder)
			continue;
		seal(q);
		segment_set_period(q->builder, STREAM_CPU, period_ns);
		if (before_ns && before_ns != period_ns)
			note_step(q, period_ns, why);
	}
}

void past_set_quota(struct engine *e, const struct segment_quota *quota)
{
	uint32_t i;

	for (i = 0; i < PASTS; i++)
		if (e->shared.pasts[i].builder)
			segment_set_quota(e->shared.pasts[i].builder, quota);
}

/* Begin to keep events for `recorder top`, or end it. */
static void switch_top(struct engine *e, struct past *q, bool on)
{
	struct segment_builder *b = NULL;

	if (on && segment_builder_new(e->frames, e->processes, &b, NULL))
		return;                      /* tried again at the next tick */
	segment_builder_free(q->builder);
	q->builder = b;
	os_mutex_lock(e->shared.lock);
	q->from_ns = on ? e->merge.now_ns : 0;
	os_cond_signal(q->wake);
	os_mutex_unlock(e->shared.lock);
	if (!on)
		return;
	segment_set_period(b, STREAM_CPU, e->merge.period_ns);
	tables_set_quota(e);
}

static void look_at_top(struct engine *e)
{
	struct past *q = &e->shared.pasts[PAST_TOP];
	uint64_t seal_ns;
	bool wanted;

	os_mutex_lock(e->shared.lock);
	wanted = q->wanted_until_ns > e->merge.now_ns;
	seal_ns = q->seal_at_ns > q->sealed_ns ? q->seal_at_ns : UINT64_MAX;
	os_mutex_unlock(e->shared.lock);
	if (wanted != (q->builder != NULL))
		switch_top(e, q, wanted);
	if (q->builder && e->merge.now_ns >= seal_ns)
		seal(q);
}

bool past_want(struct engine *e, const struct firing *f, uint64_t wall_ns, const char *reason)
{
	struct past *q = &e->shared.pasts[PAST_HISTORY];
	struct past_window w = {
		.from_ns = wall_ns > f->pre_ns ? wall_ns - f->pre_ns : 0, .trigger_ns = wall_ns,
		.to_ns = wall_ns + f->post_ns,
	};
	bool room;

	if (!q->builder)
		return false;
	w.rule = text_dup(f->rule_text, SIZE_MAX);
	w.reason = text_dup(reason, SIZE_MAX);
	os_mutex_lock(e->shared.lock);
	room = w.rule && w.reason && q->nwindows < PAST_WINDOWS;
	if (room)
		q->windows[q->nwindows++] = w;
	os_cond_signal(q->wake);
	os_mutex_unlock(e->shared.lock);
	if (!room)
		free_window(&w);
	return room;
}

static uint64_t sync_ns(const struct engine *e)
{
	return e->cfg->history_sync_ns ? e->cfg->history_sync_ns : SYNC_NS;
}

void past_tick(struct engine *e)
{
	struct past *q = &e->shared.pasts[PAST_HISTORY];
	uint64_t first_ns;
	bool asked;

	look_at_top(e);
	if (!q->builder)
		return;
	first_ns = segment_first_ns(q->builder);
	os_mutex_lock(e->shared.lock);
	asked = q->asked != q->sealed;
	if (asked && !first_ns)
		q->sealed = q->asked;
	if (!q->n)
		q->flushed = q->sealed;
	os_mutex_unlock(e->shared.lock);
	if (first_ns && (asked || e->merge.now_ns >= first_ns + sync_ns(e) / AHEAD_PART *
							     (AHEAD_PART - 1)))
		seal(q);
}

uint32_t past_flush(struct engine *e)
{
	uint32_t number;

	os_mutex_lock(e->shared.lock);
	number = ++e->shared.pasts[PAST_HISTORY].asked;
	os_mutex_unlock(e->shared.lock);
	return number;
}

void past_end(struct engine *e)
{
	uint32_t i;

	for (i = 0; i < PASTS; i++) {
		struct past *q = &e->shared.pasts[i];

		if (q->builder)
			seal(q);
		os_mutex_lock(e->shared.lock);
		q->done = true;
		os_cond_signal(q->wake);
		os_mutex_unlock(e->shared.lock);
	}
}

void past_yield(struct engine *e)
{
	struct past *q = &e->shared.pasts[PAST_HISTORY];

	os_mutex_lock(e->shared.lock);
	q->yield = true;
	os_cond_signal(q->wake);
	os_mutex_unlock(e->shared.lock);
}

int past_top(struct engine *e, uint64_t until_ns, struct top_answer *out, struct err *err)
{
	struct past *q = &e->shared.pasts[PAST_TOP];
	int rc = 0;

	if (!q->thread)
		rc = os_thread_start("top", past_main, q, &q->thread, err);
	if (rc)
		return rc;
	os_mutex_lock(e->shared.lock);
	q->wanted_until_ns = os_now_ns() + TOP_IDLE_NS;
	if (until_ns > q->seal_at_ns && until_ns < q->wanted_until_ns)
		q->seal_at_ns = until_ns;
	*out = (struct top_answer){.from_ns = q->from_ns, .written_ns = q->written_ns};
	snprintf(out->note, sizeof(out->note), "%s", q->note);
	os_mutex_unlock(e->shared.lock);
	return 0;
}

/* ---- the history's thread -------------------------------------------------------------------- */

struct past_writer {
	struct engine *e;
	struct past *q;
	struct history *history;             /* NULL = it could not be opened yet */
	struct segment *late[NAMED_LATE];    /* written ones, the oldest first */
	uint32_t nlate;
	uint64_t period_ns;                  /* after the last step; 0 = none came yet */
	uint64_t retry_at_ns, dropped_logged;
	bool failing;
	bool top;                            /* it is that of `recorder top` */
	struct buf store;                    /* the path that it lies beside */
};

static void note(struct past_writer *p, const struct err *err)
{
	struct shared *s = &p->e->shared;

	os_mutex_lock(s->lock);
	snprintf(p->q->note, sizeof(p->q->note), "%.*s", (int)sizeof(p->q->note) - 1,
		 err ? err->text : "");
	os_mutex_unlock(s->lock);
	if (err && !p->failing)
		log_line(p->e->log, LOG_WARN, "%s is not written: %s; recording and incidents go "
			 "on, and it is tried again", p->top ? "what `recorder top` shows"
							     : "the history", err->text);
	else if (!err && p->failing)
		log_line(p->e->log, LOG_INFO, "%s is written again",
			 p->top ? "what `recorder top` shows" : "the history");
	p->failing = err != NULL;
	if (err)
		p->retry_at_ns = os_now_ns() + RETRY_NS;
}

static int open_history(struct past_writer *p, struct err *err)
{
	const struct engine *e = p->e;
	struct history_config cfg = {
		.store_path = buf_text(&p->store), .floor_bytes = UINT64_MAX,
		.host = e->host, .host_text = e->host_text, .version = RECORDER_VERSION,
		.boot_id = e->cfg->boot_id ? e->cfg->boot_id : "",
		.kills = e->cfg->kills ? e->cfg->kills : "",
	};
	uint32_t freq_hz;

	os_mutex_lock(e->shared.lock);
	cfg.max_bytes = e->cfg->history_bytes;
	cfg.max_age_ns = e->cfg->history_age_ns;
	freq_hz = e->capture->freq_hz;
	os_mutex_unlock(e->shared.lock);
	if (p->top) {
		cfg.max_bytes = TOP_BYTES;
		cfg.file_bytes = TOP_BYTES / 4;
		cfg.max_age_ns = 0;
	}
	cfg.period_ns = p->period_ns ? p->period_ns : NS_PER_SEC / (freq_hz ? freq_hz : 1);
	if (!p->history)
		return history_open(&cfg, &p->history, err);
	history_limit(p->history, cfg.max_bytes, cfg.max_age_ns);
	return 0;
}

/*
 * Frames without a name are named now, while their programs are still there. Returns whether many
 * of the listed ones got one, as at the start.
 */
static bool settle_names(struct past_writer *p, struct segment *const *segments, uint32_t n,
			 uint64_t most_ns)
{
	struct frame **frames = NULL;
	uint32_t room = 0, nframes = 0, unnamed = 0, number, i;

	for (i = 0; i < n; i++)
		room += segments[i]->nframes;
	frames = room ? malloc(room * sizeof(*frames)) : NULL;
	for (i = 0; frames && i < n; i++) {
		struct segment_list list = segment_frames(segments[i]);

		while (segment_next(&list, &number)) {
			struct frame *frame = frame_get(p->e->frames, number);

			if (!atomic_load(&frame->function))
				frames[nframes++] = frame;
		}
	}
	if (nframes)
		unnamed = symbols_settle(p->e->symbols, frames, nframes, most_ns);
	free(frames);
	return (nframes - unnamed) * (uint64_t)MANY_PART > room;
}

/* No further round brings the names of what was written last. */
static void put_late_names(struct past_writer *p)
{
	if (!p->history || !p->nlate)
		return;
	settle_names(p, p->late, p->nlate, SETTLE_NS);
	history_put_names(p->history, p->late, p->nlate);
}

/*
 * The written ones of before, and those that wait and come before the next step, with references of
 * their own; or the step, where none do: *step.
 */
static uint32_t take_waiting(struct past_writer *p, struct segment ***out, struct past_step *step)
{
	struct past *q = p->q;
	struct segment **all = NULL;
	uint32_t n = 0, i, waiting = 0;

	os_mutex_lock(p->e->shared.lock);
	while (waiting < q->n && (!q->nsteps || q->items[waiting]->number <= q->steps[0].after))
		waiting++;
	if (!waiting && q->nsteps) {
		*step = q->steps[0];
		memmove(q->steps, q->steps + 1, --q->nsteps * sizeof(*q->steps));
	}
	if (waiting)
		all = malloc((waiting + NAMED_LATE) * sizeof(struct segment *));
	for (i = 0; all && i < p->nlate; i++)
		all[n++] = p->late[i];
	for (i = 0; all && i < waiting; i++)
		all[n++] = q->items[i];
	for (i = 0; i < n; i++)
		segment_ref(all[i]);
	os_mutex_unlock(p->e->shared.lock);
	*out = all;
	return n;
}

/* Some of them may have been dropped meanwhile. */
static void forget_written(struct past_writer *p, uint64_t last_number)
{
	struct past *q = p->q;

	os_mutex_lock(p->e->shared.lock);
	while (q->n && q->items[0]->number <= last_number)
		drop_first(q);
	if (!q->n)
		q->flushed = q->sealed;
	history_use(p->history, &q->use);
	os_mutex_unlock(p->e->shared.lock);
}

static void keep_late(struct past_writer *p, struct segment **all, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < p->nlate; i++)
		segment_unref(p->late[i]);
	p->nlate = n < NAMED_LATE ? n : NAMED_LATE;
	for (i = 0; i < p->nlate; i++) {
		p->late[i] = all[n - p->nlate + i];
		segment_ref(p->late[i]);
	}
}

static void log_dropped(struct past_writer *p)
{
	uint64_t dropped, samples;

	os_mutex_lock(p->e->shared.lock);
	dropped = p->q->dropped;
	samples = p->q->dropped_samples;
	os_mutex_unlock(p->e->shared.lock);
	if (dropped != p->dropped_logged)
		log_line(p->e->log, LOG_WARN, "the history lacks %" PRIu64 " segments (%" PRIu64
			 " samples since the start): its disk was slow, full or gone, and %.0f MB "
			 "were waiting", dropped - p->dropped_logged, samples,
			 (double)QUEUE_BYTES_MAX / 1048576);
	p->dropped_logged = dropped;
}

static void take_step(struct past_writer *p, const struct past_step *step)
{
	p->period_ns = step->period_ns;
	put_late_names(p);
	keep_late(p, NULL, 0);
	if (p->history)
		history_rate(p->history, step->period_ns, step->why);
}

/* All that was sealed until then can be read, unless more waits. */
static void note_written(struct past_writer *p, uint64_t sealed_ns)
{
	os_mutex_lock(p->e->shared.lock);
	if (!p->q->n)
		p->q->written_ns = sealed_ns;
	os_mutex_unlock(p->e->shared.lock);
}

/* Somebody waits for what is on the disk, to read it: `recorder top`, or a snapshot. */
static bool is_awaited(const struct past_writer *p)
{
	bool asked;

	os_mutex_lock(p->e->shared.lock);
	asked = p->q->flushed != p->q->sealed;
	os_mutex_unlock(p->e->shared.lock);
	return asked || p->top;
}

/*
 * Everything that waits, in one transaction; up to a step of the rate. What is in memory is lost
 * with a kill, so nothing waits for names: those that come late are put with the next round, or,
 * when they are many, behind it. true: there is more.
 */
static bool write_some(struct past_writer *p)
{
	struct past_step step = {0};
	struct history_now now;
	struct segment **all = NULL;
	struct err err = {0};
	uint32_t n, i;
	bool awaited;
	int rc;

	n = take_waiting(p, &all, &step);
	if (step.period_ns)
		take_step(p, &step);
	if (!n)
		return step.period_ns != 0;
	awaited = is_awaited(p);
	if (awaited)
		settle_names(p, all, n, SETTLE_NS);
	rc = open_history(p, &err);
	now = (struct history_now){os_now_ns(), os_wall_ns()};
	if (!rc)
		rc = history_put(p->history, all, n, &now, &err);
	if (rc) {
		note(p, &err);
	} else {
		note(p, NULL);
		forget_written(p, all[n - 1]->number);
		keep_late(p, all, n);
		log_dropped(p);
		if (!awaited && settle_names(p, all, n, sync_ns(p->e) / SETTLE_PART))
			history_put_names(p->history, all, n);
	}
	for (i = 0; i < n; i++)
		segment_unref(all[i]);
	free(all);
	return !rc;
}

static void give_way(struct past_writer *p)
{
	bool gone = p->history && history_give_up_oldest(p->history);

	log_line(p->e->log, LOG_WARN, "the disk is too full for an incident: %s",
		 gone ? "the oldest file of the history was removed"
		      : "the history has no file to give up");
}

/* The windows of late firings, which the ring does not hold any more. */
static void keep_windows(struct past_writer *p)
{
	struct past *q = p->q;
	struct history_keep keep;
	struct past_window w;
	struct err err = {0};
	int64_t id = 0;
	int rc;

	os_mutex_lock(p->e->shared.lock);
	while (q->nwindows) {
		w = q->windows[0];
		memmove(q->windows, q->windows + 1, --q->nwindows * sizeof(*q->windows));
		os_mutex_unlock(p->e->shared.lock);
		keep = (struct history_keep){
			.from_ns = w.from_ns, .to_ns = w.to_ns, .trigger_ns = w.trigger_ns,
			.rule = w.rule, .reason = w.reason, .tell_system = p->e->cfg->live,
		};
		rc = history_keep(p->e->cfg->store_path, &keep, &id, &err);
		if (rc)
			log_line(p->e->log, LOG_WARN, "not kept: %s: %s", w.reason, err.text);
		else
			log_line(p->e->log, LOG_INFO, "incident %" PRId64 " is stored, out of the "
				 "history: %s", id, w.reason);
		free_window(&w);
		os_mutex_lock(p->e->shared.lock);
		p->e->shared.kept += !rc;
	}
	os_mutex_unlock(p->e->shared.lock);
}

/*
 * true: the run is over, and everything was tried.
 *
 * sealed_ns  until when what waits reaches
 * unasked    nobody reads what `recorder top` reads
 */
static bool wait_for_work(struct past_writer *p, uint64_t *sealed_ns, bool *unasked)
{
	struct shared *s = &p->e->shared;
	struct past *q = p->q;
	bool done, yield, idle;

	os_mutex_lock(s->lock);
	idle = q->n ? os_now_ns() < p->retry_at_ns : q->written_ns == q->sealed_ns;
	if (!q->done && !q->yield && !q->nwindows && idle)
		os_cond_wait(q->wake, s->lock, q->n ? LOOK_NS : UINT64_MAX);
	done = q->done;
	yield = q->yield;
	q->yield = false;
	*sealed_ns = q->sealed_ns;
	*unasked = p->top && !q->from_ns && !q->n;
	os_mutex_unlock(s->lock);
	if (yield)
		give_way(p);
	return done;
}

static const char *end_text(const struct engine *e)
{
	switch (atomic_load(&e->stop)) {
	case STOP_TIME:
		return "the time limit ended recording";
	case STOP_DONE:
		return "recording ended with its last incident";
	case STOP_ABORT:
		return "recording was aborted";
	case STOP_FAILED:
		return "no source delivered any more";
	default:
		return e->shared.stop_reason ? e->shared.stop_reason : "recording was stopped";
	}
}

static void let_late_go(struct past_writer *p)
{
	while (p->nlate)
		segment_unref(p->late[--p->nlate]);
}

/* Nobody looks any more: leave nothing behind. */
static void remove_top(struct past_writer *p)
{
	if (!p->history)
		return;
	history_close(p->history, NULL);
	p->history = NULL;
	let_late_go(p);
	history_discard(buf_text(&p->store));
}

void past_main(void *ctx)
{
	struct past_writer p = {.q = ctx, .e = ((struct past *)ctx)->engine};
	uint64_t sealed_ns;
	bool done = false, unasked;

	p.top = p.q == &p.e->shared.pasts[PAST_TOP];
	buf_printf(&p.store, "%s%s", p.e->cfg->store_path, p.top ? TOP_SUFFIX : "");
	if (p.top)
		history_discard(buf_text(&p.store));         /* a killed recorder's */
	/* Not LOW: it uses 0.03 % of a CPU, and what waits for one is lost with a kill. */
	os_thread_priority(p.e->capture->low_priority ? OS_PRIORITY_LOWEST : OS_PRIORITY_WRITER);
	while (!done) {
		done = wait_for_work(&p, &sealed_ns, &unasked);
		if (done || os_now_ns() >= p.retry_at_ns)
			while (write_some(&p))
				;
		note_written(&p, sealed_ns);
		keep_windows(&p);
		if (p.top && (done || unasked))
			remove_top(&p);
	}
	put_late_names(&p);
	history_close(p.history, end_text(p.e));
	let_late_go(&p);
	buf_free(&p.store);
}
