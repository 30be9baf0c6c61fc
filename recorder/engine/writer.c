/*
 * The writer thread: puts pending incidents into the store, in the order of their firing; at low
 * priority, except for incidents that are complete: somebody waits for them.
 *
 * Live, it writes the pinned past already during the delay, so that a crash leaves a partial
 * incident with it. Only one incident is begun at a time; the next has its shared segments in the
 * store by then. When reading a file, all pending incidents are written as they grow, and what is
 * stored is let go of, so that the merge thread never waits for an incident that waits for it. A
 * failure is logged once, shown in status, and tried again every minute; recording goes on
 * meanwhile.
 */
#include "engine/engine_private.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS (60 * NS_PER_SEC)
#define BUSY_NS NS_PER_SEC                   /* between two looks; */
#define IDLE_NS (5 * NS_PER_SEC)             /* while nothing is to be written */
#define RETAIN_NS (3600 * NS_PER_SEC)
#define DEFERRALS_MAX 30u                    /* after this many, retention runs first */
#define RETAIN_AT_END_NS (5 * NS_PER_SEC)    /* the next recorder does the rest */
#define CLOCK_OFF_S 600                      /* clocks that differ by less agree */
#define HURRY_SEGMENTS 32u                   /* then the writer is at normal priority again */

/* ---- priority ------------------------------------------------------------------------------- */

void engine_wake_writer(struct engine *e)
{
	e->shared.writer_has_work = true;
	os_cond_signal(e->shared.wake_writer);
}

bool engine_keeps_priority(const struct engine *e)
{
	return !e->policy->in_background || e->capture->low_priority;
}

/*
 * Raised from outside: at nice 10 and a load of 25 the writer does not get to a call of its own.
 * The 0.15 s of CPU of a last incident took 87 s, and a service manager waits for 90 s.
 */
void engine_hurry_writer(struct engine *e)
{
	engine_wake_writer(e);
	if (!engine_keeps_priority(e))
		os_thread_hurry(e->writer_thread);
	e->shared.writer_hurried = true;
}

/* The writer's own call, which Windows needs as well. Under the lock. */
static void hurry_self(struct engine *e)
{
	if (!engine_keeps_priority(e))
		os_thread_priority(OS_PRIORITY_HIGH);
	e->shared.writer_hurried = true;
}

static void slow_down(struct engine *e, enum os_priority to)
{
	if (e->shared.writer_hurried && !e->shared.merge_done && !engine_keeps_priority(e))
		os_thread_priority(to);
	e->shared.writer_hurried &= to != OS_PRIORITY_LOW;
}

/* A segment is about to be written. *n counts those since the hurry, which may begin amid them. */
static void count_hurried(struct engine *e, uint32_t *n)
{
	os_mutex_lock(e->shared.lock);
	*n = e->shared.writer_hurried ? *n + 1 : 0;
	if (*n >= HURRY_SEGMENTS)
		slow_down(e, OS_PRIORITY_NORMAL);
	os_mutex_unlock(e->shared.lock);
}

/* ---- names ---------------------------------------------------------------------------------- */

/*
 * Have the worker name the frames of these segments that have no name yet. The time that one
 * incident waits for names is limited: a file system that hangs must not hold up evidence.
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

			/* The names of a file's frames do not change while it is read. */
			if (e->policy->foreign && atomic_load(&frame->asked))
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

/* ---- one incident --------------------------------------------------------------------------- */

/* Under the lock. */
static void set_store_note(struct engine *e, const struct err *err)
{
	snprintf(e->shared.store_note, sizeof(e->shared.store_note), "%.*s",
		 (int)sizeof(e->shared.store_note) - 1, err ? err->text : "");
	e->shared.store_full = err && err->code == ERR_FULL;
}

