/*
 * After an incident is stored its data file is written, then StopCommand runs. Both do so on a
 * thread of their own: a slow command holds up neither recording nor the next incident. The log
 * gets what the command prints, and each failure; nothing else follows from one.
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
	int64_t incident;
	char *rule, *reason;
};

static void job_free(struct command_job *job)
{
	free(job->rule);
	free(job->reason);
	free(job);
}

/* Log each line that the command printed. */
static void log_output(struct engine *e, const struct buf *output)
{
	const char *at = buf_text(output), *end = at + output->len;

	while (at < end) {
		size_t n = strcspn(at, "\r\n");

		if (n)
			log_line(e->log, LOG_INFO, "stop command: %.*s", (int)n, at);
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

static void run_stop_command(struct engine *e, const struct command_job *job,
			     const char *data_file)
{
	struct command_values values = {
		.store = e->cfg->store_path, .rule = job->rule, .reason = job->reason,
		.host = e->host, .incident = job->incident, .data_file = data_file,
	};
	struct command_line line = {0}, environment = {0};
	struct buf output = {0};
	struct err err = {0};
	int code = 0, rc;

	rc = command_line_expand(e->cfg->stop_command, &values, &line, &err);
	if (!rc)
		rc = command_line_environment(&values, &environment, &err);
	ends_allow(e, "the stop command", e->capture->stop_command_timeout_ns);
	if (!rc)
		rc = os_run(line.args, environment.args, e->capture->stop_command_timeout_ns,
			    &output, OUTPUT_MAX, &code, &err);
	log_output(e, &output);
	if (rc)
		log_line(e->log, LOG_WARN, "stop command of incident %" PRId64 ": %s",
			 job->incident, err.text);
	else
		log_line(e->log, code ? LOG_WARN : LOG_INFO, "stop command of incident %" PRId64
			 ": %s ended with code %d", job->incident, line.args[0], code);
	command_line_free(&line);
	command_line_free(&environment);
	buf_free(&output);
}

void command_add(struct engine *e, int64_t incident, const char *rule, const char *reason)
{
	struct command_job *job, **last;
	uint32_t waiting = 0;

	if (!e->cfg->stop_command && !e->capture->data_file)
		return;
	job = calloc(1, sizeof(*job));
	if (job) {
		job->incident = incident;
		job->rule = text_dup(rule, SIZE_MAX);
		job->reason = text_dup(reason, SIZE_MAX);
	}
	os_mutex_lock(e->shared.lock);
	for (last = &e->shared.command_jobs; *last; last = &(*last)->next)
		waiting++;
	if (job && job->rule && job->reason && waiting < ENGINE_PENDING_MAX) {
		*last = job;
		job = NULL;
	} else {
		log_line(e->log, LOG_WARN, "%s of incident %" PRId64 ": %s, %s",
			 e->capture->data_file ? "data file" : "stop command", incident,
			 e->capture->data_file ? "not written" : "not run",
			 waiting < ENGINE_PENDING_MAX ? "out of memory" : "too many others wait");
	}
	os_cond_signal(e->shared.wake_command);
	os_mutex_unlock(e->shared.lock);
	if (job)
		job_free(job);
}

static void do_job(struct engine *e, const struct command_job *job)
{
	struct buf path = {0};

	if (e->capture->data_file)
		write_data_file(e, job, &path);
	if (e->cfg->stop_command && atomic_load(&e->stop) != STOP_ABORT)
		run_stop_command(e, job, path.len ? buf_text(&path) : NULL);
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
