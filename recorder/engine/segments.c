/*
 * The open segment. Events go into it; sealed, it goes to the ring and to the incidents whose
 * windows reach that far. Merge thread.
 */
#include "engine/engine_private.h"

#define SEAL_PAST_NS (2 * NS_PER_SEC)
#define SEAL_PAST_SAMPLES 512u
#define SEAL_MOVED_NS NS_PER_SEC

/* A frame that is new to the table: its source names it, or the symbol worker. */
static void name_frame(void *ctx, struct frame *frame)
{
	struct engine *e = ctx;
	struct symbol symbol = {.raw_name = NULL};
	uint32_t i;

	for (i = 0; i < e->feed.n; i++) {
		const struct feed_source *s = &e->feed.sources[i];

		if (!s->ops->name_frame || !s->ops->name_frame(s->source, frame, &symbol))
			continue;
		frame_set_function(e->frames, frame, symbol.offset, symbol.name, symbol.raw_name,
				   symbol.module);
		return;
	}
	symbols_want(e->symbols, frame);
}

/* Incidents that are not complete get the new segment. */
static void pin(struct engine *e, struct segment *s)
{
	struct pending *p;

	os_mutex_lock(e->shared.lock);
	for (p = e->shared.first_pending; p; p = p->next) {
		if (p->complete || s->t1_ns < p->head.t0_ns)
			continue;
		if (frozen_add(&p->window, s) == 0)
			p->last_number = s->number;
		else
			pending_add_reason(p, "a part is missing: out of memory");
	}
	os_mutex_unlock(e->shared.lock);
}

static void take_sealed(struct engine *e, int rc, struct segment *s, const struct err *err)
{
	struct ring_use use;

	if (rc)
		log_line(e->log, LOG_ERROR, "%s", err->text);
	if (rc || !s)
		return;
	tables_set_quota(e);
	pin(e, s);
	ring_put(e->ring, s);
	ring_use(e->ring, &use);
	e->policy->limit_held(e, use.evicted_until_ns);
}

void engine_sealed(struct engine *e)
{
	struct sealer *sealer = &e->merge.sealer;

	if (!sealer->busy)
		return;
	ahead_await(&sealer->ahead, &sealer->job);
	sealer->busy = false;
	take_sealed(e, sealer->rc, sealer->sealed, &sealer->err);
}

void engine_seal(struct engine *e)
{
	struct segment *s = NULL;
	struct err err;
	int rc;

	engine_sealed(e);
	rc = segment_seal(e->merge.builder, &s, &err);
	take_sealed(e, rc, s, &err);
}

static void compress(struct ahead_job *job)
{
	struct sealer *s = (struct sealer *)job;

	s->rc = segment_seal_end(s->engine->merge.builder, &s->sealed, &s->err);
}

/* The open segment is full. */
static void seal_full(struct engine *e)
{
	struct sealer *sealer = &e->merge.sealer;

	if (!sealer->ahead.thread) {
		engine_seal(e);
		return;
	}
	engine_sealed(e);
	sealer->rc = segment_seal_begin(e->merge.builder, &sealer->err);
	if (sealer->rc) {
		take_sealed(e, sealer->rc, NULL, &sealer->err);
		return;
	}
	sealer->busy = true;
	ahead_give(&sealer->ahead, &sealer->job);
}

bool engine_keep(struct engine *e, struct event *event)
{
	struct merge *m = &e->merge;
	int rc;

	if (segment_is_full(m->builder, event->time_ns)) {
		seal_full(e);
		tables_keep_room(e);
	}
	event->stack = STACK_NONE;
	if (event->nstack_frames)
		event->stack = segment_stack_of(m->builder, event, name_frame, e);
	if (event->nstack_frames && event->stack == STACK_NONE)
		event->quality = QUALITY_BROKEN;     /* a table is full: no stack */
	rc = segment_add(m->builder, event);
	if (rc == ERR_LIMIT)
		m->flooded++;                /* reported once a second: put_own_losses() */
	else if (rc)
		m->lost++;
	if (!rc && event->kind == EVENT_SAMPLE)
		m->samples++;
	if (!rc && event->kind == EVENT_SAMPLE && event->stream == STREAM_CPU)
		homes_add(&e->homes, event->process, event->value, event->time_ns);
	if (!rc)
		past_keep(e, event, false);
	return rc != ERR_LIMIT;
}

void engine_begin_sealer(struct engine *e)
{
	e->merge.sealer = (struct sealer){.job.run = compress, .engine = e};
	if (e->policy->loses_nothing)
		ahead_begin(&e->merge.sealer.ahead, "seal");
}

void engine_end_sealer(struct engine *e)
{
	engine_sealed(e);
	ahead_end(&e->merge.sealer.ahead);
	e->merge.sealer.ahead = (struct ahead){.thread = NULL};
}

void engine_seal_moved(struct engine *e)
{
	struct merge *m = &e->merge;

	if (m->seal_moved_ns && m->last_ns < m->seal_moved_ns + SEAL_MOVED_NS)
		return;
	m->seal_moved_ns = m->last_ns;
	engine_seal(e);
}

/*
 * What is open goes to the writer now, not when the delay is over, so that a crash leaves the
 * moments before the firing: the best of it. A nearly empty segment stays open: it would take more
 * memory than it is worth, and incidents that fire at once, or every second, share the first one's.
 */
void engine_seal_past(struct engine *e)
{
	struct merge *m = &e->merge;
	uint64_t first_ns = segment_first_ns(m->builder);

	if (first_ns && (segment_open_samples(m->builder) >= SEAL_PAST_SAMPLES ||
			 m->now_ns > first_ns + SEAL_PAST_NS))
		engine_seal(e);
}
