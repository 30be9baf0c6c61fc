#include "engine/live.h"

#include "base/os.h"
#include "engine/feed.h"

#include <string.h>

#define LOOK_NS (20 * NS_PER_MS)
#define SWEEP_NS NS_PER_SEC

struct watching {
	struct live *l;
	struct feed feed;
	struct source_origin origin;
	uint64_t swept_ns;
};

static int open_sources(struct watching *w, struct err *err)
{
	const struct live *l = w->l;
	const struct source_config cfg = {
		/* Only the events that the rule names. */
		.log = l->log,
		.capture = {.freq_hz = 1, .stack_kb = l->stack_kb, .only_providers = ""},
	};
	unsigned i;
	int rc = feed_open_tables(&w->feed, err);

	for (i = 0; !rc && l->sources[i]; i++)
		if (l->sources[i]->events)
			rc = feed_open(&w->feed, l->sources[i], &cfg, l->needs, err);
	return rc;
}

static int take(void *ctx, const struct event *e)
{
	struct watching *w = ctx;

	if (e->kind != EVENT_GENERIC && e->kind != EVENT_LOG)
		return 0;
	return w->l->each(w->l->ctx, e, &w->origin);
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
		if (os_now_ns() - w->swept_ns >= SWEEP_NS) {
			w->swept_ns = os_now_ns();
			feed_sweep(&w->feed, w->swept_ns);
		}
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
		feed_status(&w->feed.sources[i], &status);
		w->l->lost += status.lost + queue_lost(w->feed.sources[i].queue);
		if (status.note[0])
			memcpy(w->l->note, status.note, sizeof(w->l->note));
	}
	feed_close(&w->feed);
}

int live_read(struct live *l, struct err *err)
{
	struct watching w = {.l = l};
	int rc = os_signals_open(err);

	if (rc)
		return rc;
	rc = open_sources(&w, err);
	if (!rc)
		rc = feed_start(&w.feed, err);
	if (!rc)
		rc = watch(&w, err);
	close_all(&w);
	os_signals_close();
	return rc == ERR_STOPPED ? 0 : rc;
}
