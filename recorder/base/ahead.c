#include "base/ahead.h"

#include <string.h>

static void ahead_main(void *ctx)
{
	struct ahead *a = ctx;
	struct ahead_job *job;

	os_mutex_lock(a->lock);
	for (;;) {
		while (!a->first && !a->ending)
			os_cond_wait(a->changed, a->lock, UINT64_MAX);
		job = a->first;
		if (!job)
			break;
		os_mutex_unlock(a->lock);
		job->run(job);
		os_mutex_lock(a->lock);
		a->first = job->next;
		job->waits = false;
		os_cond_broadcast(a->changed);
	}
	os_mutex_unlock(a->lock);
}

void ahead_begin(struct ahead *a, const char *name)
{
	memset(a, 0, sizeof(*a));
	a->lock = os_mutex_new();
	a->changed = os_cond_new();
	if (a->lock && a->changed && os_thread_start(name, ahead_main, a, &a->thread, NULL) != 0)
		a->thread = NULL;
}

void ahead_give(struct ahead *a, struct ahead_job *job)
{
	if (!a->thread) {
		job->run(job);
		return;
	}
	job->next = NULL;
	os_mutex_lock(a->lock);
	job->waits = true;
	if (a->first)
		a->last->next = job;
	else
		a->first = job;
	a->last = job;
	os_cond_broadcast(a->changed);
	os_mutex_unlock(a->lock);
}

void ahead_await(struct ahead *a, struct ahead_job *job)
{
	if (!a->thread)
		return;
	os_mutex_lock(a->lock);
	while (job->waits)
		os_cond_wait(a->changed, a->lock, UINT64_MAX);
	os_mutex_unlock(a->lock);
}

void ahead_end(struct ahead *a)
{
	if (a->thread) {
		os_mutex_lock(a->lock);
		a->ending = true;
		os_cond_broadcast(a->changed);
		os_mutex_unlock(a->lock);
		os_thread_join(a->thread);
	}
	os_cond_free(a->changed);
	os_mutex_free(a->lock);
}
