/* collect: validate everything, then record until it is done. */
#include "base/os.h"
#include "cli/cmd.h"
#include "engine/command_line.h"
#include "engine/data_file.h"
#include "engine/engine.h"
#include "http/server.h"
#include "http/textfile.h"
#include "analysis/known_names.h"
#include "model/memory_budget.h"
#include "source/list/heap.h"
#include "options/config.h"
#include "ship/follow.h"
#include "source/host/death.h"
#include "source/source.h"
#include "triggers/perf_counter.h"
#include "triggers/request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DAY_NS (86400 * NS_PER_SEC)
#define THREAD_TIME_COSTS 4                  /* factor for the default CPU budget */

struct collect {
	const struct options *options;       /* the last ones taken */
	const struct options *begun_with;    /* what no reload changes runs by these */
	const struct cmd_recorded *of;       /* NULL = nobody else begins and ends it */
	struct options *own;                 /* the same, after a reload; else NULL */
	struct collect *next;                /* of a reload that is under way */
	struct buf pending;                  /* what a reload left for a restart */
	struct buf store_path, dump_dir;
	struct trigger **triggers;
	uint32_t ntriggers;
	struct command_line stop_command, failure_command;
	struct cmd_sources sources;
	struct needs needs;
	struct engine_config engine;
	struct memory_share memory;
	struct heap_next *heap_next;
	char boot_id[DEATH_BOOT_BYTES], kills[DEATH_KILLS_BYTES];
};

static void collect_free(struct collect *c)
{
	uint32_t i;

	for (i = 0; i < c->ntriggers; i++)
		trigger_close(c->triggers[i]);
	free(c->triggers);
	if (c->own)
		options_free(c->own);
	free(c->own);
	command_line_free(&c->stop_command);
	command_line_free(&c->failure_command);
	buf_free(&c->store_path);
	buf_free(&c->dump_dir);
	buf_free(&c->pending);
	log_close(c->engine.log);
}

/* Together the rules' needs are not met: the line of the first one whose own are not. */
static int blame_rule(const struct collect *c, int rc, struct err *err)
{
	struct needs *needs = malloc(sizeof(*needs));        /* 100 KB: too much for a stack */
	uint32_t i;

	for (i = 0; needs && i < c->ntriggers; i++) {
		memset(needs, 0, sizeof(*needs));
		if (c->triggers[i]->ops->needs(c->triggers[i], needs, NULL) ||
		    !cmd_check_live(&c->sources, needs, NULL))
			continue;
		options_at_line(c->options, c->options->rules.items[i].line, err);
		break;
	}
	free(needs);
	return rc;
}

/*
 * What a rule about memory is judged by does not tell who took the memory. Where this system can
 * tell, its incidents do: page faults, the victims of the kernel, and its report.
 */
static void add_memory_evidence(struct collect *c, struct needs *needs)
{
	static const struct need_event victim = {.provider = "oom", .name = "mark_victim"};
	struct needs *more = malloc(sizeof(*more));
	unsigned i;

	for (i = 0; more && needs->memory && i < 2; i++) {
		memcpy(more, needs, sizeof(*more));
		if (i ? needs_log(more, "kernel", NULL)
		      : needs_provider(more, victim.provider, UINT64_MAX, 4, NULL) ||
				needs_event(more, &victim, NULL))
			continue;
		if (!cmd_check_live(&c->sources, more, NULL))
			memcpy(needs, more, sizeof(*more));
	}
	free(more);
}

static int open_rules(const struct options *o, struct collect *c, struct err *err)
{
	struct needs *needs = &c->needs;
	int rc = cmd_check_process(o, err);
	uint32_t i;

	c->engine.needs = needs;
	if (rc || (rc = cmd_check_on_fire(o, err)) != 0)
		return rc;
	c->triggers = calloc(o->rules.n + 1u, sizeof(*c->triggers));
	if (!c->triggers)
		return err_memory(err, "for the rules");
	for (i = 0; !rc && i < o->rules.n; i++) {
		rc = cmd_rule_open(o, &o->rules.items[i], needs, &c->triggers[i], err);
		if (!rc)
			c->ntriggers++;
	}
	for (i = 0; !rc && i < o->monitors.n; i++) {
		rc = counter_monitor_parse(o->monitors.items[i], needs, err);
		if (rc)
			options_at_line(o, o->monitors.lines[i], err);
	}
	if (!rc)
		rc = cmd_runtime_needs(o, needs, err);
	if (rc)
		return rc;
	/* Check before a store is created. */
	if (o->capture.file)
		return cmd_check_file(o->capture.file, needs, err);
	rc = cmd_check_live(&c->sources, needs, err);
	if (!rc)
		add_memory_evidence(c, needs);
	return rc ? blame_rule(c, rc, err) : 0;
}

