#include "engine/engine_private.h"

#include "base/text.h"

#include <stdlib.h>

int shared_open(struct engine *e, struct err *err)
{
	struct shared *s = &e->shared;

	s->lock = os_mutex_new();
	s->wake_writer = os_cond_new();
	s->wake_merge = os_cond_new();
	s->wake_command = os_cond_new();
	e->wake_control = os_wake_new();
	s->rules = calloc(e->cfg->ntriggers + 1u, sizeof(*s->rules));
	if (!s->lock || !s->wake_writer || !s->wake_merge || !s->wake_command || !e->wake_control ||
	    !s->rules)
		return err_memory(err, "while starting");
	return 0;
}

void shared_close(struct engine *e)
{
	struct shared *s = &e->shared;

	os_cond_free(s->wake_writer);
	os_cond_free(s->wake_merge);
	os_cond_free(s->wake_command);
	os_wake_free(e->wake_control);
	os_mutex_free(s->lock);
	free(s->rules);
	free(s->snapshot_reason);
	free(s->stop_reason);
}

void engine_stop(struct engine *e, enum engine_stop how, const char *reason)
{
	int now = atomic_load(&e->stop);

	os_mutex_lock(e->shared.lock);
	if (reason && !e->shared.stop_reason)
		e->shared.stop_reason = text_dup(reason, SIZE_MAX);
	while (now < (int)how && !atomic_compare_exchange_weak(&e->stop, &now, (int)how))
		;
	os_cond_signal(e->shared.wake_merge);
	os_mutex_unlock(e->shared.lock);
}

void engine_wake_writer(struct engine *e)
{
	e->shared.writer_has_work = true;
	os_cond_signal(e->shared.wake_writer);
}

bool engine_keeps_priority(const struct engine *e)
{
	return !e->policy->in_background || e->capture->low_priority;
}

/*
 * Raised from outside: at nice 10 and a load of 25 the writer does not get to a call of its own.
 * The 0.15 s of CPU of a last incident took 87 s, and a service manager waits for 90 s.
 */
void engine_hurry_writer(struct engine *e)
{
	engine_wake_writer(e);
	if (!engine_keeps_priority(e))
		os_thread_hurry(e->writer_thread);
	e->shared.writer_hurried = true;
}
