#include "engine/engine_private.h"

#include <stdlib.h>
#include <string.h>

static void source_ended(void *ctx, const struct feed_source *s)
{
	struct engine *e = ctx;

	if (s->rc)
		log_line(e->log, LOG_ERROR, "the %s source ended: %s", s->ops->name, s->err.text);
	os_cond_signal(e->wake_merge);
}

static int open_sources(struct engine *e, struct err *err)
{
	const struct source_config cfg = {
		.frames = e->frames, .processes = e->processes, .log = e->log,
		.capture = e->cfg->capture,
	};
	uint32_t i;
	int rc;

	e->feed.on_end = source_ended;
	e->feed.ctx = e;
	rc = feed_open_all(&e->feed, e->cfg->sources, &cfg, &e->cfg->needs, err);
	for (i = 0; i < e->feed.n && !e->cfg->capture.file; i++)
		queue_wakes(e->feed.sources[i].queue, e->wake_merge);
	return rc;
}

/* Without it the recorder works as well: only what is gone has no names then. */
static void open_symbol_disk(struct engine *e)
{
	const struct engine_config *cfg = e->cfg;
	struct buf path = {0};
	struct err err;
	int rc;

	if (!cfg->symbol_cache_bytes)
		return;
	buf_printf(&path, "%s%s", cfg->capture.symbol_cache ? cfg->capture.symbol_cache : cfg->store_path,
		   cfg->capture.symbol_cache ? "" : ".symbols");
	rc = buf_check(&path, "the symbol cache", &err);
	if (!rc)
		rc = symbol_disk_open(buf_text(&path), cfg->symbol_cache_bytes, &e->symbol_env.disk,
				      &err);
	if (rc && rc != ERR_UNSUPPORTED)
		log_line(e->log, LOG_WARN, "recording without a symbol cache on disk: %s", err.text);
	buf_free(&path);
}

static int open_parts(struct engine *e, struct err *err)
{
	const struct engine_config *cfg = e->cfg;
	int rc;

	e->symbol_env.path = cfg->capture.symbol_path;
	e->symbol_env.foreign = cfg->capture.file != NULL;
	e->symbol_env.lowest = cfg->capture.low_priority;
	os_host_name(e->host, sizeof(e->host));
	os_host_text(e->host_text, sizeof(e->host_text));
	e->lock = os_mutex_new();
	e->wake_writer = os_cond_new();
	e->wake_merge = os_cond_new();
	e->wake_command = os_cond_new();
	e->wake_control = os_wake_new();
	if (!e->lock || !e->wake_writer || !e->wake_merge || !e->wake_command || !e->wake_control)
		return err_memory(err, "while starting");
	rc = store_open(cfg->store_path, STORE_RECORD, &e->store, err);
	if (!rc)
		rc = engine_rules_open(e, err);
	if (!rc)
		open_symbol_disk(e);
	if (!rc)
		rc = frames_new(&e->frames, err);
	if (!rc)
		rc = processes_new(&e->processes, err);
	if (!rc)
		rc = symbols_open(e->frames, e->processes, &e->symbol_env, e->log, &e->symbols, err);
	if (!rc)
		rc = ring_new(cfg->ring_bytes, &e->ring, err);
	if (!rc)
		ring_on_evict(e->ring, engine_evicted_note, e);
	if (!rc)
		rc = segment_builder_new(e->frames, e->processes, &e->builder, err);
	if (!rc)
		rc = open_sources(e, err);
	engine_budget_open(e);
	if (!rc)
		engine_memory_open(e);
	if (!rc)
		engine_set_quota(e);
	if (!rc && !cfg->capture.file)
		segment_set_period(e->builder, STREAM_CPU, NS_PER_SEC / (cfg->capture.freq_hz ? cfg->capture.freq_hz : 1));
	return rc;
}

static void close_parts(struct engine *e)
{
	feed_close(&e->feed);
	engine_dedup_free(e);
	symbols_close(e->symbols);
	symbol_disk_close(e->symbol_env.disk);
	segment_builder_free(e->builder);
	ring_free(e->ring);
	free(e->evicted.items);
	processes_free(e->processes);
	frames_free(e->frames);
	store_close(e->store);
	os_cond_free(e->wake_writer);
	os_cond_free(e->wake_merge);
	os_cond_free(e->wake_command);
	os_wake_free(e->wake_control);
	os_mutex_free(e->lock);
	engine_rules_close(e);
	free(e->snapshot_reason);
	free(e->stop_reason);
}

/* Start all threads; on failure those that run are told to end, and are joined by the caller. */
static int start_threads(struct engine *e, struct os_thread **merge, struct err *err)
{
	int rc;

	if (e->cfg->live) {
		e->started = true;
		e->start_ns = e->now_ns = os_now_ns();
		e->next_tick_ns = e->start_ns + TICK_NS;
	}
	rc = feed_start(&e->feed, err);
	if (!rc)
		rc = os_thread_start("writer", engine_writer_main, e, &e->writer, err);
	if (!rc)
		rc = os_thread_start("merge", engine_merge_main, e, merge, err);
	if (!rc)
		return 0;
	feed_stop(&e->feed);
	os_mutex_lock(e->lock);
	e->merge_done = true;
	os_mutex_unlock(e->lock);
	return rc;
}

static int outcome(struct engine *e, struct engine_result *result, int rc, struct err *err)
{
	result->stored = e->stored;
	result->failed = e->failed;
	result->firings = e->firings;
	result->events = e->events;
	result->start_ns = e->start_ns;
	result->read_ns = e->last_ns > e->start_ns ? e->last_ns - e->start_ns : 0;
	result->interrupted = e->cfg->capture.file && atomic_load(&e->stop) >= STOP_ASKED;
	result->samples = e->samples;
	result->lost = e->lost;
	result->flooded = e->flooded_told;
	if (rc == ERR_STOPPED)
		return err_set(err, ERR_STOPPED, "aborted: the last incident was not stored");
	if (!rc)
		rc = feed_failure(&e->feed, err);
	if (!rc && e->failed)
		rc = err_set(err, ERR_IO, "%u incidents could not be stored: %s", e->failed,
			     e->store_note);
	return rc;
}

int engine_run(const struct engine_config *cfg, struct engine_result *result, struct err *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	struct os_thread *merge = NULL, *command = NULL;
	int rc;

	memset(result, 0, sizeof(*result));
	os_keep_memory_tight();
	if (!e)
		return err_memory(err, "while starting");
	e->cfg = cfg;
	e->log = cfg->log;
	e->next_end_ns = UINT64_MAX;
	rc = open_parts(e, err);
	if (!rc && cfg->ready)
		cfg->ready(cfg->ready_ctx);
	if (!rc && (cfg->stop_command || cfg->capture.data_file))
		rc = os_thread_start("command", engine_command_main, e, &command, err);
	if (!rc)
		rc = start_threads(e, &merge, err);
	if (!rc)
		rc = engine_control(e);
	feed_join(&e->feed);
	os_thread_join(merge);
	os_thread_join(e->writer);
	if (command)
		engine_command_end(e);
	os_thread_join(command);
	rc = outcome(e, result, rc, err);
	close_parts(e);
	free(e);
	return rc;
}
