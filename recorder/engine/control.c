/*
 * The control thread, which is the caller of engine_run(): signals, the protocol of control.h, the
 * status line, and the log, whose lines the other threads only queue.
 */
#include "base/json.h"
#include "base/json_read.h"
#include "base/text.h"
#include "engine/control.h"
#include "engine/engine_private.h"
#include "triggers/pairs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OVER_NS (10 * NS_PER_MS)             /* the most that config.over() is late */
#define WAIT_NS (5 * NS_PER_SEC)             /* at most; what it acts on wakes it */
#define END_LOOK_NS NS_PER_SEC               /* while recording ends */
#define STATUS_MOST_NS (30 * 60 * NS_PER_SEC)        /* doubled once more */
#define SECOND_STOP_NS (2 * NS_PER_SEC)      /* a second Ctrl-C within this aborts */
#define SAME_STOP_NS (200 * NS_PER_MS)       /* sooner it is the same one: timeout(1) sends two */

/* ---- status --------------------------------------------------------------------------------- */

static const char *phase_text(enum trigger_phase phase)
{
	static const char *const texts[] = {
		[TRIGGER_WAITING_DATA] = "no data",
		[TRIGGER_DISARMED] = "disarmed",
		[TRIGGER_ARMED] = "armed",
		[TRIGGER_HOLDING] = "holding",
		[TRIGGER_RESTING] = "resting",
	};

	return texts[phase];
}

struct snapshot {
	struct status_view view;
	struct ring_use ring;
	char note[900];                      /* of sources, unless it is a reason of health */
	struct history_use past;
	uint64_t past_waiting, past_dropped;
	uint32_t past_flushed;
	uint64_t store_bytes;
	size_t held_bytes;
	uint32_t stored;
};

static void read_status(struct engine *e, struct snapshot *s)
{
	struct source_status status;
	size_t used;
	uint32_t i;

	ring_use(e->ring, &s->ring);
	os_mutex_lock(e->shared.lock);
	s->view = e->shared.view;
	s->store_bytes = e->shared.store_bytes;
	s->held_bytes = e->shared.held_bytes;
	s->stored = e->shared.stored + e->shared.kept;
	s->past = e->shared.pasts[PAST_HISTORY].use;
	s->past_waiting = e->shared.pasts[PAST_HISTORY].bytes;
	s->past_dropped = e->shared.pasts[PAST_HISTORY].dropped_samples;
	s->past_flushed = e->shared.pasts[PAST_HISTORY].flushed;
	os_mutex_unlock(e->shared.lock);
	s->note[0] = '\0';
	for (i = 0; i < e->feed.n; i++) {
		feed_status(&e->feed.sources[i], &status);
		used = strlen(s->note);
		if (status.note[0] && !status.degraded)
			snprintf(s->note + used, sizeof(s->note) - used, "%s%s", used ? "; " : "",
				 status.note);
	}
}

/* Seconds from a moment to the last tick; 0 when it is not known. */
static double seconds_since(const struct status_view *v, uint64_t ns)
{
	return ns && v->now_ns > ns ? (double)(v->now_ns - ns) / 1e9 : 0;
}

static void log_status(struct engine *e)
{
	char flooded[ENGINE_FLOODED_BYTES];
	struct buf rules = {0};
	struct snapshot s;
	uint32_t i;

	read_status(e, &s);
	failures_look(e);
	os_mutex_lock(e->shared.lock);
	for (i = 0; i < e->cfg->ntriggers; i++)
		buf_printf(&rules, "; %s: %s%s", e->cfg->triggers[i]->spec,
			   e->shared.rules[i].status.text, e->shared.rules[i].interval);
	os_mutex_unlock(e->shared.lock);
	log_line(e->log, LOG_INFO,
		 "%.0f s: %llu samples, %llu lost%s, %.0f s of history in %.1f of %.0f MB%s",
		 seconds_since(&s.view, s.view.start_ns), (unsigned long long)s.view.samples,
		 (unsigned long long)s.view.lost, engine_flooded_text(s.view.flooded, flooded),
		 seconds_since(&s.view, s.view.oldest_ns),
		 (double)(s.ring.bytes + s.view.open_bytes) / 1048576,
		 (double)s.ring.max_bytes / 1048576, buf_text(&rules));
	for (i = 0; i < HEALTH_KINDS; i++)
		if (e->health.reasons[i].level != HEALTH_OK)
			log_line(e->log, LOG_WARN, "%s: %s",
				 health_word(e->health.reasons[i].level),
				 e->health.reasons[i].text);
	if (s.note[0])
		log_line(e->log, LOG_WARN, "%s", s.note);
	buf_free(&rules);
}