/* A user who may not record must not find a new store afterwards. */
static int check_rights(const struct collect *c, struct err *err)
{
	struct source_config cfg = {.capture = c->options->capture};
	unsigned i;
	int rc = 0;

	for (i = 0; !rc && c->sources.all[i]; i++) {
		const struct source_ops *s = c->sources.all[i];

		if (s->optional || !s->probe)
			continue;
		if (s->looks_at_others)
			os_rights_raise();
		rc = s->probe(&cfg, err);
		os_rights_lower();
	}
	return rc;
}

static int open_commands(const struct options *o, struct collect *c, struct err *err)
{
	int rc = o->stop_command ? cmd_stop_command(o, &c->stop_command, err) : 0;

	if (rc)
		return options_at_line(o, options_line(o, "stop-command"), err);
	rc = cmd_on_failure(o, &c->engine.exit_on_failure, &c->failure_command, err);
	return rc ? options_at_line(o, options_line(o, "on-failure"), err) : 0;
}

static int open_log(const struct options *o, struct log **out, struct err *err)
{
	int rc = log_open(o->log_file, out, err);

	return rc ? options_at_line(o, options_line(o, "log-file"), err) : 0;
}

static const char *how_often(const struct engine_config *e)
{
	return e->rule_per_hour || e->rule_per_day || e->capture.min_interval_ns
	       ? "firings become incidents up to the given limits"
	       : "each firing becomes an incident";
}

static void announce_file(const struct collect *c)
{
	const struct engine_config *e = &c->engine;
	uint32_t i;

	log_line(e->log, LOG_INFO, "reading %s; %s, into %s", e->capture.file,
		 c->ntriggers ? how_often(e) : "all of it becomes one incident",
		 e->store_path);
	if (c->ntriggers)
		log_line(e->log, LOG_INFO, "an incident keeps %.0f s before and %.0f s after its "
			 "trigger, in trace time", (double)e->capture.pre_ns / 1e9,
			 (double)e->capture.post_ns / 1e9);
	for (i = 0; i < c->ntriggers; i++)
		log_line(e->log, LOG_INFO, "rule: %s", c->triggers[i]->spec);
}

static void announce_rule(struct log *log, const struct trigger *t)
{
	struct buf doubts = {0};
	const char *line;
	unsigned i;

	log_line(log, LOG_INFO, "rule: %s", t->spec);
	for (i = 0; (line = preset_line(t, i)) != NULL; i++)
		log_line(log, LOG_INFO, "  = %s", line);
	cmd_rule_doubts(t, &doubts);
	if (doubts.len)
		log_line(log, LOG_WARN, "%s: %s", t->spec, buf_text(&doubts));
	buf_free(&doubts);
}

static void announce_data_file(const struct collect *c)
{
	struct buf name = {0};

	if (!c->engine.capture.data_file)
		return;
	data_file_first(c->engine.capture.data_file, &name);
	log_line(c->engine.log, LOG_INFO, "each incident is also written to %s; an existing file "
		 "is kept, and the next name gets a number", buf_text(&name));
	buf_free(&name);
}

static void announce_command(const struct collect *c, const char *what,
			     const struct command_line *command)
{
	const char *program = command->nargs ? command->args[0] : NULL;

	if (program && !os_finds_program(program))
		log_line(c->engine.log, LOG_WARN, "the %s command cannot start: no executable "
			 "program '%.200s' in PATH or at that path", what, program);
}

static bool gives_stacks(const struct engine_config *e)
{
	unsigned i;

	for (i = 0; e->sources[i]; i++)
		if (e->sources[i]->stacks)
			return true;
	return false;
}

