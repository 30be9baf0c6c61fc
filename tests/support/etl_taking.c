#include "tests/support/etl_taking.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

struct etl_taking taking;

static void keep(const struct event *e)
{
	uint32_t i, n = taking.n++;

	assert_true(n < KEPT);
	taking.events[n] = *e;
	for (i = 0; i < e->nstack_frames && i < 8; i++)
		taking.frames_of[n][i] = e->stack_frames[i];
	snprintf(taking.names[n], sizeof(taking.names[n]), "%s", e->name ? e->name : "");
}

void taking_run(void *ctx)
{
	(void)ctx;
	taking.rc = taking.source->ops->run(taking.source, &taking.err);
	queue_finish(taking.queue);
	atomic_store(&taking.ended, true);
}

int begin_taking(const char *path, size_t queue_bytes, const struct source_config *more)
{
	static const struct needs none;
	struct source_config cfg = more ? *more : (struct source_config){0};

	memset(&taking, 0, sizeof(taking));
	taking.each = keep;
	assert_int_equal(frames_new(&taking.frames, NULL), 0);
	assert_int_equal(processes_new(&taking.processes, NULL), 0);
	taking.queue = queue_new(queue_bytes);
	assert_non_null(taking.queue);
	cfg.frames = taking.frames;
	cfg.processes = taking.processes;
	cfg.queue = taking.queue;
	cfg.capture.file = path;
	return etl_source.open(&cfg, &none, &taking.source, &taking.err);
}

void take_all(void)
{
	const struct event *e;
	bool ended;

	assert_int_equal(os_thread_start("source", taking_run, NULL, &taking.thread, NULL), 0);
	do {
		ended = atomic_load(&taking.ended);
		while ((e = queue_peek(taking.queue))) {
			taking.each(e);
			queue_pop(taking.queue);
		}
		if (!ended)
			os_sleep_ns(NS_PER_MS / 4);
	} while (!ended);
	os_thread_join(taking.thread);
	assert_int_equal(queue_lost(taking.queue), 0);
}

void end_taking(void)
{
	if (taking.source)
		etl_source.close(taking.source);
	queue_free(taking.queue);
	processes_free(taking.processes);
	frames_free(taking.frames);
}