static void put_table(struct json *j, const char *name, uint64_t used, uint64_t max)
{
	json_open(j, '{');
	json_key_str(j, "table", name);
	json_key_uint(j, "used", used);
	json_key_uint(j, "max", max);
	json_close(j, '}');
}

static void put_tables(struct engine *e, struct json *j)
{
	struct tables_use use = tables_use(e);
	struct symbols_use symbols;
	struct symbol_disk_use disk;
	uint32_t i;

	symbols_use(e->symbols, &symbols);
	json_key_open(j, "tables", '[');
	put_table(j, "frames", use.frames.frames, FRAMES_MAX);
	put_table(j, "code objects", use.frames.objects, OBJECTS_MAX);
	put_table(j, "processes", use.processes.processes, PROCESSES_MAX);
	put_table(j, "threads", use.processes.threads, THREADS_MAX);
	put_table(j, "symbol cache bytes", symbols.cache_bytes, symbols.cache_max_bytes);
	if (e->symbol_env.disk) {
		symbol_disk_use(e->symbol_env.disk, &disk);
		put_table(j, "symbol cache bytes on disk", disk.bytes, disk.max_bytes);
	}
	put_table(j, "symbol queue", symbols.queued, SYMBOL_QUEUE_MAX);
	os_mutex_lock(e->shared.lock);
	put_table(j, "pending incidents", e->shared.npending, ENGINE_PENDING_MAX);
	os_mutex_unlock(e->shared.lock);
	for (i = 0; i < e->feed.n; i++) {
		struct source_status status;
		char name[64];

		if (e->feed.sources[i].ops->set_memory) {
			feed_status(&e->feed.sources[i], &status);
			put_table(j, "unwind tables bytes", status.table_bytes,
				  status.table_max_bytes);
		}
		snprintf(name, sizeof(name), "queue bytes of %s", e->feed.sources[i].ops->name);
		put_table(j, name, queue_used_bytes(e->feed.sources[i].queue), QUEUE_BYTES);
	}
	json_close(j, ']');
}