static void announce_memory(const struct collect *c)
{
	const struct options *o = c->options;
	const struct memory_share *m = &c->memory;

	if (!o->max_rss_mb || m->ring_bytes == (uint64_t)o->buffer_mb << 20)
		return;
	log_line(c->engine.log,
		 options_origin(o, "buffer-mb") == FROM_DEFAULT ? LOG_INFO : LOG_WARN,
		 "--max-rss-mb %u leaves %.1f MB for the buffer, not --buffer-mb %u", o->max_rss_mb,
		 (double)m->ring_bytes / 1048576, o->buffer_mb);
}

/* Announce the recording once everything is ready. */
static void announce(void *ctx)
{
	const struct collect *c = ctx;
	const struct options *o = c->options;
	struct log *log = c->engine.log;
	struct buf ignored = {0}, unused = {0};
	uint32_t i;

	options_no_effect(o, &ignored);
	if (ignored.len)
		log_line(log, LOG_INFO, "%s", buf_text(&ignored));
	cmd_unused_rules(o, &unused);
	if (unused.len)
		log_line(log, LOG_WARN, "%s", buf_text(&unused));
	buf_free(&ignored);
	buf_free(&unused);
	announce_data_file(c);
	announce_command(c, "stop", &c->stop_command);
	announce_command(c, "failure", &c->failure_command);
	if (o->capture.file) {
		announce_file(c);
		return;
	}
	announce_memory(c);
	for (i = 0; i < c->ntriggers; i++)
		announce_rule(log, c->triggers[i]);
	if (!c->ntriggers)
		log_line(log, LOG_INFO, "no rule was given: recording until %s%s, then storing all "
			 "of it", o->capture.root_pid ? "the program ends, " : "",
			 o->capture.max_collect_ns ? "the time is over or Ctrl-C" : "Ctrl-C");
}

/* Printed only once recording has begun; scripts wait for it. */
static void announce_recording(void *ctx)
{
	const struct collect *c = ctx;
	const struct engine_config *e = &c->engine;
	const char *only = e->capture.only_process;
	struct buf what = {0};

	if (gives_stacks(e) && e->capture.root_pid)
		buf_printf(&what, "%.200s and all that it starts at %u Hz", c->options->program[0],
			   e->capture.freq_hz);
	else if (gives_stacks(e))
		buf_printf(&what, "%s%s at %u Hz", only ? "process " : "this machine",
			   only ? only : "", e->capture.freq_hz);
	else
		buf_printf(&what, "%scounters, logs and processes, but no stacks,",
			   e->capture.gc_collect_only ? "collections, " : "");
	if (gives_stacks(e) && e->needs->memory && e->capture.memory_period)
		buf_printf(&what, ", with one page fault in %u,", e->capture.memory_period);
	buf_printf(&what, " into %.3g MB; ", (double)e->ring_bytes / 1048576);
	if (c->ntriggers)
		buf_printf(&what, "an incident keeps %.0f s before and %.0f s after its trigger",
			   (double)e->capture.pre_ns / 1e9, (double)e->capture.post_ns / 1e9);
	else
		buf_puts(&what, "the last incident keeps what fits into it");
	log_line(e->log, LOG_INFO, "recording %s, in %s", buf_text(&what), e->store_path);
	buf_free(&what);
	cmd_settle_deaths(e->store_path);
	if (c->of && c->of->begun)
		c->of->begun(c->of->ctx);
}

static bool is_over(void *ctx, struct buf *why)
{
	const struct collect *c = ctx;

	return c->of->over(c->of->ctx, why);
}

/* ---- a configuration that is read anew ------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether the options beside a rule's own text are the same for it. */
static bool same_judgement(const struct options *a, const struct options *b, const char *kind)
{
	uint32_t i = 0;

	if (memcmp(&a->min_sec, &b->min_sec, sizeof(a->min_sec)) != 0 ||
	    memcmp(&a->decay_hours, &b->decay_hours, sizeof(a->decay_hours)) != 0 ||
	    memcmp(&a->poll_sec, &b->poll_sec, sizeof(a->poll_sec)) != 0 ||
	    !same_text(a->process, b->process))
		return false;
	if (strcmp(kind, "stop-on") != 0)
		return true;
	while (i < a->named_rules.n && i < b->named_rules.n &&
	       strcmp(a->named_rules.items[i], b->named_rules.items[i]) == 0)
		i++;
	return i == a->named_rules.n && i == b->named_rules.n;
}

