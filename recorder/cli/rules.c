/*
 * Rules on the command line: open them, check them against what the sources deliver, and say which
 * of their names match nothing.
 */
#include "cli/cmd.h"

#include "analysis/known_names.h"
#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"
#include "engine/trace.h"
#include "model/process_filter.h"
#include "source/dotnet/running.h"
#include "source/host/running.h"
#include "source/list/asked.h"
#include "ship/ship.h"
#include "source/source.h"
#include "source/stopped/process_dump.h"
#include "triggers/gc_duration.h"
#include "triggers/log_message.h"
#include "triggers/threshold.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Whether a --stop-on expression contains this word. */
static bool is_used(const struct options *o, const char *name, size_t len)
{
	const char *at;
	uint32_t i;
	size_t n;

	for (i = 0; i < o->rules.n; i++) {
		if (strcmp(o->rules.items[i].kind, "stop-on") != 0)
			continue;
		for (at = o->rules.items[i].spec; *at; at += n + (n == 0)) {
			for (n = 0; isalnum((unsigned char)at[n]) || at[n] == '_'; n++)
				;
			if (n == len && strncasecmp(at, name, n) == 0)
				return true;
		}
	}
	return false;
}

/* Rules on counters and processes name their own processes; all others use /Process. */
static bool asks_process(const struct options *o)
{
	uint32_t i;

	for (i = 0; i < o->rules.n; i++)
		if (!strstr(o->rules.items[i].kind, "perf-counter") &&
		    strcmp(o->rules.items[i].kind, "stop-on-process") != 0)
			return true;
	return false;
}

int cmd_check_stack_kb(const struct options *o, struct err *err)
{
	const uint32_t kb = o->capture.stack_kb;

	if (kb == 0 || kb == 8 || kb == 16 || kb == 32)
		return 0;
	return err_set(
		err, ERR_USAGE,
		"--stack-kb: %u is not allowed; 8, 16 or 32 KB, or 0 to follow frame pointers", kb);
}

int cmd_check_process(const struct options *o, struct err *err)
{
	struct process_filter filter;
	int rc =
		o->process ? process_filter_parse(o->process, strlen(o->process), &filter, err) : 0;

	return rc ? err_prefix(err, "--process '%.100s'", o->process) : 0;
}

void cmd_unused_rules(const struct options *o, struct buf *out)
{
	uint32_t i;

	for (i = 0; i < o->named_rules.n; i++) {
		const char *text = o->named_rules.items[i];

		if (!is_used(o, text, strcspn(text, "=")))
			buf_printf(out, "%s--rule %s", out->len ? ", " : "", text);
	}
	if (out->len)
		buf_puts(out, ": no --stop-on uses it, so it does nothing");
	if (o->process && !asks_process(o))
		buf_printf(out,
			   "%s--process limits rules on events, and there are none; "
			   "--record-process limits whose stacks are recorded",
			   out->len ? "; " : "");
}

/* Of --on-fire, which the file may have. */
static int check_kind(const char *kind, struct err *err)
{
	if (!kind || text_same_fold(kind, process_dump_kind))
		return 0;
	if (text_same_fold(kind, PROCESS_DUMP_KIND_LINUX) ||
	    text_same_fold(kind, PROCESS_DUMP_KIND_WINDOWS))
		return err_set(err, ERR_USAGE, "--on-fire %s is for the other system: here it is "
			       "--on-fire %s", kind, process_dump_kind);
	return err_set(err, ERR_USAGE, "--on-fire writes a dump of the kind %s, not '%.60s'",
		       process_dump_kind, kind);
}

int cmd_check_on_fire(const struct options *o, struct err *err)
{
	int rc = check_kind(o->capture.on_fire, err);

	return rc ? options_at_line(o, options_line(o, "on-fire"), err) : 0;
}

int cmd_rule_open(const struct options *o, const struct rule_spec *rule, struct needs *needs,
		  struct trigger **out, struct err *err)
{
	const struct trigger_ops *kind = trigger_kind(rule->kind);
	const struct trigger_env env = {
		.min_sec = o->min_sec, .decay_hours = o->decay_hours, .poll_sec = o->poll_sec,
		.already_true_fires = true, .process = o->process,
		.rules = o->named_rules.items, .nrules = o->named_rules.n,
	};
	struct trigger *t = NULL;
	int rc;

