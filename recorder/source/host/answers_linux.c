#include "source/host/answers_linux.h"

#include "base/pool.h"
#include "base/table.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define ANSWER_NS (20 * NS_PER_MS)           /* on a busy machine a thread may begin that late */
#define STUCK_NS (NS_PER_SEC / 2)
#define DISKS (UINT64_C(1) << 32)            /* their subjects; smaller ones are pids */

struct question {
	struct job job;
	int dir_fd;                          /* its own; -1 = none */
	char *name;                          /* a file there, or a mounted directory */
	bool ok;
	struct statvfs space;
	size_t n;
	char text[OS_ARGUMENTS_MAX + 1];
};

struct answers {
	struct pool *pool;
	struct question *last;               /* whose text was given out; NULL = none */
};

/* ---- a thread of the pool -------------------------------------------------------------------- */

static void read_file(struct job *job)
{
	struct question *q = (struct question *)job;
	int fd = openat(q->dir_fd, q->name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, q->text, sizeof(q->text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	q->ok = n >= 0;
	q->n = n > 0 ? (size_t)n : 0;
}

static void measure(struct job *job)
{
	struct question *q = (struct question *)job;

	q->ok = statvfs(q->name, &q->space) == 0;
}

static void free_question(struct job *job)
{
	struct question *q = (struct question *)job;

	if (q->dir_fd >= 0)
		close(q->dir_fd);
	free(q->name);
	free(q);
}

/* ---- the owner ------------------------------------------------------------------------------- */

static void drop_last(struct answers *a)
{
	if (a->last)
		job_drop(&a->last->job);
	a->last = NULL;
}

/* Until the next call, the question is the last one. NULL = no answer */
static struct question *ask(struct answers *a, void (*run)(struct job *job), uint64_t subject,
			    int dir_fd, const char *name)
{
	struct question *q = malloc(sizeof(*q));

	drop_last(a);
	/* Another thread takes over from one that is stuck. */
	while (pool_look(a->pool, os_now_ns()))
		;
	if (!q)
		return NULL;
	q->job = (struct job){.run = run, .free = free_question,
			      .what = "what others answer"};
	q->ok = false;
	q->n = 0;
	q->dir_fd = dir_fd < 0 ? -1 : fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	q->name = text_dup(name, SIZE_MAX);
	job_init(&q->job);
	if (!q->name) {
		job_drop(&q->job);
		return NULL;
	}
	if (pool_ask(a->pool, subject, &q->job, ANSWER_NS))
		a->last = q;
	return a->last && q->ok ? q : NULL;
}

bool answers_arguments(struct answers *a, int dir_fd, uint32_t pid,
		       char out[OS_ARGUMENTS_MAX + 1])
{
	struct question *q = ask(a, read_file, pid, dir_fd, "cmdline");

	out[0] = '\0';
	if (!q)
		return false;
	memcpy(out, q->text, q->n);
	out[text_join_arguments(out, q->n)] = '\0';
	return true;
}

bool answers_file(struct answers *a, int dir_fd, uint32_t pid, const char *name, struct text *out)
{
	struct question *q = ask(a, read_file, pid, dir_fd, name);

	*out = text_of(q ? q->text : NULL, q ? q->n : 0);
	return q != NULL;
}

bool answers_space(struct answers *a, const char *dir, double *total, double *available)
{
	uint64_t subject = DISKS | hash_bytes(dir, strlen(dir));
	struct question *q = ask(a, measure, subject, -1, dir);

	if (!q)
		return false;
	*total = (double)q->space.f_blocks * (double)q->space.f_frsize;
	*available = (double)q->space.f_bavail * (double)q->space.f_frsize;
	return true;
}

bool answers_note(const struct answers *a, char *out, size_t n)
{
	return pool_note(a->pool, "files of processes and sizes of disks", out, n);
}

int answers_open(struct answers **out, struct err *err)
{
	struct answers *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return err_memory(err, "for reading command lines");
	rc = pool_new("answers", 1, OS_PRIORITY_NORMAL, &a->pool, err);
	if (rc) {
		free(a);
		return rc;
	}
	pool_set_stuck(a->pool, STUCK_NS);
	*out = a;
	return 0;
}

void answers_close(struct answers *a)
{
	if (!a)
		return;
	drop_last(a);
	pool_free(a->pool);
	free(a);
}