static void note_failure(struct engine *e, struct pending *p, const struct err *err)
{
	bool same, ending;

	os_mutex_lock(e->shared.lock);
	ending = e->shared.merge_done;
	same = strcmp(e->shared.store_note, err->text) == 0;
	set_store_note(e, err);
	os_mutex_unlock(e->shared.lock);
	if (!same && !ending)
		log_line(e->log, LOG_ERROR,
			 "an incident cannot be stored: %s; recording continues, and storing is "
			 "tried again every minute", err->text);
	if (err->code == ERR_FULL)
		past_yield(e);
	p->retry_at_ns = os_now_ns() + RETRY_NS;
}

/* The time by which incidents age. The log has it when the wall clock tells another time. */
static uint64_t age_time(struct engine *e)
{
	uint64_t wall_ns = os_wall_ns(), ns = store_time(e->writer.store, wall_ns, os_now_ns());
	int64_t off_s = (int64_t)(wall_ns - ns) / (int64_t)NS_PER_SEC;

	if (llabs(off_s - e->writer.clock_off_s) < CLOCK_OFF_S)
		return ns;
	e->writer.clock_off_s = off_s;
	if (llabs(off_s) < CLOCK_OFF_S)
		log_line(e->log, LOG_INFO, "the wall clock agrees with the time that passed again");
	else
		log_line(e->log, LOG_WARN,
			 "the wall clock is %.1f h %s the time that passed for the recorder: "
			 "incidents age by the time that passed",
			 (double)llabs(off_s) / 3600, off_s < 0 ? "behind" : "ahead of");
	return ns;
}

/* Its age counts from now where the wall clock of its firing cannot be compared with age_time(). */
static void set_kept_time(struct engine *e, struct incident_head *head)
{
	uint64_t now_ns = age_time(e);
	int64_t ago_s = (int64_t)(now_ns - head->trigger_wall_ns) / (int64_t)NS_PER_SEC;

	if (head->kept_wall_ns || llabs(ago_s) >= CLOCK_OFF_S)
		head->kept_wall_ns = now_ns;
}

static int begin_incident(struct engine *e, struct pending *p, struct err *err)
{
	struct incident_head head = {0};
	int rc;

	if (p->begun)
		return 0;
	os_mutex_lock(e->shared.lock);
	rc = incident_head_copy(&p->head, &head);
	os_mutex_unlock(e->shared.lock);
	if (rc)
		return err_memory(err, "while storing an incident");
	set_kept_time(e, &head);
	rc = store_begin(e->writer.store, &head, err);
	if (!rc) {
		os_mutex_lock(e->shared.lock);
		p->head.id = head.id;
		memcpy(p->head.uuid, head.uuid, sizeof(p->head.uuid));
		p->begun = true;
		os_mutex_unlock(e->shared.lock);
	}
	incident_head_free(&head);
	return rc;
}

/*
 * The next segments that are not stored yet, with references of their own: as many as go into one
 * transaction. Live it is one, so that a crash leaves what was written before it.
 */
static uint32_t next_segments(struct engine *e, struct pending *p,
			      struct segment *out[ENGINE_TOGETHER])
{
	const uint32_t most = e->policy->loses_nothing ? ENGINE_TOGETHER : 1;
	uint32_t n = 0, at;

	os_mutex_lock(e->shared.lock);
	while (p->written < p->window.nsegments && !p->window.segments[p->written])
		p->written++;
	for (at = p->written; n < most && at < p->window.nsegments; at++) {
		if (!p->window.segments[at])
			break;
		out[n] = p->window.segments[at];
		segment_ref(out[n++]);
	}
	os_mutex_unlock(e->shared.lock);
	return n;
}

static void note_written(struct engine *e, struct pending *p, uint32_t n)
{
	os_mutex_lock(e->shared.lock);
	for (; n; n--, p->written++) {
		if (!e->policy->loses_nothing)
			continue;
		segment_unref(p->window.segments[p->written]);
		p->window.segments[p->written] = NULL;
	}
	if (e->policy->loses_nothing)
		os_cond_signal(e->shared.wake_merge);
	os_mutex_unlock(e->shared.lock);
}

