#include "stub_source.h"

#include "base/os.h"

#include <stdatomic.h>
#include <stdlib.h>

static int stub_open(const struct source_config *cfg, const struct needs *needs,
		     struct source **out, struct err *err)
{
	struct stub_source *s = calloc(1, sizeof(*s));

	(void)needs;
	if (!s)
		return err_memory(err, "for a source");
	s->base.ops = &stub_source;
	s->queue = cfg->queue;
	*out = &s->base;
	return 0;
}

static void stub_catch_up(struct source *source)
{
	atomic_store(&((struct stub_source *)source)->asked_ns, os_now_ns());
}

static void stub_stop(struct source *source)
{
	atomic_store(&((struct stub_source *)source)->stopping, true);
}

static void stub_close(struct source *source)
{
	free(source);
}

uint64_t stub_source_fire(struct stub_source *s)
{
	struct event fire = {.time_ns = os_now_ns(), .kind = EVENT_GENERIC, .stack = STACK_NONE,
			     .provider = "test",
			     .name = "fire"};

	queue_put(s->queue, &fire);
	return fire.time_ns;
}

const struct source_ops stub_source = {
	.name = "stub",
	.summary = "what a test puts",
	.open = stub_open,
	.stop = stub_stop,
	.catch_up = stub_catch_up,
	.close = stub_close,
};
