#include "ship/follow.h"

#include "base/json_read.h"
#include "base/os.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_NS (6 * 3600 * NS_PER_SEC)     /* a slow line takes so long */
#define AFTER_FAILURE_S 60.0
#define LOOK_S 3600.0
#define OUTPUT_MAX 65536u

struct follow {
	const struct follow_config *cfg;
	struct os_thread *thread;
	struct os_mutex *lock;
	struct os_cond *changed;
	bool news, ending;                   /* under the lock */
	struct buf status;                   /* a JSON array; under the lock */
	_Atomic bool stop;
};

/* "recorder: ..." is a message, "[..." the status. */
static void take_output(struct follow *f, const char *at, int code)
{
	static const char prefix[] = "recorder: ";
	struct json_value all;
	struct buf line = {0};
	size_t n;

	for (; *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		buf_reset(&line);
		buf_put(&line, at, n);
		if (*at == '[' && json_read(buf_text(&line), &all)) {
			os_mutex_lock(f->lock);
			buf_reset(&f->status);
			buf_put(&f->status, at, n);
			os_mutex_unlock(f->lock);
		} else if (n > sizeof(prefix)) {
			log_line(f->cfg->log, code ? LOG_WARN : LOG_INFO, "ship: %s",
				 buf_text(&line) + (strncmp(at, prefix, sizeof(prefix) - 1)
							    ? 0 : sizeof(prefix) - 1));
		}
	}
	buf_free(&line);
}

/* How long until somebody is due. Without news it looks all the same: other programs store, too. */
static double next_due_s(struct follow *f)
{
	struct json_value all, item = {0};
	double least = LOOK_S, s;

	os_mutex_lock(f->lock);
	if (json_read(buf_text(&f->status), &all))
		while ((item = json_next(all, item)).at)
			if (json_number(json_member(item, "next_s"), &s) && s < least)
				least = s;
	os_mutex_unlock(f->lock);
	return least;
}

static int put_option(char **argv, uint32_t *n, const char *name, const char *value)
{
	size_t bytes = strlen(name) + strlen(value) + 1;
	char *text = malloc(bytes);

	if (!text)
		return ERR_MEMORY;
	memcpy(text, name, strlen(name));
	strcpy(text + strlen(name), value);
	argv[(*n)++] = text;
	return 0;
}

/* returns how long to wait for the next one without news, in s */
static double make_round(struct follow *f)
{
	const struct follow_config *cfg = f->cfg;
	char **argv = calloc(cfg->ntargets + 8u, sizeof(*argv));
	struct buf output = {0};
	struct err err = {0};
	uint32_t n = 0, i;
	int code = 0, rc = argv ? 0 : ERR_MEMORY;

	if (!rc)
		rc = put_option(argv, &n, "", "/proc/self/exe");
	if (!rc)
		rc = put_option(argv, &n, "", "ship");
	if (!rc)
		rc = put_option(argv, &n, "", "--due");
	if (!rc)
		rc = put_option(argv, &n, "", "--json");
	if (!rc)
		rc = put_option(argv, &n, "--store=", cfg->store_path);
	if (!rc && cfg->conf_path)
		rc = put_option(argv, &n, "--config=", cfg->conf_path);
	for (i = 0; !rc && i < cfg->ntargets; i++)
		rc = put_option(argv, &n, "--to=", cfg->targets[i]);
	if (!rc)
		rc = os_run_into(-1, argv, ROUND_NS, &f->stop, &output, OUTPUT_MAX, &code, &err);
	if (rc && !atomic_load(&f->stop))
		log_line(f->cfg->log, LOG_WARN, "ship: %s", err.text);
	take_output(f, buf_text(&output), code);
	while (n)
		free(argv[--n]);
	free(argv);
	buf_free(&output);
	return rc || code ? AFTER_FAILURE_S : next_due_s(f);
}

static void follow_main(void *ctx)
{
	struct follow *f = ctx;
	bool ending = false;
	double wait_s = 0;

	os_rights_lower();
	os_thread_priority(OS_PRIORITY_LOWEST);
	for (;;) {
		os_mutex_lock(f->lock);
		while (!f->news && !f->ending && wait_s != 0) {
			if (!os_cond_wait(f->changed, f->lock, (uint64_t)(wait_s * 1e9)))
				break;
		}
		ending = f->ending && !f->news;
		f->news = false;
		os_mutex_unlock(f->lock);
		if (ending || atomic_load(&f->stop))
			break;
		wait_s = make_round(f);
	}
}

int follow_open(const struct follow_config *cfg, struct follow **out, struct err *err)
{
	struct follow *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return err_memory(err, "for --ship");
	f->cfg = cfg;
	f->lock = os_mutex_new();
	f->changed = os_cond_new();
	rc = f->lock && f->changed ? os_thread_start("ship", follow_main, f, &f->thread, err)
				   : err_memory(err, "for --ship");
	if (rc)
		follow_close(f);
	else
		*out = f;
	return rc;
}

void follow_stored(void *follow)
{
	struct follow *f = follow;

	os_mutex_lock(f->lock);
	f->news = true;
	os_cond_signal(f->changed);
	os_mutex_unlock(f->lock);
}

void follow_put_status(void *follow, struct json *j)
{
	struct follow *f = follow;

	json_key(j, "ship");
	os_mutex_lock(f->lock);
	buf_puts(json_value(j), f->status.len ? buf_text(&f->status) : "[]");
	os_mutex_unlock(f->lock);
}

void follow_close(struct follow *f)
{
	if (!f)
		return;
	if (f->thread) {
		os_mutex_lock(f->lock);
		f->ending = true;
		os_cond_signal(f->changed);
		os_mutex_unlock(f->lock);
		if (!os_thread_join_within(f->thread, FOLLOW_END_NS)) {
			atomic_store(&f->stop, true);
			os_thread_join(f->thread);
		}
	}
	buf_free(&f->status);
	os_cond_free(f->changed);
	os_mutex_free(f->lock);
	free(f);
}
