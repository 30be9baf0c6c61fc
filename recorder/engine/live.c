#include "engine/live.h"

#include "base/os.h"
#include "engine/feed.h"

#include <string.h>

#define LOOK_NS (20 * NS_PER_MS)
#define SWEEP_NS NS_PER_SEC
#define SWEEP_MARGIN_NS (10 * NS_PER_SEC)

struct watching {
	struct live *l;
	struct frames *frames;
	struct processes *processes;
	struct feed feed;
	struct source_origin origin;
	uint64_t swept_ns;
};

static int open_source(struct watching *w, const struct source_ops *ops, struct err *err)
{
	const struct source_config cfg = {
		.frames = w->frames, .processes = w->processes, .log = w->l->log,
		/* Only the events that the rule names. */
		.capture = {.freq_hz = 1, .stack_kb = w->l->stack_kb, .only_providers = ""},
	};

	return feed_open(&w->feed, ops, &cfg, w->l->needs, err);
}

static int take(void *ctx, const struct event *e)
{
	struct watching *w = ctx;

	if (e->kind != EVENT_GENERIC && e->kind != EVENT_LOG)
		return 0;
	return w->l->each(w->l->ctx, e, &w->origin);
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
	int rc = 0;

	w->origin.start_ns = os_now_ns();
	while (!rc && os_now_ns() - w->origin.start_ns < w->l->for_ns &&
	       os_signal_wait(LOOK_NS) != OS_SIGNAL_STOP) {
		rc = feed_take(&w->feed, take, w);
		if (!rc)
			rc = feed_failure(&w->feed, err);
		sweep(w, os_now_ns());
	}
	feed_stop(&w->feed);
	feed_join(&w->feed);
	if (!rc)
		rc = feed_take(&w->feed, take, w);
	return rc ? rc : feed_failure(&w->feed, err);
}

static void close_all(struct watching *w)
{
	struct source_status status;
	uint32_t i;

	feed_stop(&w->feed);
	feed_join(&w->feed);
	for (i = 0; i < w->feed.n; i++) {
		struct feed_source *s = &w->feed.sources[i];

		s->ops->status(s->source, &status);
		w->l->lost += status.lost + queue_lost(s->queue);
		if (status.note[0])
			memcpy(w->l->note, status.note, sizeof(w->l->note));
	}
	feed_close(&w->feed);
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
	for (i = 0; !rc && l->sources[i]; i++)
		if (l->sources[i]->events)
			rc = open_source(&w, l->sources[i], err);
	if (!rc)
		rc = feed_start(&w.feed, err);
	if (!rc)
		rc = watch(&w, err);
	close_all(&w);
	os_signals_close();
	return rc == ERR_STOPPED ? 0 : rc;
}