static int write_segments(struct engine *e, struct pending *p, struct err *err)
{
	struct segment *all[ENGINE_TOGETHER];
	uint32_t n, i, nhurried = 0;
	int rc = 0;

	while (!rc && (n = next_segments(e, p, all)) != 0) {
		count_hurried(e, &nhurried);
		if (atomic_load(&e->stop) == STOP_ABORT)
			rc = ERR_STOPPED;
		else
			settle_names(e, p, all, n);
		if (!rc)
			rc = store_put_segments(e->writer.store, p->head.id, all, n, err);
		for (i = 0; i < n; i++)
			segment_unref(all[i]);
		if (!rc)
			note_written(e, p, n);
	}
	return rc;
}

static int finish_incident(struct engine *e, struct pending *p, struct err *err)
{
	struct segment **held = NULL;
	uint32_t n = 0, i;
	int rc;

	/* Complete: the window does not change any more, except for parts that are given up. */
	os_mutex_lock(e->shared.lock);
	if (p->window.nsegments)
		held = malloc(p->window.nsegments * sizeof(*held));
	for (i = 0; held && i < p->window.nsegments; i++) {
		if (p->window.segments[i]) {
			held[n++] = p->window.segments[i];
			segment_ref(held[n - 1]);
		}
	}
	os_mutex_unlock(e->shared.lock);
	settle_names(e, p, held, n);
	rc = store_finish(e->writer.store, &p->head, held, n, err);
	for (i = 0; i < n; i++)
		segment_unref(held[i]);
	free(held);
	return rc;
}

/* ---- the list ------------------------------------------------------------------------------- */

/* Removing old incidents from a large store takes seconds: whether something is more urgent. */
bool writer_retention_must_stop(void *ctx)
{
	struct engine *e = ctx;
	uint64_t now = os_now_ns();
	bool ended, waits;

	if (atomic_load(&e->stop) == STOP_ABORT)
		return true;
	if (!e->policy->in_background)
		return false;
	os_mutex_lock(e->shared.lock);
	ended = e->shared.merge_done;
	waits = ended ? e->shared.npending != 0
		      : e->shared.writer_has_work && e->writer.deferrals < DEFERRALS_MAX;
	os_mutex_unlock(e->shared.lock);
	if (ended && !e->writer.retain_end_ns)
		e->writer.retain_end_ns = now + RETAIN_AT_END_NS;
	return waits || (ended && now >= e->writer.retain_end_ns);
}

static void retain(struct engine *e)
{
	uint32_t deleted = 0;
	struct store_limits limits;
	struct err err;
	int rc;

	if (atomic_load(&e->stop) == STOP_ABORT || !e->writer.store)
		return;
	os_mutex_lock(e->shared.lock);
	limits = e->cfg->store_limits;
	os_mutex_unlock(e->shared.lock);
	rc = store_retain(e->writer.store, &limits, age_time(e), &deleted, &err);
	e->writer.deferrals = rc > 0 ? e->writer.deferrals + 1 : 0;
	if (rc < 0)
		log_line(e->log, LOG_WARN, "old incidents were not removed: %s", err.text);
	if (deleted)
		log_line(e->log, LOG_INFO,
			 "%u old incidents were removed to keep the store within "
			 "%.0f MB and %.0f days",
			 deleted, (double)limits.max_bytes / 1048576,
			 (double)limits.max_age_ns / 86400e9);
}

/* Old incidents are removed after the next one is written, if one is due. */
static void retain_unless(struct engine *e, bool due)
{
	if (due && e->writer.deferrals < DEFERRALS_MAX)
		e->writer.deferrals++;
	else
		retain(e);
}

