#include "source/host/arguments_linux.h"

#include "base/pool.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_NS (20 * NS_PER_MS)           /* on a busy machine a thread may begin that late */

struct arguments_job {
	struct job job;
	uint32_t pid;
	int dir_fd;                          /* its own */
	char text[OS_ARGUMENTS_MAX + 1];
};

struct arguments {
	struct pool *pool;
	struct arguments_job *late;          /* its thread still counts as working; NULL = none */
	struct arguments_job *stuck[POOL_STUCK_MAX];     /* their threads are left behind */
	uint32_t nstuck;
};

static void run_arguments(struct job *job)
{
	struct arguments_job *j = (struct arguments_job *)job;
	int fd = openat(j->dir_fd, "cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, j->text, sizeof(j->text) - 1) : 0;

	if (fd >= 0)
		close(fd);
	j->text[text_join_arguments(j->text, n > 0 ? (size_t)n : 0)] = '\0';
}

static void free_arguments(struct job *job)
{
	close(((struct arguments_job *)job)->dir_fd);
	free(job);
}

static struct arguments_job *new_job(int dir_fd, uint32_t pid)
{
	struct arguments_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job = (struct job){.run = run_arguments, .free = free_arguments,
			      .what = "the arguments of a process"};
	j->pid = pid;
	j->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	job_init(&j->job);
	return j;
}

/* Let another thread take over from one that is stuck, and forget those that came back. */
static void look(struct arguments *a)
{
	const struct job *job;
	uint32_t i;

	while ((job = pool_look(a->pool, os_now_ns())) != NULL)
		if (a->late && job == &a->late->job && a->nstuck < POOL_STUCK_MAX) {
			a->stuck[a->nstuck++] = a->late;
			a->late = NULL;
		}
	for (i = a->nstuck; i--;)
		if (job_done(&a->stuck[i]->job)) {
			job_drop(&a->stuck[i]->job);
			a->stuck[i] = a->stuck[--a->nstuck];
		}
	if (a->late && job_done(&a->late->job)) {
		job_drop(&a->late->job);
		a->late = NULL;
	}
}

/* Whether a thread works, and this process does not hold up another one. */
static bool may_ask(struct arguments *a, uint32_t pid)
{
	uint32_t i;

	if (a->late || a->nstuck)
		look(a);
	for (i = 0; i < a->nstuck; i++)
		if (a->stuck[i]->pid == pid)
			return false;
	return !a->late && a->nstuck < POOL_STUCK_MAX;
}

bool arguments_read(struct arguments *a, int dir_fd, uint32_t pid, char out[OS_ARGUMENTS_MAX + 1])
{
	struct arguments_job *j = may_ask(a, pid) ? new_job(dir_fd, pid) : NULL;

	out[0] = '\0';
	if (!j)
		return false;
	pool_put(a->pool, &j->job);
	if (!pool_wait(a->pool, &j->job, ANSWER_NS)) {
		a->late = j;
		return false;
	}
	memcpy(out, j->text, sizeof(j->text));
	job_drop(&j->job);
	return true;
}

int arguments_open(struct arguments **out, struct err *err)
{
	struct arguments *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return err_memory(err, "for reading command lines");
	rc = pool_new("arguments", 1, OS_PRIORITY_NORMAL, &a->pool, err);
	if (rc)
		free(a);
	else
		*out = a;
	return rc;
}

void arguments_close(struct arguments *a)
{
	uint32_t i;

	if (!a)
		return;
	pool_free(a->pool);
	if (a->late)
		job_drop(&a->late->job);
	for (i = 0; i < a->nstuck; i++)
		job_drop(&a->stuck[i]->job);
	free(a);
}
