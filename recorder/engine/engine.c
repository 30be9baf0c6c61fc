#include "engine/engine_private.h"

#include "base/text.h"
#include "symbol/kallsyms.h"

#include <stdlib.h>
#include <string.h>

#define PAST_WAIT_NS (10 * NS_PER_SEC)
#define OWN_QUEUE_BYTES ((size_t)512 << 10)  /* all evicted_put() rows of three firings */

void engine_stop(struct engine *e, enum engine_stop how, const char *reason)
{
	int now = atomic_load(&e->stop);

	os_mutex_lock(e->shared.lock);
	if (reason && !e->shared.stop_reason)
		e->shared.stop_reason = text_dup(reason, SIZE_MAX);
	while (now < (int)how && !atomic_compare_exchange_weak(&e->stop, &now, (int)how))
		;
	os_cond_signal(e->shared.wake_merge);
	os_mutex_unlock(e->shared.lock);
}

static int open_shared(struct engine *e, struct err *err)
{
	struct shared *s = &e->shared;

	s->lock = os_mutex_new();
	s->wake_writer = os_cond_new();
	s->wake_merge = os_cond_new();
	s->wake_command = os_cond_new();
	s->wake_reload = os_cond_new();
	e->wake_control = os_wake_new();
	s->rules = calloc(e->cfg->ntriggers + 1u, sizeof(*s->rules));
	if (!s->lock || !s->wake_writer || !s->wake_merge || !s->wake_command ||
	    !s->wake_reload || !e->wake_control || !s->rules)
		return err_memory(err, "while starting");
	return 0;
}

static void close_shared(struct engine *e)
{
	struct shared *s = &e->shared;

	os_cond_free(s->wake_writer);
	os_cond_free(s->wake_merge);
	os_cond_free(s->wake_command);
	os_cond_free(s->wake_reload);
	os_wake_free(e->wake_control);
	os_mutex_free(s->lock);
	free(s->rules);
	while (s->marks) {
		struct mark *next = s->marks->next;

		free(s->marks);
		s->marks = next;
	}
	free(s->snapshot_reason);
	free(s->stop_reason);
}

static void source_ended(void *ctx, const struct feed_source *s)
{
	struct engine *e = ctx;

	if (s->rc)
		log_line(e->log, LOG_ERROR, "the %s source ended: %s", s->ops->name, s->err.text);
	os_cond_signal(e->shared.wake_merge);
}

static int open_sources(struct engine *e, struct err *err)
{
	const struct source_config cfg = {
		.frames = e->frames, .processes = e->processes, .log = e->log,
		.kallsyms = e->symbol_env.kallsyms,
		.capture = *e->capture, .max_cpu_pct = e->cfg->budget.max_cpu_pct,
	};

	e->feed.on_end = source_ended;
	e->feed.ctx = e;
	return feed_open_all(&e->feed, e->cfg->sources, &cfg, e->cfg->needs, err);
}

/* The recorder works without it, too: then only what is gone has no names. */
static void open_symbol_disk(struct engine *e)
{
	const struct engine_config *cfg = e->cfg;
	const char *dir = e->capture->symbol_cache;
	struct buf path = {0};
	struct err err;
	int rc;

	if (!cfg->symbol_cache_bytes)
		return;
	buf_printf(&path, "%s%s", dir ? dir : cfg->store_path, dir ? "" : ".symbols");
	rc = buf_check(&path, "the symbol cache", &err);
	if (!rc)
		rc = symbol_disk_open(buf_text(&path), cfg->symbol_cache_bytes, &e->symbol_env.disk,
				      &err);
	if (rc && rc != ERR_UNSUPPORTED)
		log_line(e->log, LOG_WARN, "recording without a symbol cache on disk: %s",
			 err.text);
	buf_free(&path);
}