/* The rule that goes on as this one; c->ntriggers: none. taken: by the old rules. */
static uint32_t find_same(const struct collect *c, const struct collect *n, uint32_t rule,
			  const bool *taken)
{
	const struct rule_spec *want = &n->options->rules.items[rule];
	uint32_t i;

	for (i = 0; i < c->ntriggers; i++) {
		const struct rule_spec *have = &c->options->rules.items[i];

		if (!taken[i] && strcmp(have->kind, want->kind) == 0 &&
		    strcmp(have->spec, want->spec) == 0 &&
		    same_judgement(c->options, n->options, want->kind))
			break;
	}
	return i;
}

/* What the sources deliver was settled when they were opened. */
static bool is_delivered(const struct collect *c, const struct trigger *t, struct needs *scratch)
{
	if (t->stacks && !c->needs.stacks)
		return false;
	memcpy(scratch, &c->needs, sizeof(*scratch));
	return !t->ops->needs(t, scratch, NULL) &&
	       memcmp(scratch, &c->needs, sizeof(*scratch)) == 0;
}

/* Compared with what runs, not with the file that was read last. */
static void put_pending(const struct collect *c, const struct collect *n, const struct buf *silent,
			struct buf *out)
{
	const struct options *runs = c->begun_with;
	struct buf names = {0};

	options_needing_restart(runs, n->options, &names);
	if (runs->history_mb != n->options->history_mb &&
	    !(runs->history_mb && n->options->history_mb))
		buf_printf(&names, "%shistory-mb", names.len ? ", " : "");
	if (names.len)
		buf_printf(out, "needs a restart: %s", buf_text(&names));
	if (silent->len)
		buf_printf(out, "%sbefore a restart these rules see nothing, or only what filters "
			   "of the old ones let through: %s", names.len ? "; " : "",
			   buf_text(silent));
	buf_free(&names);
}

/*
 * Put the old trigger in place of each new one that is the same. The new ones of those are closed
 * at once; the engine goes on with the old ones.
 */
static int keep_triggers(const struct collect *c, struct collect *n, struct buf *what,
			 struct err *err)
{
	bool *taken = calloc(c->ntriggers + 1u, sizeof(*taken));
	struct needs *scratch = malloc(sizeof(*scratch));
	struct buf silent = {0};
	uint32_t i, k;

	for (i = 0; taken && scratch && i < n->ntriggers; i++) {
		struct trigger *t = n->triggers[i];

		k = find_same(c, n, i, taken);
		if (!is_delivered(c, t, scratch))
			buf_printf(&silent, "%s%s", silent.len ? ", " : "", t->spec);
		if (k == c->ntriggers)
			continue;
		taken[k] = true;
		trigger_close(t);
		n->triggers[i] = c->triggers[k];
	}
	put_pending(c, n, &silent, &n->pending);
	if (n->pending.len)
		buf_printf(what, "; %s", buf_text(&n->pending));
	n->engine.pending = buf_text(&n->pending);
	buf_free(&silent);
	i = taken && scratch;
	free(taken);
	free(scratch);
	return i ? 0 : err_memory(err, "while reading the configuration anew");
}

static bool holds(const struct collect *c, const struct trigger *t)
{
	uint32_t i;

	for (i = 0; i < c->ntriggers; i++)
		if (c->triggers[i] == t)
			return true;
	return false;
}

/* Free a configuration, but not the triggers that the other one goes on with. */
static void let_go(struct collect *c, const struct collect *other)
{
	uint32_t i;

	for (i = 0; i < c->ntriggers; i++)
		if (holds(other, c->triggers[i]))
			c->triggers[i] = NULL;
	collect_free(c);
	free(c);
}

static void configure(const struct options *o, struct collect *c, const struct cmd_recorded *of);