	if (!kind)
		return err_set(err, ERR_USAGE, "--%s: this program has no such trigger",
			       rule->kind);
	rc = trigger_open(kind, rule->spec, &env, &t, err);
	/* Name the option, unless the sentence begins with it. */
	if (rc == ERR_USAGE && strncmp(err->text, "--", 2) != 0)
		err_prefix(err, "--%s", rule->kind);
	if (rc)
		return options_at_line(o, rule->line, err);
	needs->assume_exists = o->assume_exists;
	needs->stacks |= t->stacks || o->capture.on_fire;
	rc = cmd_check_on_fire(o, err);
	if (rc) {
		trigger_close(t);
		return rc;
	}
	rc = kind->needs(t, needs, err);
	if (!rc && t->peers && o->command != CMD_BACKTEST)
		rc = ship_check_peers(o->ship.items, o->ship.n, t->spec, err);
	if (rc) {
		trigger_close(t);
		return options_at_line(o, rule->line, err);
	}
	*out = t;
	return 0;
}

static void doubt_pids(const struct process_filter *f, struct buf *out)
{
	unsigned i;

	for (i = 0; i < f->n; i++)
		if (f->items[i].pid && !os_process_exists(f->items[i].pid))
			buf_printf(out,
				   "%sno process has the pid %" PRIu32 " now; one may get it later",
				   out->len ? "; " : "", f->items[i].pid);
}

#define LIKE_MAX 3u
#define MEANT_MAX 4u

/* What one name of a filter means now. */
struct name_search {
	const char *wanted;
	char like[LIKE_MAX][PROCESS_LABEL_BYTES];
	unsigned nlike;
	struct buf meant;                    /* "sh [dash] (12), sh [dash] (34)": the first ones */
	unsigned nmeant;
};

struct name_searches {
	struct name_search all[PROCESS_FILTER_MAX];
	unsigned n;
};

/* pyth and python3, my-service and my-service-worker: one begins with the other. */
static bool is_like(const char *name, const char *wanted)
{
	size_t n = name ? strlen(name) : 0, m = strlen(wanted);

	return n >= 3 && m >= 3 && strncasecmp(name, wanted, n < m ? n : m) == 0;
}

static void compare_names(struct name_search *s, uint32_t pid, const struct process_names *names)
{
	char label[PROCESS_LABEL_BYTES];
	unsigned i;

	process_names_label(names, label);
	if (process_names_match(names, s->wanted)) {
		if (s->nmeant++ < MEANT_MAX) {
			buf_puts(&s->meant, s->nmeant > 1 ? ", " : "");
			utf8_put_clean(&s->meant, label, strlen(label), SIZE_MAX);
			buf_printf(&s->meant, " (%" PRIu32 ")", pid);
		}
		return;
	}
	if (!is_like(names->file, s->wanted) && !is_like(names->comm, s->wanted) &&
	    !is_like(names->called, s->wanted) && !is_like(names->script, s->wanted))
		return;
	for (i = 0; i < s->nlike && strcmp(s->like[i], label) != 0; i++)
		;
	if (i == s->nlike && i < LIKE_MAX)
		memcpy(s->like[s->nlike++], label, sizeof(label));
}

static void note_names(void *ctx, uint32_t pid, const struct process_names *names)
{
	struct name_searches *s = ctx;
	unsigned i;

	for (i = 0; i < s->n; i++)
		compare_names(&s->all[i], pid, names);
}

/* NULL = the filter has no names, or nobody knows what runs. Free with searches_free(). */
static struct name_searches *search_names(const struct process_filter *f)
{
	struct name_searches *s = calloc(1, sizeof(*s));
	unsigned i;

	for (i = 0; s && i < f->n; i++)
		if (!f->items[i].pid && !f->items[i].key)
			s->all[s->n++].wanted = f->items[i].name;
	if (s && (!s->n || !running_each(note_names, s))) {
		free(s);
		return NULL;
	}
	return s;
}

static void searches_free(struct name_searches *s)
{
	unsigned i;

	for (i = 0; s && i < s->n; i++)
		buf_free(&s->all[i].meant);
	free(s);
}

