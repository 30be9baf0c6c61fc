#include "engine/live.h"

#include "base/os.h"
#include "engine/source_thread.h"

#include <string.h>

#define SOURCES_MAX 16u
#define LOOK_NS (20 * NS_PER_MS)
#define SWEEP_NS NS_PER_SEC
#define SWEEP_MARGIN_NS (10 * NS_PER_SEC)

struct watching {
	struct live *l;
	struct frames *frames;
	struct processes *processes;
	struct source_thread sources[SOURCES_MAX];
	unsigned n;
	uint64_t swept_ns;
};

static int open_source(struct watching *w, const struct source_ops *ops, struct err *err)
{
	const struct source_config cfg = {
		.frames = w->frames, .processes = w->processes, .log = w->l->log,
		/* Only the events that the rule names. */
		.capture = {.freq_hz = 1, .stack_kb = w->l->stack_kb, .only_providers = ""},
	};
	int rc = source_thread_open(&w->sources[w->n], ops, &cfg, w->l->needs, err);

	return rc ? rc : source_thread_start(&w->sources[w->n++], err);
}

static bool is_event(const struct event *e)
{
	return e->kind == EVENT_GENERIC || e->kind == EVENT_LOG;
}

static int take_all(struct watching *w, const struct source_origin *origin)
{
	const struct event *e;
	unsigned i;
	int rc = 0;

	for (i = 0; i < w->n && !rc; i++) {
		struct source_thread *s = &w->sources[i];

		if (atomic_load(&s->ended) && s->rc)
			return s->rc;
		while (!rc && (e = queue_peek(s->queue)) != NULL) {
			if (is_event(e))
				rc = w->l->each(w->l->ctx, e, origin);
			queue_pop(s->queue);
		}
	}
	return rc;
}

static void sweep(struct watching *w, uint64_t now_ns)
{
	if (now_ns - w->swept_ns < SWEEP_NS)
		return;
	w->swept_ns = now_ns;
	frames_sweep(w->frames, now_ns - SWEEP_MARGIN_NS);
	processes_sweep(w->processes, now_ns - SWEEP_MARGIN_NS);
}

static int watch(struct watching *w, struct err *err)
{
	struct source_origin origin = {.start_ns = os_now_ns()};
	unsigned i;
	int rc = 0;

	while (!rc && os_now_ns() - origin.start_ns < w->l->for_ns &&
	       os_signal_wait(LOOK_NS) != OS_SIGNAL_STOP) {
		rc = take_all(w, &origin);
		sweep(w, os_now_ns());
	}
	for (i = 0; i < w->n; i++)
		w->sources[i].ops->stop(w->sources[i].source);
	for (i = 0; i < w->n; i++) {
		source_thread_end(&w->sources[i]);
		if (w->sources[i].rc && err)
			*err = w->sources[i].err;
	}
	return rc ? rc : take_all(w, &origin);
}

static void close_all(struct watching *w)
{
	struct source_status status;
	unsigned i;

	for (i = 0; i < w->n; i++) {
		struct source_thread *s = &w->sources[i];

		source_thread_end(s);
		s->ops->status(s->source, &status);
		w->l->lost += status.lost + queue_lost(s->queue);
		if (status.note[0])
			memcpy(w->l->note, status.note, sizeof(w->l->note));
		source_thread_close(s);
	}
	processes_free(w->processes);
	frames_free(w->frames);
}

int live_read(struct live *l, struct err *err)
{
	struct watching w = {.l = l};
	unsigned i;
	int rc = os_signals_open(err);

	if (rc)
		return rc;
	rc = frames_new(&w.frames, err);
	if (!rc)
		rc = processes_new(&w.processes, err);
	for (i = 0; !rc && l->sources[i] && w.n < SOURCES_MAX; i++)
		if (l->sources[i]->events)
			rc = open_source(&w, l->sources[i], err);
	if (!rc)
		rc = watch(&w, err);
	close_all(&w);
	os_signals_close();
	return rc == ERR_STOPPED ? 0 : rc;
}