/* Everything that a start would refuse is refused, except what has to do with rights. */
static int read_anew(const struct collect *c, struct collect *n, struct err *err)
{
	struct options *o = n->own;
	int rc = config_again(c->options, o, err);

	n->options = o;
	n->sources = c->sources;
	if (!rc)
		rc = cmd_check_stack_kb(o, err);
	if (!rc)
		rc = cmd_memory(o, &n->memory, err);
	if (!rc)
		rc = open_rules(o, n, err);
	if (!rc)
		rc = open_commands(o, n, err);
	if (!rc)
		rc = cmd_check_data_file(o, err);
	if (rc)
		options_at_option(o, err);
	else
		configure(o, n, NULL);
	return rc;
}

static int reload(void *ctx, const struct engine_config **out, struct buf *what, struct err *err)
{
	struct collect *c = ctx, *n = calloc(1, sizeof(*n));
	int rc;

	if (n)
		n->own = calloc(1, sizeof(*n->own));
	if (!n || !n->own) {
		free(n);
		return err_memory(err, "while reading the configuration anew");
	}
	rc = read_anew(c, n, err);
	if (!rc)
		rc = keep_triggers(c, n, what, err);
	if (rc) {
		let_go(n, c);
		return rc;
	}
	c->next = n;
	*out = &n->engine;
	return 0;
}

/* After it was taken this one has the new rules and options, and the other one the old. */
static void reloaded(void *ctx, bool taken)
{
	struct collect *c = ctx, *n = c->next;
	struct trigger **old = c->triggers;
	struct options *old_own = c->own;
	struct buf old_pending = c->pending;
	uint32_t nold = c->ntriggers;

	c->next = NULL;
	if (taken) {
		c->triggers = n->triggers;
		c->ntriggers = n->ntriggers;
		c->options = c->own = n->own;
		c->pending = n->pending;
		n->pending = old_pending;
		n->triggers = old;
		n->ntriggers = nold;
		n->own = old_own;
	}
	let_go(n, c);
}

static void configure(const struct options *o, struct collect *c, const struct cmd_recorded *of)
{
	struct engine_config *e = &c->engine;
	unsigned i;

	e->store_path = buf_text(&c->store_path);
	e->store_limits = (struct store_limits){
		.max_bytes = (uint64_t)o->store_mb << 20,
		.max_age_ns = (uint64_t)o->keep_days * DAY_NS,
		.max_incidents = STORE_MAX_INCIDENTS_DEFAULT,
	};
	e->sources = o->capture.file ? file_sources(o->capture.file) : c->sources.all;
	e->live = !o->capture.file;
	e->capture = o->capture;
	for (i = 0; e->needs->memory && e->sources[i]; i++)
		if (strcmp(e->sources[i]->name, "perf") == 0 &&
		    options_origin(o, "memory-period") == FROM_DEFAULT)
			e->capture.memory_period = MEMORY_PERIOD;
	if (o->capture.on_fire) {
		buf_printf(&c->dump_dir, "%s.dumps", e->store_path);
		e->capture.dump_dir = buf_text(&c->dump_dir);
	}
	e->budget.max_cpu_pct = o->max_cpu_pct >= 0 ? o->max_cpu_pct
				: budget_default_cpu_pct(os_cpu_count(), o->capture.freq_hz) *
				  (capture_switches(&o->capture) ? THREAD_TIME_COSTS : 1);
	e->budget.max_rss_bytes = (uint64_t)o->max_rss_mb << 20;
	e->symbol_cache_bytes = (uint64_t)o->symbol_cache_mb << 20;
	e->sandboxed = true;
	e->triggers = c->triggers;
	e->ntriggers = c->ntriggers;
	e->stop_command = c->stop_command.nargs ? &c->stop_command : NULL;
	e->failure_command = c->failure_command.nargs ? &c->failure_command : NULL;
	/* A file shows all its firings by default; a live machine must not fill its own disk. */
	if (!o->capture.file || options_origin(o, "max-per-hour") != FROM_DEFAULT)
		e->rule_per_hour = o->max_per_hour;
	if (!o->capture.file || options_origin(o, "max-per-day") != FROM_DEFAULT)
		e->rule_per_day = o->max_per_day;
	e->history_bytes = o->capture.file ? 0 : (uint64_t)o->history_mb << 20;
	e->history_age_ns = (uint64_t)o->history_days * DAY_NS;
	death_boot_id(c->boot_id);
	death_kills(c->kills);
	e->boot_id = c->boot_id;
	e->kills = c->kills;
	e->history_sync_ns = (uint64_t)o->history_sync_ns;
	e->ring_bytes = (size_t)c->memory.ring_bytes;
	e->pinned_bytes = (size_t)c->memory.pinned_bytes;
	e->table_bytes = (size_t)c->memory.table_bytes;
	e->symbol_bytes = (size_t)c->memory.symbol_bytes;
	e->listen = e->signals = true;
	e->status_every_ns = ENGINE_STATUS_NS;
	e->ready = announce;
	e->begun = e->live ? announce_recording : NULL;
	e->ready_ctx = c;
	c->of = of;
	e->over = of && of->over ? is_over : NULL;
	if (!of || of->logs) {
		e->reload = o->conf_path ? reload : NULL;
		e->reloaded = reloaded;
		return;
	}
	e->signals = !of->aside;
	e->status_every_ns = 0;
	e->ready = NULL;
	e->begun = of->begun;
	e->over = of->over;
	e->ready_ctx = of->ctx;
	log_least(e->log, of->aside ? LOG_ERROR : LOG_WARN);
}