static void put_sources(struct engine *e, struct json *j)
{
	uint32_t i;

	json_key_open(j, "sources", '[');
	for (i = 0; i < e->feed.n; i++) {
		struct source_status status;

		if (!feed_status(&e->feed.sources[i], &status))
			continue;
		json_open(j, '{');
		json_key_str(j, "name", e->feed.sources[i].ops->name);
		json_key_uint(j, "events", status.events);
		json_key_uint(j, "lost", status.lost);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_counts(struct json *j, const struct trigger_counts *c)
{
	json_key_uint(j, "seen", c->seen);
	json_key_uint(j, "matched", c->matched);
	json_key_uint(j, "dropped_by_process", c->dropped_process);
	json_key_uint(j, "dropped_by_filter", c->dropped_filter);
	json_key_uint(j, "stops_without_start", c->orphans);
	json_key_uint(j, "starts_lost", c->lost);
	json_key_uint(j, "covered_by_incident", c->covered);
}

static void put_rules(struct engine *e, struct json *j)
{
	uint32_t i;

	json_key_open(j, "rules", '[');
	os_mutex_lock(e->shared.lock);
	for (i = 0; i < e->cfg->ntriggers; i++) {
		const struct rule_view *view = &e->shared.rules[i];
		const struct trigger_status *t = &view->status;

		json_open(j, '{');
		json_key_str(j, "rule", e->cfg->triggers[i]->spec);
		json_key_str(j, "state", phase_text(t->phase));
		json_key_num(j, "value", t->value);
		json_key_num(j, "limit", t->limit);
		json_key_num(j, "nearest", t->nearest);
		if (t->nearest_ns)
			json_key_num(j, "nearest_ago_s", (double)view->nearest_ago_ns / 1e9);
		json_key_uint(j, "fired", view->fired);
		json_key_uint(j, "held_back", view->held_back);
		put_counts(j, &t->counts);
		json_key_str(j, "text", t->text);
		json_close(j, '}');
	}
	os_mutex_unlock(e->shared.lock);
	json_close(j, ']');
}

static void put_budget(struct json *j, const struct budget *b)
{
	json_key_open(j, "budget", '{');
	json_key_num(j, "cpu_pct", b->cpu_pct);
	json_key_num(j, "max_cpu_pct", b->limits.max_cpu_pct);
	json_key_uint(j, "max_rss_mb", b->limits.max_rss_bytes >> 20);
	json_key_uint(j, "freq_hz", b->levels[b->level].freq_hz);
	json_key_uint(j, "stack_kb", b->levels[b->level].stack_kb);
	json_key_uint(j, "steps_down", b->level);
	json_key_uint(j, "steps", b->nlevels ? b->nlevels - 1 : 0);
	json_close(j, '}');
}

/* Limits without a fill level; the comments name the count that grows when one is reached. */
static void put_limits(struct engine *e, struct json *j)
{
	struct symbols_use symbols;

	symbols_use(e->symbols, &symbols);
	json_key_open(j, "limits", '{');
	json_key_uint(j, "incidents_per_rule_and_hour", e->rules.per_hour);  /* held_back */
	json_key_uint(j, "incidents_per_rule_and_day", e->rules.per_day);
	json_key_uint(j, "open_starts_per_rule", PAIRS_MAX);    /* starts_lost */
	json_key_num(j, "keep_days", (double)e->cfg->store_limits.max_age_ns / 86400e9);
	json_key_uint(j, "symbol_requests_dropped", symbols.dropped);   /* by a full queue */
	json_close(j, '}');
}

static void put_health(struct engine *e, struct json *j)
{
	int i;

	failures_look(e);
	json_key_str(j, "health", health_word(e->health.level));
	json_key_open(j, "reasons", '[');
	for (i = 0; i < HEALTH_KINDS; i++) {
		if (e->health.reasons[i].level == HEALTH_OK)
			continue;
		json_open(j, '{');
		json_key_str(j, "reason", health_kind_text((enum health_kind)i));
		json_key_str(j, "health", health_word(e->health.reasons[i].level));
		json_key_str(j, "text", e->health.reasons[i].text);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void answer_status(struct engine *e, struct json *j)
{
	struct own_usage own;
	struct snapshot s;
	unsigned i;

	read_status(e, &s);
	own = costs_own(e);
	json_key_str(j, "state", atomic_load(&e->stop) == STOP_NO ? "recording" : "stopping");
	put_health(e, j);
	json_key_str(j, "note", s.note);
	json_key_str(j, "stalled", s.view.stalled);
	json_key_str(j, "pending", e->cfg->pending ? e->cfg->pending : "");
	json_key_str(j, "store", e->cfg->store_path);
	json_key_uint(j, "pid", os_pid());
	json_key_num(j, "elapsed_s", seconds_since(&s.view, s.view.start_ns));
	json_key_uint(j, "samples", s.view.samples);
	json_key_uint(j, "lost", s.view.lost);
	json_key_open(j, "lost_by_kind", '{');
	for (i = 0; i < LOSS_KINDS; i++)
		json_key_uint(j, loss_kind_text(i), s.view.lost_by_kind[i]);
	json_close(j, '}');
	json_key_uint(j, "flooded", s.view.flooded);
	json_key_uint(j, "late", s.view.late);
	json_key_num(j, "history_s", seconds_since(&s.view, s.view.oldest_ns));
	json_key_uint(j, "history_samples", s.ring.samples + s.view.open_samples);
	json_key_num(j, "bytes_per_sample", ring_bytes_per_sample(&s.ring));
	json_key_uint(j, "segments", s.ring.segments);
	json_key_uint(j, "evicted_segments", s.ring.evicted_segments);
	json_key_uint(j, "evicted_samples", s.ring.evicted_samples);
	json_key_uint(j, "incidents", s.stored);
	json_key_uint(j, "cpu_ms", own.cpu_ns / NS_PER_MS);
	json_key_uint(j, "rss_kb", own.rss_bytes / 1024);
	json_key_uint(j, "sandbox_cpu_ms", own.sandbox_cpu_ns / NS_PER_MS);
	json_key_uint(j, "sandbox_rss_kb", own.sandbox_rss_bytes / 1024);
	put_budget(j, &s.view.budget);
	json_key_uint(j, "ring_bytes", s.ring.bytes + s.view.open_bytes);
	json_key_uint(j, "ring_max_bytes", s.ring.max_bytes);
	json_key_uint(j, "held_bytes", s.held_bytes);
	json_key_uint(j, "held_max_bytes", e->cfg->pinned_bytes);
	json_key_uint(j, "store_bytes", s.store_bytes);
	json_key_uint(j, "disk_history_bytes", s.past.bytes);
	json_key_uint(j, "disk_history_max_bytes", e->cfg->history_bytes);
	json_key_uint(j, "disk_history_files", s.past.files);
	json_key_num(j, "disk_history_s", s.past.oldest_wall_ns && os_wall_ns() >
		     s.past.oldest_wall_ns
			     ? (double)(os_wall_ns() - s.past.oldest_wall_ns) / 1e9 : 0);
	json_key_uint(j, "disk_history_waiting_bytes", s.past_waiting);
	json_key_uint(j, "disk_history_lost_samples", s.past_dropped);
	json_key_uint(j, "flushed", s.past_flushed);
	json_key_uint(j, "store_max_bytes", e->cfg->store_limits.max_bytes);
	put_sources(e, j);
	put_tables(e, j);
	put_limits(e, j);
	put_rules(e, j);
	json_key_open(j, "homes", '[');
	homes_put(&e->homes, j);
	json_close(j, ']');
	if (e->cfg->put_more_status)
		e->cfg->put_more_status(e->cfg->more_ctx, j);
}

/* ---- commands ------------------------------------------------------------------------------- */

/* false: there is no room for it. */
static bool ask_snapshot(struct engine *e, const char *reason)
{
	char *copy = text_dup(reason, SIZE_MAX);
	bool room;

	if (!copy)
		return false;
	os_mutex_lock(e->shared.lock);
	room = e->shared.npending < ENGINE_PENDING_MAX;
	if (room) {
		free(e->shared.snapshot_reason);
		e->shared.snapshot_reason = copy;
		e->shared.snapshot_ns = os_now_ns();
		os_cond_signal(e->shared.wake_merge);
	} else {
		free(copy);
	}
	os_mutex_unlock(e->shared.lock);
	return room;
}

/* Read the configuration anew; the log gets what the caller is told. */
static int reload(struct engine *e, struct buf *what, struct err *err)
{
	int rc = engine_reload(e, what, err);

	if (rc)
		err_prefix(err, "not reloaded, the configuration stays as it was");
	log_line(e->log, rc ? LOG_ERROR : LOG_INFO, "%s", rc ? err->text : buf_text(what));
	return rc;
}

static void add_mark(struct engine *e, const char *text, struct json *j)
{
	struct mark *mark = calloc(1, sizeof(*mark) + strlen(text) + 1);
	struct shared *s = &e->shared;
	bool room = false;

	os_mutex_lock(s->lock);
	if (mark && s->nmarks < MARKS_MAX) {
		strcpy(mark->text, text);
		mark->time_ns = os_now_ns();
		mark->next = s->marks;
		s->marks = mark;
		s->nmarks++;
		room = true;
	}
	os_mutex_unlock(s->lock);
	if (room) {
		log_line(e->log, LOG_INFO, "mark: %s", text);
		json_key_str(j, "text", "marked");
	} else {
		free(mark);
		json_key_str(j, "error", "too many marks at once");
	}
}

static void answer_reload(struct engine *e, struct json *j)
{
	struct buf what = {0};
	struct err err = {0};

	if (reload(e, &what, &err))
		json_key_str(j, "error", err.text);
	else
		json_key_str(j, "text", buf_text(&what));
	buf_free(&what);
}

/* A moment of the wall clock as text: no number of JSON holds it exactly. */
static void put_moment(struct engine *e, struct json *j, const char *key, uint64_t time_ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, time_ns ? e->policy->wall_ns(e, time_ns) : 0);
	json_key_str(j, key, text);
}

static void answer_top(struct engine *e, const char *line, struct json *j)
{
	uint64_t until_ns = 0, now_ns = os_now_ns(), wall_ns = os_wall_ns();
	struct top_answer answer;
	struct err err = {0};
	struct buf store = {0};
	char text[24];

	if (!e->policy->by_clock) {
		json_key_str(j, "error", "what is recorded does not happen now");
		return;
	}
	if (!json_get_str(line, "until", text, sizeof(text)))
		until_ns = strtoull(text, NULL, 10);
	if (until_ns)
		until_ns = until_ns < wall_ns ? now_ns - (wall_ns - until_ns)
					      : now_ns + (until_ns - wall_ns);
	if (past_top(e, until_ns, &answer, &err)) {
		json_key_str(j, "error", err.text);
		return;
	}
	buf_printf(&store, "%s" TOP_SUFFIX, e->cfg->store_path);
	json_key_str(j, "store", buf_text(&store));
	put_moment(e, j, "from", answer.from_ns);
	put_moment(e, j, "written", answer.written_ns);
	json_key_str(j, "note", answer.note);
	buf_free(&store);
}

static void run_command(struct engine *e, const char *line, struct json *j)
{
	char cmd[32] = "", reason[400];

	if (json_get_str(line, "cmd", cmd, sizeof(cmd)) != 0) {
		json_key_str(j, "error", "a command is one JSON object on one line, such as "
				       "{\"cmd\":\"status\"}");
	} else if (strcmp(cmd, "status") == 0) {
		answer_status(e, j);
	} else if (strcmp(cmd, "snapshot") == 0) {
		if (json_get_str(line, "reason", reason, sizeof(reason)) != 0 || !reason[0])
			snprintf(reason, sizeof(reason), "requested by `recorder snapshot`");
		if (!ask_snapshot(e, reason)) {
			json_key_str(j, "error", "no snapshot: too many incidents wait for the "
						 "store; `recorder status` says why");
			return;
		}
		os_mutex_lock(e->shared.lock);
		if (e->shared.store_note[0])
			snprintf(reason, sizeof(reason), "a snapshot is taken, and stays in memory "
				 "until the store can be written: %.200s", e->shared.store_note);
		else
			snprintf(reason, sizeof(reason),
				 "a snapshot is taken: it is stored in %.0f s, "
				 "after its delay; recording continues",
				 (double)e->capture->post_ns / 1e9);
		os_mutex_unlock(e->shared.lock);
		json_key_str(j, "text", reason);
	} else if (strcmp(cmd, "stop") == 0) {
		engine_stop(e, STOP_ASKED, "stopped by `recorder stop`");
		json_key_str(j, "text", "recording ends; the last incident is being stored");
	} else if (strcmp(cmd, "mark") == 0) {
		if (json_get_str(line, "message", reason, sizeof(reason)) != 0 || !reason[0])
			json_key_str(j, "error", "a mark needs a message of at most 399 bytes");
		else
			add_mark(e, reason, j);
	} else if (strcmp(cmd, "reload") == 0) {
		answer_reload(e, j);
	} else if (strcmp(cmd, "flush") == 0) {
		json_key_uint(j, "flush",
			      e->shared.pasts[PAST_HISTORY].builder ? past_flush(e) : 0);
	} else if (strcmp(cmd, "kept") == 0) {
		os_mutex_lock(e->shared.lock);
		e->shared.kept++;
		os_mutex_unlock(e->shared.lock);
		json_key_str(j, "text", "counted");
	} else if (strcmp(cmd, "top") == 0) {
		answer_top(e, line, j);
	} else if (strcmp(cmd, "abort") == 0) {
		engine_stop(e, STOP_ABORT, "aborted by `recorder abort`");
		json_key_str(j, "text", "recording ends; nothing more is stored");
	} else {
		json_key_str(j, "error", "unknown command; there are status, snapshot, mark, "
				       "reload, flush, stop and abort");
	}
}

/* Answer one call, if there is one. *failure_logged: calls have failed since the last good one. */
static void answer_call(struct engine *e, struct os_ipc *ipc, bool *failure_logged)
{
	struct buf line = {.max_bytes = OS_IPC_MAX_BYTES + 1}, answer = {0};
	struct json j = {.out = &answer};
	struct os_ipc_call *call;
	struct err why;
	int rc;

	if (!ipc)
		return;
	rc = os_ipc_next(ipc, 0, &line, &call, &why);
	if (!rc) {
		*failure_logged = false;     /* a shortage days later is news */
		json_open(&j, '{');
		run_command(e, buf_text(&line), &j);
		json_close(&j, '}');
		os_ipc_answer(call, buf_text(&answer));
	} else if (rc != ERR_NOT_FOUND && !*failure_logged) {
		*failure_logged = true;
		log_line(e->log, LOG_WARN, "%s", why.text);
	}
	buf_free(&line);
	buf_free(&answer);
}

static void stop_or_abort(struct engine *e, uint64_t *stopped_at_ns)
{
	uint64_t now = os_now_ns();

	if (*stopped_at_ns && now - *stopped_at_ns < SAME_STOP_NS)
		return;
	if (*stopped_at_ns && now - *stopped_at_ns < SECOND_STOP_NS) {
		engine_stop(e, STOP_ABORT, NULL);
		return;
	}
	*stopped_at_ns = now;
	log_line(e->log, LOG_INFO,
		 "stopping: storing what is held; a second signal within 2 s ends without storing");
	engine_stop(e, STOP_ASKED, "stopped by Ctrl-C or a signal");
}

/* For daemons: logrotate signals this when it has moved the log away; others mean a reload. */
static void reopen_log(struct engine *e)
{
	struct err err = {0};
	struct buf what = {0};
	int rc;

	log_line(e->log, LOG_INFO, "hang-up without a terminal: recording continues");
	rc = log_reopen(e->log, &err);
	if (rc && rc != ERR_UNSUPPORTED)
		log_line(e->log, LOG_WARN, "the log stays where it was: %s", err.text);
	if (e->cfg->reload)
		reload(e, &what, &err);
	buf_free(&what);
}

/* Take all signals that have come; a snapshot goes before a stop, in whatever order they came. */
static void take_signals(struct engine *e, uint64_t *stopped_at_ns)
{
	enum os_signal signal;
	bool stop = false;

	while ((signal = os_signal_wait(0)) != OS_SIGNAL_NONE) {
		if (signal == OS_SIGNAL_STOP)
			stop = true;
		else if (signal == OS_SIGNAL_REOPEN)
			reopen_log(e);
		else if (!ask_snapshot(e, "requested by a signal"))
			log_line(e->log, LOG_ERROR,
				 "no snapshot: too many incidents wait for the store");
	}
	if (stop)
		stop_or_abort(e, stopped_at_ns);
}

/* A service manager that watches is told twice as often as it asks for. */
static uint64_t longest_wait_ns(const struct engine *e)
{
	const char *usec = e->cfg->signals ? os_env("WATCHDOG_USEC") : NULL;
	uint64_t half_ns = usec ? strtoull(usec, NULL, 10) * 500 : 0;

	if (atomic_load(&e->stop) != STOP_NO)
		return END_LOOK_NS;
	return half_ns && half_ns < WAIT_NS ? half_ns : WAIT_NS;
}

/* Until a call, a signal, a line of the log, another thread's end, or the next status line. */
static void wait_for_work(struct engine *e, struct os_ipc *ipc, uint64_t next_status_ns)
{
	uint64_t now = os_now_ns(), wait_ns = longest_wait_ns(e);

	if (e->cfg->over)
		wait_ns = OVER_NS;
	if (e->cfg->status_every_ns && next_status_ns < now + wait_ns)
		wait_ns = next_status_ns > now ? next_status_ns - now : 0;
	os_wake_wait(e->wake_control, ipc, e->cfg->signals, wait_ns);
}

/* Call begun() once; never when recording ended before. */
static void report_begun(struct engine *e, bool *reported)
{
	if (*reported || !atomic_load(&e->begun))
		return;
	*reported = true;
	if (e->cfg->signals)
		os_notify("READY=1\nSTATUS=recording");
	if (e->cfg->begun)
		e->cfg->begun(e->cfg->ready_ctx);
}

/* Stop once, when what is recorded has ended. */
static void look_for_end(struct engine *e, bool *over)
{
	struct buf why = {0};

	if (*over || !e->cfg->over || !atomic_load(&e->begun))
		return;
	*over = e->cfg->over(e->cfg->ready_ctx, &why);
	if (*over)
		engine_stop(e, STOP_ASKED, buf_text(&why));
	buf_free(&why);
}

/* The service manager's watchdog: the merge thread goes on, or the run is ending. */
static void tell_alive(struct engine *e, uint64_t *last_ns)
{
	uint64_t now_ns;

	os_mutex_lock(e->shared.lock);
	now_ns = e->shared.view.now_ns;
	os_mutex_unlock(e->shared.lock);
	if (atomic_load(&e->stop) != STOP_NO)
		os_notify("STOPPING=1\nWATCHDOG=1");
	else if (now_ns != *last_ns)
		os_notify("WATCHDOG=1");
	*last_ns = now_ns;
}

int engine_control(struct engine *e, struct err *err)
{
	struct buf path = {0};
	struct os_ipc *ipc = NULL;
	uint64_t status_every_ns = e->cfg->status_every_ns, stopped_at_ns = 0;
	uint64_t next_status_ns = os_now_ns() + status_every_ns;
	uint64_t next_look_ns = 0, alive_ns = 0;
	bool begun_reported = false, failure_logged = false, over = false;
	struct standstill store = {0};
	struct err why;
	int rc = 0;

	if (e->cfg->listen) {
		buf_printf(&path, "%s%s", e->cfg->store_path, CONTROL_SUFFIX);
		if (os_ipc_listen(buf_text(&path), &ipc, &why) != 0)
			log_line(e->log, LOG_WARN, "`recorder status`, `snapshot` and `stop` "
				 "cannot reach this recorder: %s", why.text);
	}
	log_wakes(e->log, e->wake_control);
	os_wake(e->wake_control);            /* for lines that are queued already */
	while (!rc && (!atomic_load(&e->merge_ended) || !atomic_load(&e->writer_ended))) {
		wait_for_work(e, ipc, next_status_ns);
		report_begun(e, &begun_reported);
		look_for_end(e, &over);
		answer_call(e, ipc, &failure_logged);
		if (e->cfg->signals)
			take_signals(e, &stopped_at_ns);
		if (os_now_ns() >= next_look_ns) {
			next_look_ns = os_now_ns() + NS_PER_SEC;
			failures_tell(e);
			if (e->cfg->signals)
				tell_alive(e, &alive_ns);
		}
		log_drain(e->log);
		if (status_every_ns && os_now_ns() >= next_status_ns) {
			if (!log_is_terminal(e->log) && status_every_ns < STATUS_MOST_NS)
				status_every_ns *= 2;
			next_status_ns += status_every_ns;
			log_status(e);
		}
		rc = ends_without_store(e, &store, err);
	}
	if (e->cfg->signals)
		os_notify("STOPPING=1");
	e->left_behind = rc != 0;
	log_wakes(e->log, NULL);
	os_ipc_close(ipc);
	buf_free(&path);
	os_mutex_lock(e->shared.lock);
	if (!rc && e->shared.aborted)
		rc = ERR_STOPPED;
	os_mutex_unlock(e->shared.lock);
	return rc;
}
