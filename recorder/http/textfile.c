#include "http/textfile.h"

#include "base/os.h"
#include "base/text.h"
#include "engine/control.h"
#include "http/metrics.h"

#include <stdlib.h>
#include <string.h>

#define EVERY_NS (15 * NS_PER_SEC)
#define FIRST_NS NS_PER_SEC                  /* until there is one */
#define ANSWER_WAIT_NS (5 * NS_PER_SEC)

struct textfile {
	const char *path;
	struct buf temporary, control;       /* paths */
	struct log *log;
	struct os_thread *thread;
	struct os_mutex *lock;
	struct os_cond *changed;
	bool stop;
	bool failed;                         /* the log has it */
};

int textfile_check(const char *path, struct err *err)
{
	return text_ends_fold(path, ".prom") ? 0
	       : err_set(err, ERR_USAGE, "--textfile %.300s: node_exporter reads only names that "
			 "end in .prom", path);
}

/* Always a new file, never through a link: the folder may be others'. */
static int write_file(const struct textfile *t, const struct buf *text, struct err *err)
{
	struct os_file *file = NULL;
	int rc;

	os_remove(t->temporary.data, NULL);          /* what a killed recorder left */
	rc = os_open(t->temporary.data, OS_CREATE, &file, err);
	if (rc)
		return rc;
	rc = os_write(file, text->data, text->len, err);
	os_file_show(file);
	os_close(file);
	if (!rc)
		rc = os_rename(t->temporary.data, t->path, err);
	if (rc)
		os_remove(t->temporary.data, NULL);
	return rc;
}

/* false: the recorder has not answered yet. */
static bool write_metrics(struct textfile *t)
{
	struct buf answer = {.max_bytes = OS_IPC_MAX_BYTES + 1}, text = {0};
	struct json_value status;
	struct err err = {0};
	int rc = os_ipc_ask(t->control.data, "{\"cmd\":\"status\"}", ANSWER_WAIT_NS, &answer, &err);
	bool answered = !rc && json_read(buf_text(&answer), &status);

	if (answered) {
		metrics_put(status, false, &text);
		metrics_end(false, &text);
		rc = buf_check(&text, "the metrics", &err);
		if (!rc)
			rc = write_file(t, &text, &err);
		if (rc && !t->failed)
			log_line(t->log, LOG_WARN, "the metrics are not written: %s", err.text);
		t->failed = rc != 0;
	}
	buf_free(&text);
	buf_free(&answer);
	return answered;
}

static void textfile_main(void *ctx)
{
	struct textfile *t = ctx;
	bool answered, stop = false;

	os_rights_lower();
	os_thread_priority(OS_PRIORITY_LOW);
	while (!stop) {
		answered = write_metrics(t);
		os_mutex_lock(t->lock);
		if (!t->stop)
			os_cond_wait(t->changed, t->lock, answered ? EVERY_NS : FIRST_NS);
		stop = t->stop;
		os_mutex_unlock(t->lock);
	}
	os_remove(t->path, NULL);
}

int textfile_open(const char *path, const char *store_path, struct log *log, struct textfile **out,
		  struct err *err)
{
	struct textfile *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_memory(err, "for --textfile");
	t->path = path;
	t->log = log;
	t->lock = os_mutex_new();
	t->changed = os_cond_new();
	buf_printf(&t->temporary, "%s.tmp", path);
	buf_printf(&t->control, "%s%s", store_path, CONTROL_SUFFIX);
	rc = t->lock && t->changed && !t->temporary.failed && !t->control.failed
		     ? os_thread_start("textfile", textfile_main, t, &t->thread, err)
		     : err_memory(err, "for --textfile");
	if (rc)
		textfile_close(t);
	else
		*out = t;
	return rc;
}

void textfile_close(struct textfile *t)
{
	if (!t)
		return;
	if (t->thread) {
		os_mutex_lock(t->lock);
		t->stop = true;
		os_cond_broadcast(t->changed);
		os_mutex_unlock(t->lock);
	}
	os_thread_join(t->thread);
	buf_free(&t->temporary);
	buf_free(&t->control);
	os_cond_free(t->changed);
	os_mutex_free(t->lock);
	free(t);
}