/* Log how near each rule came, so that the next limit is no guess, and where its events went. */
static void log_why_silent(const struct collect *c, const struct engine_result *result)
{
	struct buf why = {0};
	uint32_t i;

	for (i = 0; i < c->ntriggers; i++) {
		buf_reset(&why);
		put_why_silent(&why, c->triggers[i], result->start_ns);
		log_line(c->engine.log, LOG_INFO, "%s: %s", c->triggers[i]->spec, buf_text(&why));
	}
	buf_free(&why);
}

/*
 * Log the names in rules that the file lacks if it was read whole; else the rules that saw nothing.
 */
static void log_unknown_names(const struct collect *c, const struct engine_result *result)
{
	uint32_t wanted = c->engine.capture.incidents ? c->engine.capture.incidents : 1, i;
	struct buf lines = {0};
	const char *at;
	size_t n;

	for (i = 0; i < c->ntriggers && result->firings >= wanted; i++) {
		if (known_names_suspects(c->triggers[i]))
			log_line(c->engine.log, LOG_WARN,
				 "%s saw none of its events in the %.3f s that were read",
				 c->triggers[i]->spec, (double)result->read_ns / 1e9);
	}
	if (result->firings < wanted)
		cmd_find_unknown_names(c->engine.capture.file, c->triggers, c->ntriggers, &lines);
	for (at = buf_text(&lines); *at; at += n + 1) {
		n = strcspn(at, "\n");
		log_line(c->engine.log, LOG_WARN, "%.*s", (int)n, at);
	}
	buf_free(&lines);
}

/* ERR_NOT_FOUND without events or firings, ERR_IO when the file was not read whole, else 0. */
static int file_outcome(const struct collect *c, const struct engine_result *result,
			struct err *err)
{
	const char *file = c->engine.capture.file;
	char events[NUMBER_BYTES];

	text_count(result->events, events);
	if (result->interrupted)
		return err_set(err, ERR_IO, "%s was not read to its end: stopped after %.3f s of "
			       "it; %u incidents are stored", file, (double)result->read_ns / 1e9,
			       result->stored);
	if (!result->events)
		return err_set(err, ERR_NOT_FOUND, "%s holds no events", file);
	log_unknown_names(c, result);
	if (c->ntriggers && !result->stored) {
		log_why_silent(c, result);
		return err_set(err, ERR_NOT_FOUND, "no rule fired in %s (%s events, %.3f s)", file,
			       events, (double)result->read_ns / 1e9);
	}
	return 0;
}

/* Nothing without --http. */
static int answer_http(const struct collect *c, struct http_server **out, struct err *err)
{
	struct http_config cfg;

	if (!cmd_http(c->options, &cfg))
		return 0;
	cfg.store_path = c->engine.store_path;
	cfg.log = c->engine.log;
	return http_server_open(&cfg, out, err);
}

