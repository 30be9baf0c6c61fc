#include "source/host/proc_reader_linux.h"

#include "source/host/proc_pid_linux.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_NS (20 * NS_PER_MS)          /* on a busy machine a thread may begin that late */
/*
 * All samples of a drain follow one another within some ms: without an answer none of them would
 * have names. Rings hold 500 ms.
 */
#define PATIENCE_NS (60 * NS_PER_MS)

struct read_job {
	struct job job;
	uint32_t pid;
	uint64_t address;
	size_t n, got;
	char bytes[PROC_READER_BYTES];
};

struct proc_reader {
	struct log *log;
	struct pool *pool;
	uint64_t answer_ns;
	struct read_job *job;                /* idle; NULL = none */
	bool logged;
};

/*
 * Its jobs are short, and the whole drain waits for them. On a machine with 25 busy threads for two
 * CPUs one sample in 25 of Node.js had no name, because nice -10 came too late.
 */
static void go_first(void)
{
	const struct sched_param first = {.sched_priority = 1};

	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

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

size_t proc_reader_memory(struct proc_reader *r, uint32_t pid, uint64_t address, void *to,
			  size_t n)
{
	struct read_job *j = idle_job(r);

	if (!j)
		return 0;
	j->pid = pid;
	j->address = address;
	j->n = n < PROC_READER_BYTES ? n : PROC_READER_BYTES;
	j->got = 0;
	job_again(&j->job);
	if (!pool_ask(r->pool, pid, &j->job, r->answer_ns)) {
		r->job = NULL;
		return 0;
	}
	memcpy(to, j->bytes, j->got);
	return j->got;
}

bool proc_reader_run(struct proc_reader *r, uint32_t pid, struct job *job)
{
	return pool_ask(r->pool, pid, job, r->answer_ns);
}

void proc_reader_look(struct proc_reader *r, uint64_t now_ns)
{
	const struct job *job;

	while ((job = pool_look(r->pool, now_ns)) != NULL) {
		if (!r->logged && job->run == run_read)
			log_line(r->log, LOG_WARN,
				 "the memory of process %u does not answer (a file system that "
				 "hangs?): it is left alone", ((const struct read_job *)job)->pid);
		r->logged = true;
	}
}

void proc_reader_set_answer(struct proc_reader *r, uint64_t answer_ns)
{
	r->answer_ns = answer_ns;
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
	if (rc) {
		free(r);
		return rc;
	}
	r->answer_ns = ANSWER_NS;
	pool_set_begin(r->pool, go_first);
	pool_set_patience(r->pool, PATIENCE_NS);
	*out = r;
	return 0;
}

void proc_reader_free(struct proc_reader *r)
{
	if (!r)
		return;
	pool_free(r->pool);
	if (r->job)
		job_drop(&r->job->job);
	free(r);
}
