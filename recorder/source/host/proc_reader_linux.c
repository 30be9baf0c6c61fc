#include "source/host/proc_reader_linux.h"

#include "source/host/proc_pid_linux.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_NS (20 * NS_PER_MS)          /* on a busy machine a thread may begin that late */
#define ALONE_MIN_NS (50 * NS_PER_MS)        /* once late: perhaps the machine was just busy */
#define ALONE_NS (2 * NS_PER_SEC)            /* doubled up to this when it is late again */
#define ALONE_FORGET_NS (10 * NS_PER_SEC)
#define ALONE_MAX 16u                        /* processes that are left alone */

struct read_job {
	struct job job;
	uint32_t pid;
	uint64_t address;
	size_t n, got;
	char bytes[PROC_READER_BYTES];
};

/* A process that did not answer. */
struct alone {
	uint32_t pid;
	uint64_t until_ns, alone_ns;         /* remembered while the place is free */
	struct job *job;                     /* NULL = this place is free */
	bool stuck;                          /* and another thread works */
};

struct proc_reader {
	struct log *log;
	struct pool *pool;
	struct read_job *job;                /* idle; NULL = none */
	struct alone alone[ALONE_MAX];
	uint32_t nalone;
	bool logged;
};

static void run_read(struct job *job)
{
	struct read_job *j = (struct read_job *)job;

	j->got = proc_pid_memory(j->pid, j->address, j->bytes, j->n);
}

static void free_read(struct job *job)
{
	free(job);
}

static struct read_job *idle_job(struct proc_reader *r)
{
	struct read_job *j = r->job;

	if (j)
		return j;
	j = r->job = malloc(sizeof(*j));
	if (!j)
		return NULL;
	j->job = (struct job){.run = run_read, .free = free_read,
			      .what = "the memory of a process"};
	job_init(&j->job);
	return j;
}

/*
 * Whether the process is left alone, or no thread works now; forgets those that answered, but not
 * before their time: one that is just slow would cost ANSWER_NS each time.
 */
static bool is_alone(struct proc_reader *r, uint32_t pid)
{
	uint64_t now_ns = r->nalone ? os_now_ns() : 0;
	bool alone = r->nalone == ALONE_MAX;
	uint32_t i;

	for (i = 0; i < ALONE_MAX && r->nalone; i++) {
		struct alone *a = &r->alone[i];

		if (!a->job)
			continue;
		if (now_ns >= a->until_ns && job_done(a->job)) {
			job_drop(a->job);
			a->job = NULL;
			r->nalone--;
			continue;
		}
		alone |= a->pid == pid || (!a->stuck && !job_done(a->job));
	}
	return alone;
}

/* Takes the caller's use of the job. */
static void leave_alone(struct proc_reader *r, uint32_t pid, struct job *job)
{
	uint64_t now_ns = os_now_ns(), alone_ns = ALONE_MIN_NS;
	uint32_t i, place = ALONE_MAX;

	for (i = 0; i < ALONE_MAX; i++) {
		struct alone *a = &r->alone[i];

		if (a->job)
			continue;
		if (a->pid == pid && now_ns < a->until_ns + ALONE_FORGET_NS)
			alone_ns = a->alone_ns < ALONE_NS / 2 ? 2 * a->alone_ns : ALONE_NS;
		/* is_alone() saw a free place; its own one is the best. */
		if (place == ALONE_MAX || a->pid == pid)
			place = i;
	}
	r->alone[place] = (struct alone){
		.pid = pid, .until_ns = now_ns + alone_ns, .alone_ns = alone_ns, .job = job};
	r->nalone++;
}

size_t proc_reader_memory(struct proc_reader *r, uint32_t pid, uint64_t address, void *to,
			  size_t n)
{
	struct read_job *j;

	if (is_alone(r, pid) || (j = idle_job(r)) == NULL)
		return 0;
	j->pid = pid;
	j->address = address;
	j->n = n < PROC_READER_BYTES ? n : PROC_READER_BYTES;
	j->got = 0;
	job_again(&j->job);
	pool_put(r->pool, &j->job);
	if (!pool_wait(r->pool, &j->job, ANSWER_NS)) {
		leave_alone(r, pid, &j->job);
		r->job = NULL;
		return 0;
	}
	memcpy(to, j->bytes, j->got);
	return j->got;
}

bool proc_reader_run(struct proc_reader *r, uint32_t pid, struct job *job)
{
	if (is_alone(r, pid)) {
		job_drop(job);
		return false;
	}
	pool_put(r->pool, job);
	if (pool_wait(r->pool, job, ANSWER_NS))
		return true;
	leave_alone(r, pid, job);
	return false;
}

void proc_reader_look(struct proc_reader *r, uint64_t now_ns)
{
	const struct job *job;
	uint32_t i;

	while ((job = pool_look(r->pool, now_ns)) != NULL) {
		for (i = 0; i < ALONE_MAX && r->alone[i].job != job; i++)
			;
		if (i == ALONE_MAX)
			continue;
		if (!r->logged)
			log_line(r->log, LOG_WARN,
				 "the memory of process %u does not answer (a file system that "
				 "hangs?): it is left alone", r->alone[i].pid);
		r->logged = true;
		r->alone[i].stuck = true;
	}
}

struct pool *proc_reader_pool(const struct proc_reader *r)
{
	return r->pool;
}

int proc_reader_new(struct log *log, struct proc_reader **out, struct err *err)
{
	struct proc_reader *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_memory(err, "for reading memory");
	r->log = log;
	rc = pool_new("memory", 1, OS_PRIORITY_HIGH, &r->pool, err);
	if (rc)
		free(r);
	else
		*out = r;
	return rc;
}

void proc_reader_free(struct proc_reader *r)
{
	uint32_t i;

	if (!r)
		return;
	pool_free(r->pool);
	if (r->job)
		job_drop(&r->job->job);
	for (i = 0; i < ALONE_MAX; i++)
		if (r->alone[i].job)
			job_drop(r->alone[i].job);
	free(r);
}
