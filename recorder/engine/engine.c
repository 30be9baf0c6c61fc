#include "engine/engine_private.h"

#include <stdlib.h>
#include <string.h>

static void source_main(void *ctx)
{
	struct engine_source *s = ctx;

	s->rc = s->ops->run(s->source, &s->err);
	queue_finish(s->queue);
	if (s->rc)
		log_line(s->engine->log, LOG_ERROR, "the %s source ended: %s", s->ops->name, s->err.text);
	atomic_store(&s->ended, true);
	os_cond_signal(s->engine->wake_merge);
}

static int open_source(struct engine *e, const struct source_ops *ops, struct err *err)
{
	struct engine_source *s = &e->sources[e->nsources];
	struct source_config cfg = {
		.frames = e->frames, .processes = e->processes, .log = e->log,
		.capture = e->cfg->capture,
	};
	int rc;

	s->queue = queue_new(QUEUE_BYTES);
	if (!s->queue)
		return err_memory(err, "for the queue of the %s source", ops->name);
	if (!e->cfg->capture.file)
		queue_wakes(s->queue, e->wake_merge);
	cfg.queue = s->queue;
	s->ops = ops;
	s->engine = e;
	rc = ops->open(&cfg, &e->cfg->needs, &s->source, err);
	if (rc) {
		queue_free(s->queue);
		return rc;
	}
	e->nsources++;
	return 0;
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
	uint32_t i;
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
	for (i = 0; !rc && cfg->sources[i] && i < ENGINE_SOURCES_MAX; i++)
		rc = open_source(e, cfg->sources[i], err);
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
	uint32_t i;

	for (i = 0; i < e->nsources; i++) {
		e->sources[i].ops->close(e->sources[i].source);
		queue_free(e->sources[i].queue);
	}
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
	uint32_t i;
	int rc = 0;

	if (e->cfg->live) {
		e->started = true;
		e->start_ns = e->now_ns = os_now_ns();
		e->next_tick_ns = e->start_ns + TICK_NS;
	}
	for (i = 0; !rc && i < e->nsources; i++)
		rc = os_thread_start(e->sources[i].ops->name, source_main, &e->sources[i],
				     &e->sources[i].thread, err);
	if (!rc)
		rc = os_thread_start("writer", engine_writer_main, e, &e->writer, err);
	if (!rc)
		rc = os_thread_start("merge", engine_merge_main, e, merge, err);
	if (!rc)
		return 0;
	for (i = 0; i < e->nsources; i++)
		e->sources[i].ops->stop(e->sources[i].source);
	os_mutex_lock(e->lock);
	e->merge_done = true;
	os_mutex_unlock(e->lock);
	return rc;
}

static int outcome(struct engine *e, struct engine_result *result, int rc, struct err *err)
{
	uint32_t i;

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
	for (i = 0; !rc && i < e->nsources; i++) {
		if (e->sources[i].rc) {
			rc = e->sources[i].rc;
			if (err)
				*err = e->sources[i].err;
		}
	}
	if (!rc && e->failed)
		rc = err_set(err, ERR_IO, "%u incidents could not be stored: %s", e->failed,
			     e->store_note);
	return rc;
}

int engine_run(const struct engine_config *cfg, struct engine_result *result, struct err *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	struct os_thread *merge = NULL, *command = NULL;
	uint32_t i;
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
	for (i = 0; i < e->nsources; i++)
		os_thread_join(e->sources[i].thread);
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
