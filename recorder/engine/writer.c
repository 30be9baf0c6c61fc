/*
 * The writer thread: pending incidents into the store, in the order of their firing, at low priority but for
 * those that are complete: somebody waits for them.
 * It writes the pinned past already during the delay, so that a crash leaves a partial incident with
 * it: one at most, as the next is begun when the one before is complete; what they share is in the
 * store by then. Not so from a file: all that wait are written as they grow, and what is stored is let
 * go of, so that the merge thread never waits for an incident that waits for it. A failure is logged once,
 * kept in status, and tried again every minute; recording goes on meanwhile.
 */
#include "engine/engine_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS (60 * NS_PER_SEC)
#define IDLE_NS NS_PER_SEC
#define RETAIN_NS (3600 * NS_PER_SEC)
#define PUT_OFF_MAX 30u                      /* then removing what is old goes before what is new */
#define RETAIN_AT_END_NS (5 * NS_PER_SEC)    /* the next recorder goes on with it */
#define HURRY_SEGMENTS 32u                   /* then what is recorded has the same right to the CPU */

/* ---- priority ---------------------------------------------------------------------------------- */

static bool keeps_priority(const struct engine *e)
{
	return e->cfg->capture.file || e->cfg->capture.low_priority;
}

/*
 * From outside, as at nice 10 and a load of 25 it does not get to a call of its own: the 0.15 s of CPU of a last
 * incident took 87 s, and a service manager waits for 90 s.
 */
void engine_hurry_writer(struct engine *e)
{
	engine_wake_writer(e);
	if (!keeps_priority(e))
		os_thread_hurry(e->writer);
	e->writer_hurried = true;
}

/* The writer's own calls, which Windows needs as well. Under the lock. */
static void hurry(struct engine *e)
{
	if (!keeps_priority(e))
		os_thread_priority(OS_PRIORITY_HIGH);
	e->writer_hurried = true;
}

static void slow_down(struct engine *e, enum os_priority to)
{
	if (e->writer_hurried && !e->merge_done && !keeps_priority(e))
		os_thread_priority(to);
	e->writer_hurried &= to != OS_PRIORITY_LOW;
}

/* A segment is about to be written; n counts since the hurry, which may begin amid them, and again. */
static void count_hurried(struct engine *e, uint32_t *n)
{
	os_mutex_lock(e->lock);
	*n = e->writer_hurried ? *n + 1 : 0;
	if (*n >= HURRY_SEGMENTS)
		slow_down(e, OS_PRIORITY_NORMAL);
	os_mutex_unlock(e->lock);
}

/* ---- names ------------------------------------------------------------------------------------ */

/*
 * Have the worker name what these segments list and nobody has named yet. One incident waits for
 * names ENGINE_SETTLE_NS in all: a file system that hangs must not hold up evidence.
 */
static void settle_names(struct engine *e, struct pending *p, struct segment *const *segments,
			 uint32_t nsegments)
{
	uint64_t start_ns = os_now_ns(), took_ns;
	struct frame **frames = NULL;
	uint32_t n = 0, room = 0, number, i;

	for (i = 0; i < nsegments; i++)
		room += segments[i]->nframes;
	frames = room ? malloc(room * sizeof(*frames)) : NULL;
	if (!frames)
		return;
	for (i = 0; i < nsegments; i++) {
		struct segment_list list = segment_frames(segments[i]);

		while (segment_next(&list, &number)) {
			struct frame *frame = frame_get(e->frames, number);

			/* What a file's frames are called does not change while it is read. */
			if (e->cfg->capture.file && atomic_load(&frame->asked))
				continue;
			if (!atomic_load(&frame->function))
				frames[n++] = frame;
		}
	}
	if (n)
		symbols_settle(e->symbols, frames, n, p->settle_ns);
	took_ns = os_now_ns() - start_ns;
	p->settle_ns -= took_ns < p->settle_ns ? took_ns : p->settle_ns;
	free(frames);
}

/* ---- one incident ----------------------------------------------------------------------------- */

static void note_failure(struct engine *e, struct pending *p, const struct err *err)
{
	bool same, ending;

	os_mutex_lock(e->lock);
	ending = e->merge_done;
	same = strcmp(e->store_note, err->text) == 0;
	snprintf(e->store_note, sizeof(e->store_note), "%.*s", (int)sizeof(e->store_note) - 1,
		 err->text);
	os_mutex_unlock(e->lock);
	if (!same && !ending)
		log_line(e->log, LOG_ERROR,
			 "an incident cannot be stored: %s; recording goes on, it stays in memory and is "
			 "tried again every minute", err->text);
	p->retry_at_ns = os_now_ns() + RETRY_NS;
}

static int begin(struct engine *e, struct pending *p, struct err *err)
{
	struct incident_head head = {0};
	int rc;

	if (p->begun)
		return 0;
	os_mutex_lock(e->lock);
	rc = incident_head_copy(&p->head, &head);
	os_mutex_unlock(e->lock);
	if (rc)
		return err_memory(err, "while storing an incident");
	rc = store_begin(e->store, &head, err);
	if (!rc) {
		os_mutex_lock(e->lock);
		p->head.id = head.id;
		memcpy(p->head.uuid, head.uuid, sizeof(p->head.uuid));
		p->begun = true;
		os_mutex_unlock(e->lock);
	}
	incident_head_free(&head);
	return rc;
}

