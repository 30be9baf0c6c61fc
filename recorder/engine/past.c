/*
 * The history on disk: the merge thread puts every event into a second open segment too, which is
 * sealed every ten seconds, and a thread of its own writes what is sealed. What is written is
 * final: a segment that is written again while it grows costs twice the bytes on the disk, and the
 * ring's own segments stay as large as they are. Nobody waits for this thread. While its disk is
 * slow, full or gone, segments wait in memory; the oldest of too many are dropped, and log and
 * status say so.
 */
#include "base/array.h"
#include "base/version.h"
#include "engine/engine_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYNC_NS (10 * NS_PER_SEC)
#define QUEUE_BYTES_MAX ((size_t)8 << 20)    /* about an hour of two busy CPUs */
#define SETTLE_NS NS_PER_SEC                 /* what a round waits for names */
#define RETRY_NS (10 * NS_PER_SEC)
#define LOOK_NS NS_PER_SEC
#define NAMED_LATE 3u                        /* segments that may still get names */

/* ---- the merge thread ------------------------------------------------------------------------ */

int past_open(struct engine *e, struct err *err)
{
	if (!e->cfg->live || !e->cfg->history_bytes)
		return 0;
	return segment_builder_new(e->frames, e->processes, &e->merge.past_builder, err);
}

/* Drop the oldest; under the lock. */
static void drop_first(struct past_queue *q)
{
	struct segment *s = q->items[0];

	memmove(q->items, q->items + 1, --q->n * sizeof(*q->items));
	q->bytes -= s->memory_bytes;
	segment_unref(s);
}

void past_close(struct engine *e)
{
	struct past_queue *q = &e->shared.past;

	while (q->n)
		drop_first(q);
	free(q->items);
	segment_builder_free(e->merge.past_builder);
}

static void seal(struct engine *e)
{
	struct past_queue *q = &e->shared.past;
	struct segment *s = NULL;
	bool kept;

	if (segment_seal(e->merge.past_builder, &s, NULL) || !s)
		return;
	os_mutex_lock(e->shared.lock);
	q->last_number = s->number;
	q->sealed = q->asked;
	kept = !ARRAY_ROOM(q->items, q->cap, q->n + 1);
	if (kept) {
		q->items[q->n++] = s;
		q->bytes += s->memory_bytes;
	}
	while (q->bytes > QUEUE_BYTES_MAX && q->n > 1) {
		q->dropped++;
		q->dropped_samples += q->items[0]->nsamples;
		drop_first(q);
	}
	os_cond_signal(e->shared.wake_past);
	os_mutex_unlock(e->shared.lock);
	if (!kept)
		segment_unref(s);
}

/* Frames are in the table already: the open segment came first. */
void past_keep(struct engine *e, const struct event *event, bool wanted)
{
	struct segment_builder *b = e->merge.past_builder;
	struct event copy = *event;

	if (!b)
		return;
	if (segment_is_full(b, event->time_ns))
		seal(e);
	copy.stack = STACK_NONE;
	if (copy.nstack_frames)
		copy.stack = segment_stack_of(b, &copy, NULL, NULL);
	if (copy.nstack_frames && copy.stack == STACK_NONE)
		copy.quality = QUALITY_BROKEN;
	(wanted ? segment_add_wanted : segment_add)(b, &copy);
}

/* A file has one rate, so that its samples tell the load: another one begins. */
static void note_step(struct engine *e, uint64_t period_ns, const char *why)
{
	struct past_queue *q = &e->shared.past;
	struct past_step *step;

	os_mutex_lock(e->shared.lock);
	q->nsteps += q->nsteps < PAST_STEPS;
	step = &q->steps[q->nsteps - 1];
	step->after = q->last_number;
	step->period_ns = period_ns;
	snprintf(step->why, sizeof(step->why), "sampling went on at %.0f Hz: %s",
		 1e9 / (double)period_ns, why);
	os_mutex_unlock(e->shared.lock);
}

void past_rate(struct engine *e, uint64_t period_ns, const char *why)
{
	if (!e->merge.past_builder || !period_ns)
		return;
	seal(e);
	segment_set_period(e->merge.past_builder, STREAM_CPU, period_ns);
	if (e->merge.past_period_ns && e->merge.past_period_ns != period_ns)
		note_step(e, period_ns, why);
	e->merge.past_period_ns = period_ns;
}

void past_tick(struct engine *e)
{
	uint64_t sync_ns = e->cfg->history_sync_ns ? e->cfg->history_sync_ns : SYNC_NS, first_ns;
	struct past_queue *q = &e->shared.past;
	bool asked;

	if (!e->merge.past_builder)
		return;
	first_ns = segment_first_ns(e->merge.past_builder);
	os_mutex_lock(e->shared.lock);
	asked = q->asked != q->sealed;
	if (asked && !first_ns)
		q->sealed = q->asked;
	if (!q->n)
		q->flushed = q->sealed;
	os_mutex_unlock(e->shared.lock);
	if (first_ns && (asked || e->merge.now_ns >= first_ns + sync_ns))
		seal(e);
}

uint32_t past_flush(struct engine *e)
{
	uint32_t number;

	os_mutex_lock(e->shared.lock);
	number = ++e->shared.past.asked;
	os_mutex_unlock(e->shared.lock);
	return number;
}

void past_end(struct engine *e)
{
	if (!e->merge.past_builder)
		return;
	seal(e);
	os_mutex_lock(e->shared.lock);
	e->shared.past.done = true;
	os_cond_signal(e->shared.wake_past);
	os_mutex_unlock(e->shared.lock);
}