static int open_parts(struct engine *e, struct err *err)
{
	const struct engine_config *cfg = e->cfg;
	int rc;

	e->symbol_witness = (struct symbol_witness){.find = feed_name_late, .ctx = &e->feed};
	e->symbol_env.witness = &e->symbol_witness;
	e->symbol_env.kallsyms = kallsyms_text_new();
	e->symbol_env.path = e->capture->symbol_path;
	e->symbol_env.readers = cfg->symbol_readers;
	e->symbol_env.foreign = e->policy->foreign;
	e->symbol_env.lowest = e->capture->low_priority;
	e->symbol_env.sandboxed = cfg->sandboxed;
	os_host_name(e->host, sizeof(e->host));
	os_host_text(e->host_text, sizeof(e->host_text));
	rc = open_shared(e, err);
	if (!rc)
		rc = engine_open_store(e, err);
	if (!rc) {
		e->shared.store_bytes = store_bytes(e->writer.store);
		rc = rules_open(e, err);
	}
	if (!rc)
		open_symbol_disk(e);
	if (!rc)
		rc = frames_new(&e->frames, err);
	if (!rc)
		rc = processes_new(&e->processes, err);
	if (!rc)
		rc = symbols_open(e->frames, &e->symbol_env, e->log, &e->symbols, err);
	if (!rc)
		rc = ring_new(cfg->ring_bytes, &e->ring, err);
	if (!rc)
		ring_on_evict(e->ring, evicted_note, e);
	if (!rc)
		rc = segment_builder_new(e->frames, e->processes, &e->merge.builder, err);
	if (!rc && !(e->merge.own = queue_new(OWN_QUEUE_BYTES)))
		rc = err_memory(err, "while starting");
	if (!rc)
		rc = homes_init(&e->homes, err);
	if (!rc)
		rc = past_open(e, err);
	if (!rc)
		rc = open_sources(e, err);
	if (rc)
		return rc;
	costs_open(e);
	tables_set_quota(e);
	return 0;
}

static void close_parts(struct engine *e)
{
	feed_close(&e->feed);
	dedup_free(&e->dedup);
	symbol_disk_close(e->symbol_env.disk);
	kallsyms_text_free(e->symbol_env.kallsyms);
	segment_builder_free(e->merge.builder);
	past_close(e);
	queue_free(e->merge.own);
	os_close(e->merge.schedstat);
	ring_free(e->ring);
	free(e->merge.evicted.items);
	processes_free(e->processes);
	frames_free(e->frames);
	store_close(e->writer.store);
	rules_close(e);
	homes_free(&e->homes);
	close_shared(e);
}

/* Start all threads. After a failure those that run are told to end, and the caller joins them. */
static int start_threads(struct engine *e, struct os_thread **merge, struct err *err)
{
	struct past *history = &e->shared.pasts[PAST_HISTORY];
	int rc;

	if (e->policy->start)
		e->policy->start(e);
	rc = feed_start(&e->feed, err);
	if (!rc)
		rc = os_thread_start("writer", writer_main, e, &e->writer_thread, err);
	if (!rc && history->builder)
		rc = os_thread_start("history", past_main, history, &history->thread, err);
	if (!rc)
		rc = os_thread_start("merge", merge_main, e, merge, err);
	if (!rc)
		return 0;
	feed_stop(&e->feed);
	os_mutex_lock(e->shared.lock);
	e->shared.merge_done = history->done = true;
	os_mutex_unlock(e->shared.lock);
	return rc;
}

static int outcome(struct engine *e, struct engine_result *result, int rc, struct err *err)
{
	const struct merge *m = &e->merge;

	*result = (struct engine_result){
		.stored = e->shared.stored, .failed = e->shared.failed,
		.firings = e->rules.firings,
		.interrupted = atomic_load(&e->stop) >= STOP_ASKED,
		.ended_by_failure = e->failed,
		.samples = m->samples, .lost = m->lost, .flooded = m->flooded_reported,
		.events = m->events,
		.start_ns = m->start_ns,
		.read_ns = m->last_ns > m->start_ns ? m->last_ns - m->start_ns : 0,
	};
	if (rc == ERR_STOPPED)
		return err_set(err, ERR_STOPPED, "aborted: the last incident was not stored");
	if (!rc)
		rc = feed_failure(&e->feed, err);
	if (!rc && e->shared.failed)
		rc = err_set(err, ERR_IO, "%u incidents could not be stored: %s", e->shared.failed,
			     e->shared.store_note);
	return rc;
}

