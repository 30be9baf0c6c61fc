#include "base/ahead.h"

#include <string.h>

/* Do the first of the jobs that nobody has begun. The lock is held, but not while the job runs. */
static void do_first(struct ahead *a)
{
	struct ahead_job *job = a->first;

	a->first = job->next;
	os_mutex_unlock(a->lock);
	job->run(job);
	os_mutex_lock(a->lock);
	job->waits = false;
	os_cond_broadcast(a->changed);
}

static void ahead_main(void *ctx)
{
	struct ahead *a = ctx;

	os_mutex_lock(a->lock);
	for (;;) {
		while (!a->first && !a->ending)
			os_cond_wait(a->changed, a->lock, UINT64_MAX);
		if (!a->first)
			break;
		do_first(a);
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
	while (job->waits) {
		if (a->owner_helps && a->first)
			do_first(a);
		else
			os_cond_wait(a->changed, a->lock, UINT64_MAX);
	}
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
