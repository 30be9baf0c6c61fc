#include "engine/source_thread.h"

#include <string.h>

static void source_main(void *ctx)
{
	struct source_thread *t = ctx;

	t->rc = t->ops->run(t->source, &t->err);
	queue_finish(t->queue);
	atomic_store(&t->ended, true);
}

int source_thread_open(struct source_thread *t, const struct source_ops *ops, const struct source_config *cfg,
		       const struct needs *needs, struct err *err)
{
	struct source_config with_queue = *cfg;
	int rc;

	with_queue.queue = queue_new(QUEUE_BYTES);
	if (!with_queue.queue)
		return err_memory(err, "for the queue of the %s source", ops->name);
	rc = ops->open(&with_queue, needs, &t->source, err);
	if (rc) {
		queue_free(with_queue.queue);
		return rc;
	}
	t->ops = ops;
	t->queue = with_queue.queue;
	return 0;
}

int source_thread_start(struct source_thread *t, struct err *err)
{
	return os_thread_start(t->ops->name, source_main, t, &t->thread, err);
}

void source_thread_end(struct source_thread *t)
{
	t->ops->stop(t->source);
	os_thread_join(t->thread);
	t->thread = NULL;
}

void source_thread_close(struct source_thread *t)
{
	if (t->source)
		t->ops->close(t->source);
	queue_free(t->queue);
	t->source = NULL;
	t->queue = NULL;
}
