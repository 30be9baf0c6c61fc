/*
 * After an incident is stored its data file is written, then StopCommand runs. Both do so on a
 * thread of their own: a slow command holds up neither recording nor the next incident. The log
 * gets what the command prints, and each failure; nothing else follows from one. So runs the
 * command of --on-failure.
 */
#include "engine/engine_private.h"

#include "base/text.h"
#include "engine/command_line.h"
#include "engine/data_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_MAX 4000u

struct command_job {
	struct command_job *next;
	int64_t incident;                    /* 0 = none: recording fails, as rule and reason say */
	char *rule, *reason;
};

static void job_free(struct command_job *job)
{
	free(job->rule);
	free(job->reason);
	free(job);
}

static const char *what_runs(const struct command_job *job)
{
	return job->incident ? "stop command" : "failure command";
}

/* Log each line that the command printed. */
static void log_output(struct engine *e, const struct command_job *job, const struct buf *output)
{
	const char *at = buf_text(output), *end = at + output->len;

	while (at < end) {
		size_t n = strcspn(at, "\r\n");

		if (n)
			log_line(e->log, LOG_INFO, "%s: %.*s", what_runs(job), (int)n, at);
		at += n + 1;
	}
}

struct exporting {
	struct engine *engine;
	int64_t incident;
	struct buf *path;
	struct err err;
	int rc;
};

static void export_main(void *ctx)
{
	struct exporting *x = ctx;
	struct engine *e = x->engine;

	if (e->capture->low_priority)
		os_thread_priority(OS_PRIORITY_LOWEST);
	else if (e->policy->in_background && !atomic_load(&e->merge_ended))
		os_thread_priority(OS_PRIORITY_LOW);         /* nobody waits for the end */
	x->rc = data_file_write(e->cfg->store_path, x->incident, e->capture->data_file,
				&e->command_steps, x->path, &x->err);
}

/* On another thread, as its priority is low; the command inherits this thread's, which is not. */
static void write_data_file(struct engine *e, const struct command_job *job, struct buf *path)
{
	struct exporting x = {.engine = e, .incident = job->incident, .path = path};
	struct os_thread *thread = NULL;
	int rc;

	ends_allow(e, "the data file", 0);
	rc = os_thread_start("export", export_main, &x, &thread, &x.err);
	os_thread_join(thread);
	if (rc || x.rc)
		log_line(e->log, LOG_WARN,
			 "the data file of incident %" PRId64 " was not written: %s", job->incident,
			 x.err.text);
	else
		log_line(e->log, LOG_INFO, "incident %" PRId64 " written to %s", job->incident,
			 buf_text(path));
}

static void run_command(struct engine *e, const struct command_job *job, const char *data_file)
{
	const struct command_line *command = job->incident ? e->cfg->stop_command
							   : e->cfg->failure_command;

	struct command_values values = {
		.store = e->cfg->store_path, .rule = job->rule, .reason = job->reason,
		.host = e->host, .incident = job->incident, .data_file = data_file,
	};
	struct command_line line = {0}, environment = {0};
	struct buf output = {0}, what = {0};
	struct err err = {0};
	int code = 0, rc;

	rc = command_line_expand(command, &values, &line, &err);
	if (!rc)
		rc = command_line_environment(&values, &environment, &err);
	ends_allow(e, job->incident ? "the stop command" : "the failure command",
		   e->capture->stop_command_timeout_ns);
	if (!rc)
		rc = os_run(line.args, environment.args, e->capture->stop_command_timeout_ns,
			    &output, OUTPUT_MAX, &code, &err);
	log_output(e, job, &output);
	buf_puts(&what, what_runs(job));
	if (job->incident)
		buf_printf(&what, " of incident %" PRId64, job->incident);
	if (rc)
		log_line(e->log, LOG_WARN, "%s: %s", buf_text(&what), err.text);
	else
		log_line(e->log, code ? LOG_WARN : LOG_INFO, "%s: %s ended with code %d",
			 buf_text(&what), line.args[0], code);
	buf_free(&what);
	command_line_free(&line);
	command_line_free(&environment);
	buf_free(&output);
}

static void add_job(struct engine *e, int64_t incident, const char *rule, const char *reason)
{
	struct command_job *job, **last;
	uint32_t waiting = 0;

	job = calloc(1, sizeof(*job));
	if (job) {
		job->incident = incident;
		job->rule = text_dup(rule, SIZE_MAX);
		job->reason = text_dup(reason, SIZE_MAX);
	}
	os_mutex_lock(e->shared.lock);
	for (last = &e->shared.command_jobs; *last; last = &(*last)->next)
		waiting++;
	if (!incident)
		last = &e->shared.command_jobs;      /* before the others */
	if (job && job->rule && job->reason && waiting < ENGINE_PENDING_MAX) {
		job->next = *last;
		*last = job;
		job = NULL;
	} else {
		log_line(e->log, LOG_WARN, "the %s for '%s' is left out: %s",
			 !incident ? "failure command"
				   : e->capture->data_file ? "data file" : "stop command", reason,
			 waiting < ENGINE_PENDING_MAX ? "out of memory" : "too many others wait");
	}
	os_cond_signal(e->shared.wake_command);
	os_mutex_unlock(e->shared.lock);
	if (job)
		job_free(job);
}

void command_add(struct engine *e, int64_t incident, const char *rule, const char *reason)
{
	if (e->cfg->stop_command || e->capture->data_file)
		add_job(e, incident, rule, reason);
}

void command_add_failure(struct engine *e, const char *kind, const char *reason)
{
	add_job(e, 0, kind, reason);
}

static void do_job(struct engine *e, const struct command_job *job)
{
	struct buf path = {0};

	if (job->incident && e->capture->data_file)
		write_data_file(e, job, &path);
	if ((!job->incident || e->cfg->stop_command) && atomic_load(&e->stop) != STOP_ABORT)
		run_command(e, job, path.len ? buf_text(&path) : NULL);
	buf_free(&path);
}

/* Until the writer has ended and all jobs are done; an abort drops those that have not begun. */
void command_main(void *ctx)
{
	struct engine *e = ctx;
	struct command_job *job;
	bool done = false;

	while (!done) {
		os_mutex_lock(e->shared.lock);
		while (!e->shared.command_jobs && !e->shared.command_done)
			os_cond_wait(e->shared.wake_command, e->shared.lock, UINT64_MAX);
		job = e->shared.command_jobs;
		if (job)
			e->shared.command_jobs = job->next;
		done = e->shared.command_done && !e->shared.command_jobs;
		os_mutex_unlock(e->shared.lock);
		if (job && atomic_load(&e->stop) != STOP_ABORT)
			do_job(e, job);
		if (job)
			job_free(job);
	}
}

void command_end(struct engine *e)
{
	os_mutex_lock(e->shared.lock);
	e->shared.command_done = true;
	os_cond_signal(e->shared.wake_command);
	os_mutex_unlock(e->shared.lock);
}
