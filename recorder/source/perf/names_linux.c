#include "source/perf/names_linux.h"

#include "base/os.h"
#include "symbol/symbol_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STUCK_NS (NS_PER_SEC / 2)            /* reading takes 0.1 ms */
#define LOOK_NS (100 * NS_PER_MS)

struct command_line {
	struct job job;
	char what[48];
	uint32_t pid;
	char comm[16];
	struct buf text;

	struct perf_process *process;        /* the source's, as what follows */
	bool again;                          /* asked for once more; exec writes it late */
	bool waited;                         /* its time to answer is over */
	struct command_line *next;
};

struct perf_names {
	const char *only;
	struct perf_listener named;
	struct log *log;
	struct pool *pool;                   /* NULL = command lines are not wanted */
	struct command_line *first;          /* that are being read */
	uint64_t look_ns;
	bool logged;
};

/* ---- a thread of the pool -------------------------------------------------------------------- */

/*
 * /proc shows what the pid runs now, which may already be the next program: the short name must
 * still be the one that this process had.
 */
static void run_read(struct job *job)
{
	struct command_line *c = (struct command_line *)job;
	char comm_now[16];

	if (os_process_arguments(c->pid, &c->text, NULL) || !symbol_comm(c->pid, comm_now) ||
	    strcmp(c->comm, comm_now) != 0)
		buf_reset(&c->text);
}

static void free_read(struct job *job)
{
	struct command_line *c = (struct command_line *)job;

	buf_free(&c->text);
	free(c);
}

/* ---- the source's thread --------------------------------------------------------------------- */

int perf_names_new(const char *only, bool command_lines, const struct perf_listener *named,
		   struct log *log, struct perf_names **out, struct err *err)
{
	struct perf_names *n = calloc(1, sizeof(*n));
	int rc = 0;

	if (!n)
		return err_memory(err, "for names of processes");
	n->only = only;
	n->named = *named;
	n->log = log;
	if (command_lines)
		rc = pool_new("names", 1, OS_PRIORITY_HIGH, &n->pool, err);
	if (rc) {
		free(n);
		return rc;
	}
	if (n->pool)
		pool_set_stuck(n->pool, STUCK_NS);
	*out = n;
	return 0;
}

void perf_names_free(struct perf_names *n)
{
	if (!n)
		return;
	pool_free(n->pool);
	free(n);
}

struct pool *perf_names_pool(const struct perf_names *n)
{
	return n->pool;
}

void perf_names_update(const struct perf_names *n, struct perf_process *process)
{
	process->skipped = process->outside ||
			   (n->only && !process_is_meant(process->process, n->only));
	if (n->named.tell)
		n->named.tell(n->named.ctx, process->process);
}

/* While no thread works, nothing is put: processes may come and go for days. */
void perf_names_read(struct perf_names *n, struct perf_process *process)
{
	const char *comm = atomic_load(&process->process->comm);
	struct command_line *c = process->command_line;

	if (c)
		c->again = true;
	if (c || !n->pool || !comm || process->kernel ||
	    atomic_load(&process->process->cmdline) || pool_stuck(n->pool) >= POOL_STUCK_MAX)
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	snprintf(c->what, sizeof(c->what), "the command line of process %u", process->pid);
	snprintf(c->comm, sizeof(c->comm), "%s", comm);
	c->job = (struct job){.run = run_read, .free = free_read, .what = c->what};
	job_init(&c->job);
	c->pid = process->pid;
	c->text.max_bytes = PROCESS_CMDLINE_MAX;
	c->process = process;
	c->next = n->first;
	n->first = process->command_line = c;
	pool_put(n->pool, &c->job);
}

void perf_names_forget(struct perf_names *n, struct perf_process *process)
{
	struct command_line *c = process->command_line, **at = &n->first;

	if (!c)
		return;
	if (job_done(&c->job) && c->text.len)
		process_set_cmdline(process->process, buf_text(&c->text));
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	process->command_line = NULL;
	job_drop(&c->job);
}

/* Its job is done. */
static void take(struct perf_names *n, struct perf_process *process)
{
	bool again = process->command_line->again;

	perf_names_forget(n, process);
	perf_names_update(n, process);
	if (again)
		perf_names_read(n, process);
}

bool perf_names_reading(struct perf_names *n, struct perf_process *process)
{
	const struct command_line *c = process->command_line;

	if (!c || !process->skipped || c->waited)
		return false;
	if (!job_done(&c->job))
		return true;
	take(n, process);
	return process->command_line && process->skipped;
}

static void look_for_stuck(struct perf_names *n)
{
	uint64_t now_ns = os_now_ns();
	const struct job *job;

	if (now_ns < n->look_ns + LOOK_NS)
		return;
	n->look_ns = now_ns;
	while ((job = pool_look(n->pool, now_ns)) != NULL) {
		if (!n->logged)
			log_line(n->log, LOG_WARN, "%s does not answer (the kernel holds the "
				 "process?): rules know its file's name only", job->what);
		n->logged = true;
	}
}

void perf_names_look(struct perf_names *n, uint64_t wait_ns)
{
	uint64_t start_ns = n->first ? os_now_ns() : 0, passed_ns;
	struct command_line *c, *next;

	for (c = n->first; c; c = next) {
		next = c->next;
		passed_ns = c->waited ? wait_ns : os_now_ns() - start_ns;
		c->waited = true;
		if (job_done(&c->job) ||
		    (passed_ns < wait_ns && pool_wait(n->pool, &c->job, wait_ns - passed_ns)))
			take(n, c->process);
	}
	if (n->pool)
		look_for_stuck(n);
}