/* A process that starts later is no mistake; 'pyth' where 'python3' runs probably is. */
static void doubt_names(const struct process_filter *f, struct buf *out)
{
	struct name_searches *s = search_names(f);
	unsigned i, k;

	for (i = 0; s && i < s->n; i++) {
		const struct name_search *one = &s->all[i];

		if (one->nmeant || !one->nlike)
			continue;
		buf_printf(out, "%sno process is called '%s' now; there is ", out->len ? "; " : "",
			   one->wanted);
		for (k = 0; k < one->nlike; k++) {
			buf_puts(out, k ? ", '" : "'");
			utf8_put_clean(out, one->like[k], strlen(one->like[k]), SIZE_MAX);
			buf_putc(out, '\'');
		}
	}
	searches_free(s);
}

void cmd_put_meant(const struct process_filter *f, struct buf *out)
{
	struct name_searches *s = search_names(f);
	unsigned i;

	for (i = 0; s && i < s->n; i++) {
		const struct name_search *one = &s->all[i];

		if (!one->nmeant && one->nlike)      /* doubt_names() says it */
			continue;
		buf_puts(out, out->len ? "; " : "");
		if (one->nmeant)
			buf_printf(out, "'%s' now means %s", one->wanted, buf_text(&one->meant));
		else
			buf_printf(out, "no process is called '%s' now", one->wanted);
		if (one->nmeant > MEANT_MAX)
			buf_printf(out, " and %u more", one->nmeant - MEANT_MAX);
	}
	searches_free(s);
}

struct dotnet_search {
	const struct process_filter *processes;
	bool found;
};

static void note_dotnet(void *ctx, uint32_t pid, const struct process_names *names)
{
	struct dotnet_search *s = ctx;

	s->found |= process_filter_pass_named(s->processes, pid, names);
}

/* Only .NET reports suspension times and background collections. */
static void doubt_dotnet(const struct trigger *t, const struct process_filter *processes,
			 struct buf *out)
{
	struct dotnet_search s = {.processes = processes};

	if (t->ops != &gc_suspend_over_trigger && t->ops != &bgc_final_pause_over_trigger)
		return;
	if (dotnet_running(note_dotnet, &s) && !s.found)
		buf_printf(out,
			   "%sonly .NET programs can fire it, and %s runs now (for Java, Python "
			   "and Node.js use StopOnGCOverMsec)",
			   out->len ? "; " : "", processes->n ? "none of those it names" : "none");
}

static void doubt_off(const struct trigger *t, struct buf *out)
{
	struct trigger_status status = {.limit = NAN};

	trigger_status(t, &status);
	if (strncmp(status.text, "off:", 4) == 0)
		buf_printf(out, "%sit is %s, so it never fires, as in PerfView",
			   out->len ? "; " : "", status.text);
}

void cmd_rule_doubts(const struct trigger *t, struct buf *out)
{
	const struct trigger *part;
	struct trigger_wish wish;
	unsigned i;

	for (i = 0; t->ops->part && (part = t->ops->part(t, i)) != NULL; i++)
		cmd_rule_doubts(part, out);
	log_message_doubt(t, out);
	doubt_off(t, out);
	if (!t->ops->wish || !t->ops->wish(t, 0, &wish) || !wish.processes)
		return;
	doubt_pids(wish.processes, out);
	doubt_names(wish.processes, out);
	doubt_dotnet(t, wish.processes, out);
}

void cmd_rule_meant(const struct trigger *t, struct buf *out)
{
	const struct trigger *part;
	struct trigger_wish wish;
	unsigned i;

	for (i = 0; t->ops->part && (part = t->ops->part(t, i)) != NULL; i++)
		cmd_rule_meant(part, out);
	if (t->ops->wish && t->ops->wish(t, 0, &wish) && wish.processes)
		cmd_put_meant(wish.processes, out);
}

int cmd_check_live(const struct cmd_sources *from, const struct needs *needs, struct err *err)
{
	bool events = false, logs = false, endings = false, stacks = false;
	const struct need_event *e = asked_of_stacks(needs);
	unsigned i;
	int rc = 0;

	for (i = 0; from->all[i]; i++) {
		stacks |= from->all[i]->stacks;
		events |= from->all[i]->events;
		logs |= from->all[i]->logs;
		endings |= from->all[i]->endings;
	}
	if (needs->nproviders && !events)
		return err_set(err, ERR_UNSUPPORTED, "no source on this system delivers events of "
			       "%s, so the rule on them could never fire",
			       needs->providers[0].name);
	if (e && !stacks)
		return err_set(err, ERR_USAGE,
			       "%s%c%s comes from the source of stacks, which --source none or "
			       "--gc-collect-only leaves out: a rule on it could never fire",
			       e->provider, strchr(e->name, ':') ? ':' : '/', e->name);
	if (needs->nlogs && !logs)
		return err_set(err, ERR_UNSUPPORTED, "no source on this system delivers the log "
			       "'%s', so the rule on it could never fire", needs->logs[0].name);
	if (needs->endings && !endings)
		return err_set(err, ERR_UNSUPPORTED,
			       "no source on this system reports how processes end, so a rule on "
			       "exit codes, signals or crashes could never fire");
	for (i = 0; !rc && from->all[i]; i++) {
		if (!from->all[i]->check)
			continue;
		if (from->all[i]->looks_at_others)
			os_rights_raise();
		rc = from->all[i]->check(needs, err);
		os_rights_lower();
	}
	return rc;
}

