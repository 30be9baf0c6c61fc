#include "trace.h"

#include "base/os.h"

#include <string.h>

#define IDLE_NS NS_PER_MS
#define SWEEP_EACH 65536u                    /* events */
#define SWEEP_MARGIN_NS (10 * NS_PER_SEC)

struct reading {
	struct trace *t;
	struct frames *frames;
	struct processes *processes;
	struct queue *queue;
	struct source *source;
	struct os_thread *thread;
	_Atomic bool ended;
	int rc;
	struct err err;
};

static void source_main(void *ctx)
{
	struct reading *r = ctx;

	r->rc = r->t->ops->run(r->source, &r->err);
	queue_finish(r->queue);
	atomic_store(&r->ended, true);
}

static int open_reading(struct reading *r, struct err *err)
{
	static const struct needs none;
	struct source_config cfg = {.log = r->t->log, .file = r->t->path, .kernel_stacks = true,
				    .every_event = true};
	int rc = frames_new(&r->frames, err);

	if (!rc)
		rc = processes_new(&r->processes, err);
	if (rc)
		return rc;
	r->queue = queue_new(QUEUE_BYTES);
	if (!r->queue)
		return err_set(err, ERR_MEMORY, "out of memory for the queue of events");
	cfg.frames = r->frames;
	cfg.processes = r->processes;
	cfg.queue = r->queue;
	return r->t->ops->open(&cfg, &none, &r->source, err);
}

static void ask_origin(struct reading *r)
{
	memset(&r->t->origin, 0, sizeof(r->t->origin));
	if (r->t->ops->origin)
		r->t->ops->origin(r->source, &r->t->origin);
}

static int take(struct reading *r, const struct event *e)
{
	struct trace *t = r->t;

	if (!t->events++)
		ask_origin(r);
	if (t->events % SWEEP_EACH == 0 && e->time_ns > SWEEP_MARGIN_NS) {
		frames_sweep(r->frames, e->time_ns - SWEEP_MARGIN_NS);
		processes_sweep(r->processes, e->time_ns - SWEEP_MARGIN_NS);
	}
	return t->each(t->ctx, e, &t->origin);
}

static int take_all(struct reading *r)
{
	const struct event *e;
	bool ended;
	int rc = 0;

	do {
		/* Looked at before the queue: what the source has put is then in it. */
		ended = atomic_load(&r->ended);
		while (!rc && (e = queue_peek(r->queue)) != NULL) {
			rc = take(r, e);
			queue_pop(r->queue);
		}
		if (!rc && !ended)
			os_sleep_ns(IDLE_NS);
	} while (!rc && !ended);
	return rc;
}

int trace_read(struct trace *t, struct err *err)
{
	struct reading r = {.t = t};
	int rc = open_reading(&r, err);

	t->events = 0;
	if (!rc)
		rc = os_thread_start(t->ops->name, source_main, &r, &r.thread, err);
	if (!rc) {
		rc = take_all(&r);
		t->ops->stop(r.source);
		os_thread_join(r.thread);
		if (!rc && r.rc) {
			rc = r.rc;
			if (err)
				*err = r.err;
		}
		ask_origin(&r);
	}
	if (r.source)
		t->ops->close(r.source);
	queue_free(r.queue);
	processes_free(r.processes);
	frames_free(r.frames);
	return rc;
}