static void report_stored(struct engine *e, const struct pending *p)
{
	const struct incident_head *h = &p->head;
	char flooded[ENGINE_FLOODED_BYTES];

	log_line(e->log, LOG_INFO,
		 "incident %" PRId64 " stored: %s; %" PRIu64 " samples in %.1f s, %" PRIu64
		 " lost%s, %.1f KB%s%s",
		 h->id, h->reason, h->samples, (double)(h->t1_ns - h->t0_ns) / 1e9, h->lost,
		 engine_flooded_text(h->lost_by_kind[LOSS_FLOOD], flooded),
		 (double)h->stored_bytes / 1024, h->gap_reason ? "; " : "",
		 h->gap_reason ? h->gap_reason : "");
	os_mutex_lock(e->shared.lock);
	e->shared.stored++;
	set_store_note(e, NULL);
	e->shared.store_bytes = store_bytes(e->writer.store);
	os_mutex_unlock(e->shared.lock);
	dedup_stored(e, p);
	if (e->cfg->stored)
		e->cfg->stored(e->cfg->more_ctx);
	if (e->cfg->listen && e->cfg->live)
		incident_tell_system(h, e->cfg->store_path);
	command_add(e, h->id, h->rule, h->reason);
}

/* ERR_NOT_FOUND, or store_damaged(): begin again with a new store. */
static int put_incident(struct engine *e, struct pending *p, bool complete, struct err *err)
{
	int rc = begin_incident(e, p, err);

	if (!rc)
		rc = write_segments(e, p, err);
	if (!rc && complete)
		rc = finish_incident(e, p, err);
	/* Only what has a name in a directory is stored. */
	return rc ? rc : store_in_place(e->writer.store, err);
}

static int store_incident(struct engine *e, struct pending *p, bool complete, struct err *err)
{
	int rc = put_incident(e, p, complete, err);

	if (!rc || rc == ERR_STOPPED ||
	    (!store_damaged(e->writer.store) && !store_in_place(e->writer.store, NULL)))
		return rc;
	rc = writer_have_store(e, err);
	return rc ? rc : put_incident(e, p, complete, err);
}

/* Bring one incident as far as it goes; true when it can be removed from the list. */
static bool advance_incident(struct engine *e, struct pending *p)
{
	struct err err = {0};
	bool complete, discard;
	int rc = 0;

	os_mutex_lock(e->shared.lock);
	complete = p->complete;
	discard = p->discard || atomic_load(&e->stop) == STOP_ABORT;
	if (complete && !discard)
		hurry_self(e);
	os_mutex_unlock(e->shared.lock);
	if (!discard)
		rc = writer_have_store(e, &err);
	if (!rc && !discard && !p->begun && dedup_repeats(e, p))
		return complete;             /* until then the merge thread still uses it */
	if (!rc && !discard)
		rc = store_incident(e, p, complete, &err);
	if (discard || rc == ERR_STOPPED) {
		os_mutex_lock(e->shared.lock);
		e->shared.aborted = true;
		os_mutex_unlock(e->shared.lock);
		return complete;             /* until then the merge thread still uses it */
	}
	if (rc)
		note_failure(e, p, &err);
	if (rc || !complete)
		return false;
	report_stored(e, p);
	os_mutex_lock(e->shared.lock);
	slow_down(e, OS_PRIORITY_LOW);
	os_mutex_unlock(e->shared.lock);
	return true;
}

static struct pending *next_due(struct engine *e, struct pending *after, uint64_t now_ns)
{
	struct pending *p;

	os_mutex_lock(e->shared.lock);
	for (p = after ? after->next : e->shared.first_pending; p; p = p->next) {
		if (p->retry_at_ns <= now_ns)
			break;
	}
	os_mutex_unlock(e->shared.lock);
	return p;
}

/* One more try for what could not be stored when recording has ended; then it is lost. */
static void give_up_rest(struct engine *e)
{
	struct pending *p;

	while ((p = next_due(e, NULL, UINT64_MAX)) != NULL) {
		bool finished = advance_incident(e, p);

		if (!finished) {
			log_line(e->log, LOG_ERROR,
				 "lost, as it cannot be stored and recording ends: %s (%s)",
				 p->head.reason, e->shared.store_note);
			os_mutex_lock(e->shared.lock);
			e->shared.failed++;
			os_mutex_unlock(e->shared.lock);
		}
		pending_remove(e, p);
		if (finished)
			retain_unless(e, next_due(e, NULL, UINT64_MAX) != NULL);
	}
}