/* left_behind: set when threads may still use all that c has. */
static int record(struct collect *c, bool *left_behind, struct err *err)
{
	const char *store = cmd_named_store(c->options);
	char flooded[ENGINE_FLOODED_BYTES];
	struct http_server *http = NULL;
	struct textfile *textfile = NULL;
	struct follow_config follow_config;
	struct follow *follow = NULL;
	struct engine_result result;
	bool aside = c->of && c->of->aside;
	int rc = aside ? 0 : os_signals_open(err);

	if (!rc)
		rc = answer_http(c, &http, err);
	if (!rc && c->options->textfile)
		rc = textfile_open(c->options->textfile, c->engine.store_path, c->engine.log,
				   &textfile, err);
	if (!rc && !c->of)
		rc = cmd_follow(c->options, &c->engine, &follow_config, &follow, err);
	if (rc) {
		textfile_close(textfile);
		http_server_close(http);
		return rc;
	}
	rc = engine_run(&c->engine, &result, err);
	textfile_close(textfile);
	http_server_close(http);
	if (!result.left_behind)
		follow_close(follow);
	*left_behind = result.left_behind;
	if (!aside)
		os_signals_close();
	if (!rc && c->engine.capture.file)
		rc = file_outcome(c, &result, err);
	/* main.c prints the error, but not to a log file; nothing for an abort or a failure. */
	if (rc && !aside &&
	    (c->options->log_file || rc == ERR_STOPPED || result.ended_by_failure))
		log_line(c->engine.log, LOG_ERROR, "%s", err->text);
	if (!rc && c->engine.capture.file)
		log_line(c->engine.log, LOG_INFO,
			 "done: %" PRIu64 " events in %.3f s of the trace, %" PRIu64
			 " of them samples; %u stored; see them with `recorder list%s%s`",
			 result.events, (double)result.read_ns / 1e9, result.samples,
			 result.stored, store ? " --store " : "", store ? store : "");
	else if (!rc)
		log_line(c->engine.log, LOG_INFO,
			 "done: %" PRIu64 " samples, %" PRIu64 " lost%s, %u stored; see them with "
			 "`recorder list%s%s`", result.samples, result.lost,
			 engine_flooded_text(result.flooded, flooded), result.stored,
			 store ? " --store " : "", store ? store : "");
	return result.ended_by_failure ? CMD_FAILING : rc;
}

int cmd_collect(const struct options *o, struct err *err)
{
	bool is_set;
	int rc;

	if (o->nprogram)
		return cmd_run(o, err);
	rc = cmd_collect_set(o, &is_set, err);

	return is_set ? rc : cmd_record(o, NULL, err);
}

int cmd_record(const struct options *o, const struct cmd_recorded *of, struct err *err)
{
	struct collect *c = calloc(1, sizeof(*c));
	bool left_behind = false;
	int rc;

	if (!c)
		return err_memory(err, "while starting");
	c->options = c->begun_with = o;
	/* Recording has to begin on a machine without CPU, too; engine_run() ends this. */
	if (!o->capture.file)
		os_thread_priority(OS_PRIORITY_HIGH);
	rc = cmd_sources(o, &c->sources, err);
	if (!rc)
		rc = cmd_check_stack_kb(o, err);
	if (!rc)
		rc = cmd_memory(o, &c->memory, err);
	if (!rc)
		rc = open_rules(o, c, err);
	if (!rc)
		rc = open_commands(o, c, err);
	if (!rc)
		rc = cmd_check_data_file(o, err);
	if (!rc)
		rc = cmd_check_http(o, err);
	if (!rc)
		rc = cmd_check_ship(o, err);
	if (!rc && !o->capture.file)
		rc = check_rights(c, err);
	if (!rc)
		rc = cmd_store_path(o, STORE_RECORD, &c->store_path, err);
	if (!rc)
		rc = open_log(o, &c->engine.log, err);
	if (!rc) {
		configure(o, c, of);
		/* A process of its own begins before there are threads. */
		if (o->capture.heap_next)
			rc = heap_next_begin(o->capture.heap_next, (uint64_t)o->heap_kb * 1024,
					     &c->heap_next, err);
		else if (!of)
			heap_next_tidy(NULL, NULL);
	}
	if (!rc) {
		if (!of && !c->engine.stop_command && !c->engine.failure_command) {
			os_rights_keep_used();
			os_forbid_unused_calls();
		}
		rc = record(c, &left_behind, err);
	}
	heap_next_end(c->heap_next);
	if (left_behind) {
		log_drain(c->engine.log);
	} else {
		collect_free(c);
		free(c);
	}
	return rc;
}