/* The next segment that is not stored yet, with a reference of its own; NULL = none now. */
static struct segment *next_segment(struct engine *e, struct pending *p)
{
	struct segment *s = NULL;

	os_mutex_lock(e->lock);
	while (p->written < p->window.nsegments && !p->window.segments[p->written])
		p->written++;
	if (p->written < p->window.nsegments) {
		s = p->window.segments[p->written];
		segment_ref(s);
	}
	os_mutex_unlock(e->lock);
	return s;
}

static void written(struct engine *e, struct pending *p)
{
	os_mutex_lock(e->lock);
	if (e->cfg->capture.file) {
		segment_unref(p->window.segments[p->written]);
		p->window.segments[p->written] = NULL;
		os_cond_signal(e->wake_merge);
	}
	p->written++;
	os_mutex_unlock(e->lock);
}

static int write_segments(struct engine *e, struct pending *p, struct err *err)
{
	struct segment *s;
	uint32_t n = 0;
	int rc = 0;

	while (!rc && (s = next_segment(e, p)) != NULL) {
		count_hurried(e, &n);
		if (atomic_load(&e->stop) == STOP_ABORT) {
			segment_unref(s);
			return ERR_STOPPED;
		}
		settle_names(e, p, &s, 1);
		rc = store_put_segment(e->store, p->head.id, s, err);
		segment_unref(s);
		if (rc)
			break;
		written(e, p);
	}
	return rc;
}

static int finish(struct engine *e, struct pending *p, struct err *err)
{
	struct segment **held = NULL;
	uint32_t n = 0, i;
	int rc;

	/* Complete: the window does not change any more, but for parts that are let go. */
	os_mutex_lock(e->lock);
	if (p->window.nsegments)
		held = malloc(p->window.nsegments * sizeof(*held));
	for (i = 0; held && i < p->window.nsegments; i++) {
		if (p->window.segments[i]) {
			held[n++] = p->window.segments[i];
			segment_ref(held[n - 1]);
		}
	}
	os_mutex_unlock(e->lock);
	settle_names(e, p, held, n);
	rc = store_finish(e->store, &p->head, held, n, err);
	for (i = 0; i < n; i++)
		segment_unref(held[i]);
	free(held);
	return rc;
}

/* ---- the list --------------------------------------------------------------------------------- */

static void unlink_pending(struct engine *e, struct pending *p)
{
	struct pending **link;

	os_mutex_lock(e->lock);
	for (link = &e->first_pending; *link != p; link = &(*link)->next)
		;
	*link = p->next;
	if (e->last_pending == p)
		for (e->last_pending = e->first_pending; e->last_pending && e->last_pending->next;
		     e->last_pending = e->last_pending->next)
			;
	e->npending--;
	os_cond_signal(e->wake_merge);
	os_mutex_unlock(e->lock);
	while (p->nat)
		frame_unref(p->at[--p->nat]);
	frozen_free(&p->window);
	incident_head_free(&p->head);
	free(p);
}

/* Removing old incidents from a large store takes seconds. */
static bool somebody_waits(void *ctx)
{
	struct engine *e = ctx;
	uint64_t now = os_now_ns();
	bool ended, waits;

	if (atomic_load(&e->stop) == STOP_ABORT)
		return true;
	if (e->cfg->capture.file)
		return false;
	os_mutex_lock(e->lock);
	ended = e->merge_done;
	waits = ended ? e->npending != 0 : e->writer_work && e->retain_put_off < PUT_OFF_MAX;
	os_mutex_unlock(e->lock);
	if (ended && !e->retain_end_ns)
		e->retain_end_ns = now + RETAIN_AT_END_NS;
	return waits || (ended && now >= e->retain_end_ns);
}

static void retain(struct engine *e)
{
	uint32_t deleted = 0;
	struct err err;
	int rc;

	if (atomic_load(&e->stop) == STOP_ABORT)
		return;
	rc = store_retain(e->store, &e->cfg->store_limits, os_wall_ns(), &deleted, &err);
	e->retain_put_off = rc > 0 ? e->retain_put_off + 1 : 0;
	if (rc < 0)
		log_line(e->log, LOG_WARN, "old incidents were not removed: %s", err.text);
	if (deleted)
		log_line(e->log, LOG_INFO, "%u old incidents were removed to keep the store within %.0f MB "
			 "and %.0f days", deleted, (double)e->cfg->store_limits.max_bytes / 1048576,
			 (double)e->cfg->store_limits.max_age_ns / 86400e9);
}

/* Another one is due: what is old is removed after it. */
static void retain_unless(struct engine *e, bool due)
{
	if (due && e->retain_put_off < PUT_OFF_MAX)
		e->retain_put_off++;
	else
		retain(e);
}

