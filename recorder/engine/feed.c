#include "engine/feed.h"

#include <string.h>

#define SWEEP_MARGIN_NS (10 * NS_PER_SEC)    /* tables may be looked at by other threads */

static void source_main(void *ctx)
{
	struct feed_source *s = ctx;

	if (s->ops->looks_at_others)
		os_rights_raise();
	s->rc = s->ops->run(s->source, &s->err);
	queue_finish(s->queue);
	atomic_store(&s->ended, true);
	if (s->feed->on_end)
		s->feed->on_end(s->feed->ctx, s);
}

int feed_open_tables(struct feed *f, struct err *err)
{
	int rc = frames_new(&f->frames, err);

	return rc ? rc : processes_new(&f->processes, err);
}

uint64_t feed_forgets_before(struct feed *f, uint64_t now_ns)
{
	uint64_t clock_ns = os_now_ns(), lowest_ns = now_ns;
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		uint64_t consumed_ns = queue_consumed(f->sources[i].queue, clock_ns);

		lowest_ns = consumed_ns < lowest_ns ? consumed_ns : lowest_ns;
	}
	return lowest_ns > SWEEP_MARGIN_NS ? lowest_ns - SWEEP_MARGIN_NS : 0;
}

void feed_sweep(struct feed *f, uint64_t now_ns)
{
	uint64_t before_ns = feed_forgets_before(f, now_ns);

	if (!before_ns)
		return;
	frames_sweep(f->frames, before_ns);
	processes_sweep(f->processes, before_ns);
}

int feed_open(struct feed *f, const struct source_ops *ops, const struct source_config *cfg,
	      const struct needs *needs, struct err *err)
{
	struct feed_source *s = &f->sources[f->n];
	struct source_config own = *cfg;
	int rc;

	if (f->n == FEED_SOURCES_MAX)
		return err_set(err, ERR_LIMIT, "over %u sources", FEED_SOURCES_MAX);
	own.queue = queue_new(QUEUE_BYTES);
	if (!own.queue)
		return err_memory(err, "for the queue of the %s source", ops->name);
	if (f->frames) {
		own.frames = f->frames;
		own.processes = f->processes;
	}
	if (ops->looks_at_others)
		os_rights_raise();
	rc = ops->open(&own, needs, &s->source, err);
	os_rights_lower();
	if (rc) {
		queue_free(own.queue);
		return rc;
	}
	s->ops = ops;
	s->queue = own.queue;
	s->feed = f;
	f->n++;
	return 0;
}

int feed_open_all(struct feed *f, const struct source_ops *const *list,
		  const struct source_config *cfg, const struct needs *needs, struct err *err)
{
	int rc = 0;

	for (; !rc && *list; list++)
		rc = feed_open(f, *list, cfg, needs, err);
	return rc;
}

int feed_start(struct feed *f, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < f->n; i++) {
		f->sources[i].started_ns = os_now_ns();
		rc = os_thread_start(f->sources[i].ops->name, source_main, &f->sources[i],
				     &f->sources[i].thread, err);
	}
	return rc;
}

const struct event *feed_peek(struct feed *f, struct feed_source **from)
{
	const struct event *oldest = NULL;
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		const struct event *e = queue_peek(f->sources[i].queue);

		if (e && (!oldest || e->time_ns < oldest->time_ns)) {
			oldest = e;
			*from = &f->sources[i];
		}
	}
	return oldest;
}

void feed_settle(struct feed *f, struct event *event)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (f->sources[i].ops->settle)
			f->sources[i].ops->settle(f->sources[i].source, event);
}

bool feed_name_late(void *ctx, const struct object *object, uint64_t offset, struct symbol *out)
{
	struct feed *f = ctx;
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		const struct feed_source *s = &f->sources[i];

		if (s->ops->name_late && s->ops->name_late(s->source, object, offset, out))
			return true;
	}
	return false;
}

int feed_take(struct feed *f, int (*each)(void *ctx, const struct event *e), void *ctx)
{
	struct feed_source *from;
	const struct event *e;
	int rc = 0;

	while (!rc && (e = feed_peek(f, &from)) != NULL) {
		rc = each(ctx, e);
		queue_pop(from->queue);
	}
	return rc;
}

bool feed_ended(const struct feed *f)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (!atomic_load(&f->sources[i].ended) && !f->sources[i].left_behind)
			return false;
	return true;
}

int feed_failure(const struct feed *f, struct err *err)
{
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		const struct feed_source *s = &f->sources[i];

		if (!atomic_load(&s->ended) || !s->rc)
			continue;
		if (err)
			*err = s->err;
		return s->rc;
	}
	return 0;
}

bool feed_status(const struct feed_source *s, struct source_status *out)
{
	memset(out, 0, sizeof(*out));
	if (s->ops->status)
		s->ops->status(s->source, out);
	return s->ops->status != NULL;
}

void feed_add_usage(const struct feed *f, uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (f->sources[i].ops->add_usage)
			f->sources[i].ops->add_usage(f->sources[i].source, cpu_ns, rss_bytes);
}

void feed_origin(const struct feed_source *s, struct source_origin *out)
{
	memset(out, 0, sizeof(*out));
	if (s->ops->origin)
		s->ops->origin(s->source, out);
}

void feed_set_level(struct feed *f, const struct source_level *level)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (f->sources[i].ops->set_level)
			f->sources[i].ops->set_level(f->sources[i].source, level);
}

void feed_stop(struct feed *f)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		f->sources[i].ops->stop(f->sources[i].source);
}

void feed_join(struct feed *f)
{
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		if (f->sources[i].left_behind)
			continue;
		os_thread_join(f->sources[i].thread);
		f->sources[i].thread = NULL;
	}
}

bool feed_hangs(const struct feed *f)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (f->sources[i].left_behind)
			return true;
	return false;
}

void feed_close(struct feed *f)
{
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		f->sources[i].ops->close(f->sources[i].source);
		queue_free(f->sources[i].queue);
	}
	f->n = 0;
	processes_free(f->processes);
	frames_free(f->frames);
}