void past_yield(struct engine *e)
{
	os_mutex_lock(e->shared.lock);
	e->shared.past.yield = true;
	os_cond_signal(e->shared.wake_past);
	os_mutex_unlock(e->shared.lock);
}

/* ---- the history's thread -------------------------------------------------------------------- */

struct past {
	struct engine *e;
	struct history *history;             /* NULL = it could not be opened yet */
	struct segment *late[NAMED_LATE];    /* written ones, the oldest first */
	uint32_t nlate;
	uint64_t period_ns;                  /* after the last step; 0 = none came yet */
	uint64_t retry_at_ns, dropped_logged;
	bool failing;
};

static void note(struct past *p, const struct err *err)
{
	struct shared *s = &p->e->shared;

	os_mutex_lock(s->lock);
	snprintf(s->past.note, sizeof(s->past.note), "%.*s", (int)sizeof(s->past.note) - 1,
		 err ? err->text : "");
	os_mutex_unlock(s->lock);
	if (err && !p->failing)
		log_line(p->e->log, LOG_WARN, "the history is not written: %s; recording and "
			 "incidents go on, and it is tried again", err->text);
	else if (!err && p->failing)
		log_line(p->e->log, LOG_INFO, "the history is written again");
	p->failing = err != NULL;
	if (err)
		p->retry_at_ns = os_now_ns() + RETRY_NS;
}

static int open_history(struct past *p, struct err *err)
{
	const struct engine *e = p->e;
	struct history_config cfg = {
		.store_path = e->cfg->store_path, .floor_bytes = UINT64_MAX,
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
	cfg.period_ns = p->period_ns ? p->period_ns : NS_PER_SEC / (freq_hz ? freq_hz : 1);
	if (!p->history)
		return history_open(&cfg, &p->history, err);
	history_limit(p->history, cfg.max_bytes, cfg.max_age_ns);
	return 0;
}

/* Frames without a name are named now, while their programs are still there. */
static void settle_names(struct past *p, struct segment *const *segments, uint32_t n)
{
	struct frame **frames = NULL;
	uint32_t room = 0, nframes = 0, number, i;

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
		symbols_settle(p->e->symbols, frames, nframes, SETTLE_NS);
	free(frames);
}

/*
 * The written ones of before, and those that wait and come before the next step, with references of
 * their own; or the step, where none do: *step.
 */
static uint32_t take_waiting(struct past *p, struct segment ***out, struct past_step *step)
{
	struct past_queue *q = &p->e->shared.past;
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
static void forget_written(struct past *p, uint64_t last_number)
{
	struct past_queue *q = &p->e->shared.past;

	os_mutex_lock(p->e->shared.lock);
	while (q->n && q->items[0]->number <= last_number)
		drop_first(q);
	if (!q->n)
		q->flushed = q->sealed;
	history_use(p->history, &q->use);
	os_mutex_unlock(p->e->shared.lock);
}

static void keep_late(struct past *p, struct segment **all, uint32_t n)
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

static void log_dropped(struct past *p)
{
	uint64_t dropped, samples;

	os_mutex_lock(p->e->shared.lock);
	dropped = p->e->shared.past.dropped;
	samples = p->e->shared.past.dropped_samples;
	os_mutex_unlock(p->e->shared.lock);
	if (dropped != p->dropped_logged)
		log_line(p->e->log, LOG_WARN, "the history lacks %" PRIu64 " segments (%" PRIu64
			 " samples since the start): its disk was slow, full or gone, and %.0f MB "
			 "were waiting", dropped - p->dropped_logged, samples,
			 (double)QUEUE_BYTES_MAX / 1048576);
	p->dropped_logged = dropped;
}

static void take_step(struct past *p, const struct past_step *step)
{
	p->period_ns = step->period_ns;
	keep_late(p, NULL, 0);
	if (p->history)
		history_rate(p->history, step->period_ns, step->why);
}

/* Everything that waits, in one transaction; up to a step of the rate. true: there is more. */
static bool write_some(struct past *p)
{
	struct past_step step = {0};
	struct history_now now;
	struct segment **all = NULL;
	struct err err = {0};
	uint32_t n, i;
	int rc;

	n = take_waiting(p, &all, &step);
	if (step.period_ns)
		take_step(p, &step);
	if (!n)
		return step.period_ns != 0;
	settle_names(p, all, n);
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
	}
	for (i = 0; i < n; i++)
		segment_unref(all[i]);
	free(all);
	return !rc;
}

static void give_way(struct past *p)
{
	bool gone = p->history && history_give_up_oldest(p->history);

	log_line(p->e->log, LOG_WARN, "the disk is too full for an incident: %s",
		 gone ? "the oldest file of the history was removed"
		      : "the history has no file to give up");
}

/* true: the run is over, and everything was tried. */
static bool wait_for_work(struct past *p)
{
	struct shared *s = &p->e->shared;
	bool done, yield;

	os_mutex_lock(s->lock);
	if (!s->past.done && !s->past.yield && (!s->past.n || os_now_ns() < p->retry_at_ns))
		os_cond_wait(s->wake_past, s->lock, LOOK_NS);
	done = s->past.done;
	yield = s->past.yield;
	s->past.yield = false;
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

void past_main(void *ctx)
{
	struct past p = {.e = ctx};
	uint32_t i;
	bool done = false;

	os_thread_priority(p.e->capture->low_priority ? OS_PRIORITY_LOWEST : OS_PRIORITY_LOW);
	while (!done) {
		done = wait_for_work(&p);
		if (done || os_now_ns() >= p.retry_at_ns)
			while (write_some(&p))
				;
	}
	history_close(p.history, end_text(p.e));
	for (i = 0; i < p.nlate; i++)
		segment_unref(p.late[i]);
}
