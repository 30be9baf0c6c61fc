#include "source/host/running.h"

#include "base/pool.h"
#include "source/host/proc_pid_linux.h"

#include <stdlib.h>

#define ANSWER_NS (NS_PER_SEC / 2)           /* a process takes 0.1 ms */

struct listing {
	running_one *one;
	void *ctx;
	struct pool *pool;
	bool gave_up;
};

/* A process that the kernel holds stops whoever reads its command line. */
struct names_job {
	struct job job;
	uint32_t pid;
	bool found;
	struct proc_names names;
};

static void read_names(struct job *job)
{
	struct names_job *j = (struct names_job *)job;

	j->found = proc_names_read(j->pid, &j->names);
}

static void free_names(struct job *job)
{
	free(job);
}

/* One that does not answer is passed over. */
static bool tell_names(void *ctx, uint32_t pid)
{
	struct listing *l = ctx;
	struct names_job *j = calloc(1, sizeof(*j));

	l->gave_up = !j || pool_stuck(l->pool) == POOL_STUCK_MAX;
	if (l->gave_up) {
		free(j);
		return false;
	}
	j->job = (struct job){.run = read_names, .free = free_names, .what = "names"};
	job_init(&j->job);
	j->pid = pid;
	pool_put(l->pool, &j->job);
	if (pool_wait(l->pool, &j->job, ANSWER_NS) && j->found)
		l->one(l->ctx, pid, &j->names.is);
	job_drop(&j->job);
	while (pool_look(l->pool, os_now_ns()))
		;
	return true;
}

bool running_each(running_one *one, void *ctx)
{
	struct listing l = {.one = one, .ctx = ctx};
	bool listed;

	if (pool_new("names", 1, OS_PRIORITY_NORMAL, &l.pool, NULL))
		return false;
	pool_set_stuck(l.pool, ANSWER_NS - NS_PER_SEC / 10);
	listed = proc_each("/proc", tell_names, &l);
	pool_free(l.pool);
	return listed && !l.gave_up;
}