/*
 * A history that hangs does not keep a run from ending: what is not synced in this time is lost. On
 * a busy machine its low priority alone may take that long.
 */
static void join_past(struct engine *e, struct past *p)
{
	if (!p->thread)
		return;
	os_thread_hurry(p->thread);
	if (os_thread_join_within(p->thread, PAST_WAIT_NS))
		return;
	log_line(e->log, LOG_ERROR, "the history does not answer: its last seconds are lost");
	os_thread_leave(p->thread);
	e->left_behind = true;
}

/* The writer hangs. The merge thread may wait for it, and the sources for the merge thread. */
static void leave_threads(struct engine *e, struct os_thread *merge)
{
	uint32_t i;

	os_thread_leave(e->writer_thread);
	for (i = 0; i < PASTS; i++)
		if (e->shared.pasts[i].thread)
			os_thread_leave(e->shared.pasts[i].thread);
	if (!atomic_load(&e->merge_ended)) {
		os_thread_leave(merge);
		return;
	}
	feed_join(&e->feed);
	os_thread_join(merge);
}

int engine_run(const struct engine_config *cfg, struct engine_result *result, struct err *err)
{
	static const struct needs none;
	struct engine *e = calloc(1, sizeof(*e));
	struct os_thread *merge = NULL, *command = NULL;
	int rc, command_rc;

	memset(result, 0, sizeof(*result));
	os_keep_memory_tight();
	if (cfg->live)
		os_raise_file_limit();
	if (!e)
		return err_memory(err, "while starting");
	e->live = *cfg;
	e->live.needs = cfg->needs ? cfg->needs : &none;
	e->cfg = &e->live;
	e->capture = &e->live.capture;
	e->policy = cfg->capture.file ? &file_policy : cfg->live ? &live_policy : &replay_policy;
	e->log = cfg->log;
	e->merge.next_end_ns = UINT64_MAX;
	rc = open_parts(e, err);
	os_thread_priority(OS_PRIORITY_NORMAL);      /* threads and commands inherit it */
	if (!rc && cfg->ready)
		cfg->ready(cfg->ready_ctx);
	if (!rc && (cfg->stop_command || cfg->failure_command || cfg->capture.data_file))
		rc = os_thread_start("command", command_main, e, &command, err);
	if (!rc)
		rc = start_threads(e, &merge, err);
	/* It answers people on a machine without CPU, and the service manager's watchdog. */
	if (e->policy->in_background)
		os_thread_priority(OS_PRIORITY_HIGH);
	if (!rc)
		rc = engine_control(e, err);
	os_thread_priority(OS_PRIORITY_NORMAL);
	if (e->left_behind) {
		leave_threads(e, merge);
		outcome(e, result, rc, err);
		result->left_behind = true;
		return rc;                   /* such threads may come back, and use all of it */
	}
	feed_join(&e->feed);
	os_thread_join(merge);
	os_thread_join(e->writer_thread);
	join_past(e, &e->shared.pasts[PAST_HISTORY]);
	join_past(e, &e->shared.pasts[PAST_TOP]);
	command_rc = ends_with_command(e, command, rc ? NULL : err);
	rc = outcome(e, result, rc ? rc : command_rc, err);
	if (e->left_behind || feed_hangs(&e->feed) || !symbols_close(e->symbols)) {
		/* It ends soon; such a thread may still come back and touch the rest. */
		store_close(e->writer.store);
		result->left_behind = true;
		return rc;
	}
	close_parts(e);
	free(e);
	return rc;
}