int cmd_check_file(const char *path, const struct needs *needs, struct err *err)
{
	const char *what = needs->ncounters ? "counter" : "log";

	if (needs->ncounters || needs->nlogs)
		return err_set(err, ERR_USAGE, "the %s '%s': a trace file has no %ss; with --from "
			       "use rules on events, such as /StopOnGCOverMsec:200", what,
			       needs->ncounters ? needs->counters[0].name : needs->logs[0].name,
			       what);
	return cmd_file_there(path, err);
}

const char *const rule_count_keys[RULE_COUNTS] = {
	"seen", "matched", "fired", "held_back", "dropped_by_process", "dropped_by_filter",
	"stops_without_start", "starts_lost", "covered_by_incident",
};

void put_rule_counts(struct buf *out, const double counts[RULE_COUNTS])
{
	static const char *const words[RULE_COUNTS] = {
		"seen", "matched", "fired", "held back", "of other processes",
		"dropped by a filter", "stops without a start", "starts lost", "within an incident",
	};
	char n[NUMBER_BYTES];
	unsigned i;

	for (i = 0; i < RULE_COUNTS; i++)
		if (counts[i] > 0 || (counts[i] == 0 && i == 0))
			buf_printf(out, "%s%s %s", i ? ", " : "",
				   text_count((uint64_t)counts[i], n), words[i]);
}

void put_why_silent(struct buf *out, const struct trigger *t, uint64_t zero_ns)
{
	struct trigger_status s;
	char text[NUMBER_TEXT_BYTES];

	trigger_status(t, &s);
	buf_puts(out, s.text);
	if (s.nearest == s.nearest) {
		number_text(s.nearest, text);
		buf_printf(out, "; nearest %s%s%s", text, s.unit ? " " : "", s.unit ? s.unit : "");
		if (s.nearest_ns)
			buf_printf(out, " at %.3f s",
				   ((double)s.nearest_ns - (double)zero_ns) / 1e9);
	}
	buf_puts(out, "; ");
	put_rule_counts(out, (const double[RULE_COUNTS]){
		(double)s.counts.seen, (double)s.counts.matched, 0, 0,
		(double)s.counts.dropped_process, (double)s.counts.dropped_filter,
		(double)s.counts.orphans, (double)s.counts.lost, 0});
}

static int add_names_of_event(void *ctx, const struct event *e, const struct source_origin *origin)
{
	(void)origin;
	return known_names_add(ctx, e, NULL);
}

void cmd_find_unknown_names(const char *path, struct trigger *const *rules, uint32_t n,
			    struct buf *out)
{
	struct trace t = {.sources = file_sources(path), .path = path, .each = add_names_of_event};
	struct known_names *names = NULL;
	bool doubted = false;
	uint32_t i;

	for (i = 0; i < n; i++)
		doubted |= known_names_suspects(rules[i]);
	if (!doubted || known_names_new(&names, NULL))
		return;
	t.ctx = names;
	/* The file was readable a moment ago. */
	if (trace_read(&t, NULL) == 0)
		for (i = 0; i < n; i++)
			known_names_explain(names, rules[i], os_base_name(path), out);
	known_names_free(names);
}

int cmd_file_there(const char *path, struct err *err)
{
	struct os_file *file = NULL;
	struct os_file_info info;
	struct err why = {0};
	int rc = os_path_info(path, &info, &why);

	/* Opening a pipe would wait for ever; its reader reports what it is. */
	if (!rc && info.regular)
		rc = os_open(path, OS_READ, &file, &why);
	os_close(file);
	if (!rc)
		return 0;
	return err_set(err, rc == ERR_NOT_FOUND ? ERR_IO : (enum err_code)rc, "%s", why.text);
}
