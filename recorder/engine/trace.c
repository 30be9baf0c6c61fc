#include "engine/trace.h"

#include "base/os.h"
#include "engine/source_thread.h"

#include <string.h>

#define IDLE_NS NS_PER_MS
#define SWEEP_EACH 65536u                    /* events */
#define SWEEP_MARGIN_NS (10 * NS_PER_SEC)

struct reading {
	struct trace *t;
	struct frames *frames;
	struct processes *processes;
	struct source_thread from;
};

static int open_reading(struct reading *r, struct err *err)
{
	static const struct needs none;
	struct source_config cfg = {.log = r->t->log, .capture = {.file = r->t->path},
				    .every_event = true};
	int rc = frames_new(&r->frames, err);

	if (!rc)
		rc = processes_new(&r->processes, err);
	if (rc)
		return rc;
	cfg.frames = r->frames;
	cfg.processes = r->processes;
	return source_thread_open(&r->from, r->t->ops, &cfg, &none, err);
}

static void ask_origin(struct reading *r)
{
	memset(&r->t->origin, 0, sizeof(r->t->origin));
	if (r->t->ops->origin)
		r->t->ops->origin(r->from.source, &r->t->origin);
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
		ended = atomic_load(&r->from.ended);
		while (!rc && (e = queue_peek(r->from.queue)) != NULL) {
			rc = take(r, e);
			queue_pop(r->from.queue);
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
		rc = source_thread_start(&r.from, err);
	if (!rc) {
		rc = take_all(&r);
		source_thread_end(&r.from);
		if (!rc && r.from.rc) {
			rc = r.from.rc;
			if (err)
				*err = r.from.err;
		}
		ask_origin(&r);
	}
	source_thread_close(&r.from);
	processes_free(r.processes);
	frames_free(r.frames);
	return rc;
}