/* Take a rule's new state, with its spec; 0 = it has none. false: there is no such rule. */
static bool take_state(struct engine *e, uint32_t rule, struct buf *spec, char *state, uint32_t *n)
{
	bool there;

	buf_reset(spec);
	*n = 0;
	os_mutex_lock(e->shared.lock);
	there = rule < e->cfg->ntriggers;
	if (there) {
		struct rule_view *view = &e->shared.rules[rule];

		buf_puts(spec, e->cfg->triggers[rule]->spec);
		*n = view->nstate;
		memcpy(state, view->state, *n);
		view->nstate = 0;
	}
	os_mutex_unlock(e->shared.lock);
	return there;
}

/* The rules' states, for the next run. A failure is no loss of evidence: it is logged once. */
static void store_rules(struct engine *e)
{
	char state[TRIGGER_STATE_MAX];
	struct err err = {0};
	struct buf spec = {0};
	uint32_t i, n;

	for (i = 0; e->writer.store && take_state(e, i, &spec, state, &n); i++) {
		if (!n || store_put_rule(e->writer.store, buf_text(&spec), state, n, os_wall_ns(),
					 &err) == 0)
			continue;
		if (!e->writer.rule_failure_logged)
			log_line(e->log, LOG_WARN, "the state of a rule was not stored: %s",
				 err.text);
		e->writer.rule_failure_logged = true;
	}
	buf_free(&spec);
}

/* Bring every incident as far as it goes now. */
static void write_pending(struct engine *e)
{
	const uint64_t now = os_now_ns();
	struct pending *p, *next;

	for (p = next_due(e, NULL, now); p; p = next) {
		bool finished = advance_incident(e, p);

		/* Begun, and waiting for its end: live, nothing else is begun before. */
		if (!e->policy->loses_nothing && !finished && p->begun && p->retry_at_ns <= now)
			break;
		next = next_due(e, p, now);
		if (finished) {
			pending_remove(e, p);
			retain_unless(e, next != NULL);
		}
	}
}

/* A store that is gone is said at once, not when the next incident needs it. */
static void look_for_store(struct engine *e)
{
	struct err err = {0};
	bool fails = writer_have_store(e, &err) != 0;

	if (fails == e->writer.store_missing)
		return;
	e->writer.store_missing = fails;
	if (fails)
		log_line(e->log, LOG_ERROR, "the store cannot be used: %s; recording continues",
			 err.text);
	os_mutex_lock(e->shared.lock);
	set_store_note(e, fails ? &err : NULL);
	os_mutex_unlock(e->shared.lock);
	os_wake(e->wake_control);
}

void writer_main(void *ctx)
{
	struct engine *e = ctx;
	struct shared *s = &e->shared;
	uint64_t next_retain_ns = os_now_ns(), now;
	bool done = false;

	store_set_call_off(e->writer.store, writer_retention_must_stop, e);
	store_set_progress(e->writer.store, &e->writer_steps);
	if (e->capture->low_priority)
		os_thread_priority(OS_PRIORITY_LOWEST);
	else if (e->policy->in_background)
		os_thread_priority(OS_PRIORITY_LOW);
	while (!done) {
		now = os_now_ns();
		atomic_fetch_add(&e->writer_steps, 1);
		look_for_store(e);
		write_pending(e);
		store_rules(e);
		if (now >= next_retain_ns || e->writer.deferrals) {
			next_retain_ns = now + RETAIN_NS;
			retain(e);
		}
		os_mutex_lock(s->lock);
		done = s->merge_done;
		if (!done && !s->writer_has_work) {
			slow_down(e, OS_PRIORITY_LOW);
			os_cond_wait(s->wake_writer, s->lock,
				     s->first_pending || e->writer.deferrals ? BUSY_NS : IDLE_NS);
		}
		s->writer_has_work = false;
		os_mutex_unlock(s->lock);
	}
	give_up_rest(e);
	if (e->writer.deferrals)
		retain(e);
	store_rules(e);
	atomic_store(&e->writer_ended, true);
	os_wake(e->wake_control);
}
