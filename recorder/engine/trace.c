#include "engine/trace.h"

#include "base/os.h"
#include "engine/feed.h"

#include <string.h>

#define FILE_IDLE_NS NS_PER_MS
#define FILE_SWEEP_EVENTS 65536u
#define LIVE_IDLE_NS (20 * NS_PER_MS)
#define LIVE_SWEEP_NS NS_PER_SEC

struct reading {
	struct trace *t;
	struct feed feed;
	uint64_t swept_ns;
};

static int open_sources(struct reading *r, struct err *err)
{
	static const struct needs none;
	const struct trace *t = r->t;
	const struct source_config file = {.log = t->log, .capture = {.file = t->path},
					   .every_event = true};
	const struct source_config live = {
		/* Only the events that the rule names. */
		.log = t->log,
		.capture = {.freq_hz = 1, .stack_kb = t->stack_kb, .only_providers = ""},
	};
	int rc = feed_open_tables(&r->feed, err);
	unsigned i;

	if (!rc && t->path)
		rc = feed_open(&r->feed, t->sources[0], &file, &none, err);
	for (i = 0; !rc && !t->path && t->sources[i]; i++)
		if (t->sources[i]->events)
			rc = feed_open(&r->feed, t->sources[i], &live, t->needs, err);
	return rc ? rc : feed_start(&r->feed, err);
}

static int take_event(void *ctx, const struct event *e)
{
	struct reading *r = ctx;
	struct trace *t = r->t;

	if (!t->path && e->kind != EVENT_GENERIC && e->kind != EVENT_LOG)
		return 0;
	if (t->path && !t->events)
		feed_origin(&r->feed.sources[0], &t->origin);
	if (++t->events % FILE_SWEEP_EVENTS == 0 && t->path)
		feed_sweep(&r->feed, e->time_ns);
	return t->each(t->ctx, e, &t->origin);
}

/* Wait a little for events; false when nothing comes after those that are queued by now. */
static bool wait_for_events(const struct reading *r)
{
	const struct trace *t = r->t;
	bool ended;

	if (!t->path)
		return os_now_ns() - t->origin.start_ns < t->for_ns &&
		       os_signal_wait(LIVE_IDLE_NS) != OS_SIGNAL_STOP;
	ended = feed_ended(&r->feed);
	if (!ended)
		os_sleep_ns(FILE_IDLE_NS);
	return !ended;
}

static int read_events(struct reading *r, struct err *err)
{
	struct trace *t = r->t;
	bool more = true;
	int rc = 0;

	if (!t->path)
		t->origin.start_ns = os_now_ns();
	while (!rc && more) {
		more = wait_for_events(r);
		rc = feed_take(&r->feed, take_event, r);
		if (t->path)
			continue;
		if (!rc)
			rc = feed_failure(&r->feed, err);
		if (os_now_ns() - r->swept_ns >= LIVE_SWEEP_NS) {
			r->swept_ns = os_now_ns();
			feed_sweep(&r->feed, r->swept_ns);
		}
	}
	feed_stop(&r->feed);
	feed_join(&r->feed);
	if (!rc)
		rc = feed_take(&r->feed, take_event, r);
	if (t->path)
		feed_origin(&r->feed.sources[0], &t->origin);
	return rc ? rc : feed_failure(&r->feed, err);
}

static void close_sources(struct reading *r)
{
	struct trace *t = r->t;
	uint32_t i;

	feed_stop(&r->feed);
	feed_join(&r->feed);
	for (i = 0; i < r->feed.n; i++) {
		struct source_status status;

		feed_status(&r->feed.sources[i], &status);
		t->lost += status.lost + queue_lost(r->feed.sources[i].queue);
		if (status.note[0])
			memcpy(t->note, status.note, sizeof(t->note));
	}
	feed_close(&r->feed);
}

int trace_read(struct trace *t, struct err *err)
{
	struct reading r = {.t = t};
	int rc = t->path ? 0 : os_signals_open(err);

	if (rc)
		return rc;
	t->events = t->lost = 0;
	t->origin = (struct source_origin){0};
	rc = open_sources(&r, err);
	if (!rc)
		rc = read_events(&r, err);
	close_sources(&r);
	if (t->path)
		return rc;
	os_signals_close();
	return rc == ERR_STOPPED ? 0 : rc;
}
