#include "engine/trace.h"

#include "base/os.h"
#include "engine/feed.h"

#include <string.h>

#define IDLE_NS NS_PER_MS
#define SWEEP_EACH 65536u                    /* events */

struct reading {
	struct trace *t;
	struct feed feed;
};

static int open_reading(struct reading *r, struct err *err)
{
	static const struct needs none;
	const struct source_config cfg = {.log = r->t->log, .capture = {.file = r->t->path},
					  .every_event = true};
	int rc = feed_open_tables(&r->feed, err);

	return rc ? rc : feed_open(&r->feed, r->t->ops, &cfg, &none, err);
}

static void ask_origin(struct reading *r)
{
	memset(&r->t->origin, 0, sizeof(r->t->origin));
	if (r->t->ops->origin)
		r->t->ops->origin(r->feed.sources[0].source, &r->t->origin);
}

static int take(void *ctx, const struct event *e)
{
	struct reading *r = ctx;
	struct trace *t = r->t;

	if (!t->events++)
		ask_origin(r);
	if (t->events % SWEEP_EACH == 0)
		feed_sweep(&r->feed, e->time_ns);
	return t->each(t->ctx, e, &t->origin);
}

static int take_all(struct reading *r)
{
	bool ended;
	int rc;

	do {
		ended = feed_ended(&r->feed);
		rc = feed_take(&r->feed, take, r);
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
		rc = feed_start(&r.feed, err);
	if (!rc) {
		rc = take_all(&r);
		feed_stop(&r.feed);
		feed_join(&r.feed);
		if (!rc)
			rc = feed_failure(&r.feed, err);
		ask_origin(&r);
	}
	feed_close(&r.feed);
	return rc;
}