static void announce(struct engine *e, const struct pending *p)
{
	const struct incident_head *h = &p->head;
	char flooded[ENGINE_FLOODED_BYTES];

	log_line(e->log, LOG_INFO, "incident %" PRId64 " stored: %s; %" PRIu64 " samples in %.1f s, %" PRIu64
		 " lost%s, %.1f KB%s%s", h->id, h->reason, h->samples, (double)(h->t1_ns - h->t0_ns) / 1e9, h->lost,
		 engine_flooded_text(h->lost_by_kind[LOSS_FLOOD], flooded), (double)h->stored_bytes / 1024,
		 h->gap_reason ? "; " : "", h->gap_reason ? h->gap_reason : "");
	os_mutex_lock(e->lock);
	e->stored++;
	e->store_note[0] = '\0';
	e->store_bytes = store_bytes(e->store);
	os_mutex_unlock(e->lock);
	engine_dedup_stored(e, p);
	engine_command_want(e, h->id, h->rule, h->reason);
}

/* Bring one incident as far as it goes; true when it is done with. */
static bool advance(struct engine *e, struct pending *p)
{
	struct err err = {0};
	bool complete, discard;
	int rc = 0;

	os_mutex_lock(e->lock);
	complete = p->complete;
	discard = p->discard || atomic_load(&e->stop) == STOP_ABORT;
	if (complete && !discard)
		hurry(e);
	os_mutex_unlock(e->lock);
	if (!discard && !p->begun && engine_dedup_repeats(e, p))
		return complete;             /* the merge thread still has it until then */
	if (!discard)
		rc = begin(e, p, &err);
	if (!discard && !rc)
		rc = write_segments(e, p, &err);
	if (discard || rc == ERR_STOPPED) {
		os_mutex_lock(e->lock);
		e->aborted = true;
		os_mutex_unlock(e->lock);
		return complete;             /* the merge thread still has it until then */
	}
	if (!rc && complete)
		rc = finish(e, p, &err);
	if (rc)
		note_failure(e, p, &err);
	if (rc || !complete)
		return false;
	announce(e, p);
	os_mutex_lock(e->lock);
	slow_down(e, OS_PRIORITY_LOW);
	os_mutex_unlock(e->lock);
	return true;
}

static struct pending *next_due(struct engine *e, struct pending *after, uint64_t now_ns)
{
	struct pending *p;

	os_mutex_lock(e->lock);
	for (p = after ? after->next : e->first_pending; p; p = p->next) {
		if (p->retry_at_ns <= now_ns)
			break;
	}
	os_mutex_unlock(e->lock);
	return p;
}

/* What could not be stored when recording has ended: one more try, then it is lost, and said. */
static void give_up_rest(struct engine *e)
{
	struct pending *p;

	while ((p = next_due(e, NULL, UINT64_MAX)) != NULL) {
		bool finished = advance(e, p);

		if (!finished) {
			log_line(e->log, LOG_ERROR, "lost, as recording ends and it cannot be stored: %s "
				 "(%s)", p->head.reason, e->store_note);
			os_mutex_lock(e->lock);
			e->failed++;
			os_mutex_unlock(e->lock);
		}
		unlink_pending(e, p);
		if (finished)
			retain_unless(e, next_due(e, NULL, UINT64_MAX) != NULL);
	}
}

void engine_wake_writer(struct engine *e)
{
	e->writer_work = true;
	os_cond_signal(e->wake_writer);
}

void engine_writer_main(void *ctx)
{
	struct engine *e = ctx;
	uint64_t next_retain_ns = os_now_ns();
	bool done = false;

	store_set_call_off(e->store, somebody_waits, e);
	if (e->cfg->capture.low_priority)
		os_thread_priority(OS_PRIORITY_LOWEST);
	else if (!e->cfg->capture.file)
		os_thread_priority(OS_PRIORITY_LOW);
	while (!done) {
		struct pending *p, *next;
		uint64_t now = os_now_ns();

		for (p = next_due(e, NULL, now); p; p = next) {
			bool finished = advance(e, p);

			/* Begun, and waiting for its end: nothing else is begun before. */
			if (!e->cfg->capture.file && !finished && p->begun && p->retry_at_ns <= now)
				break;
			next = next_due(e, p, now);
			if (finished) {
				unlink_pending(e, p);
				retain_unless(e, next != NULL);
			}
		}
		engine_rules_store(e);
		if (now >= next_retain_ns || e->retain_put_off) {
			next_retain_ns = now + RETAIN_NS;
			retain(e);
		}
		os_mutex_lock(e->lock);
		done = e->merge_done;
		if (!done && !e->writer_work) {
			slow_down(e, OS_PRIORITY_LOW);
			os_cond_wait(e->wake_writer, e->lock, IDLE_NS);
		}
		e->writer_work = false;
		os_mutex_unlock(e->lock);
	}
	give_up_rest(e);
	if (e->retain_put_off)
		retain(e);
	engine_rules_store(e);
	atomic_store(&e->writer_ended, true);
	os_wake(e->wake_control);
}
