/*
 * check: what collect would do with these options on this machine, without recording.
 *
 * Prints settings, store, rules with their counters' values now, what each live source lacks, and
 * which running processes will have incomplete stacks.
 * The line parser has refused unknown options and bad numbers already; what can still be
 * wrong is a rule (its grammar, or a name that no source knows), a monitored counter, the stop
 * command, the data file, or --stack-kb.
 */
#include "cli/check_stacks.h"
#include "cli/cmd.h"
#include "listing/sheet.h"
#include "engine/command_line.h"
#include "engine/data_file.h"
#include "model/memory_budget.h"
#include "engine/plan.h"

#include "base/fit.h"
#include "base/os.h"
#include "base/utf8.h"
#include "model/process_filter.h"
#include "source/list/asked.h"
#include "source/source.h"
#include "triggers/perf_counter.h"
#include "triggers/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check {
	const struct options *o;
	struct cmd_sources sources;
	struct sheet sheet;
	unsigned wrong;                      /* settings: rules, monitors, command, file, ... */
	struct err first_wrong;              /* repeated at the end */
	bool cannot_record;                  /* a source is refused to this user */
	bool no_store;                       /* the store cannot be used */
};

/* One finding: what was looked at, whether it is good, a sentence about it. */
struct finding {
	const char *what;                    /* "rule", "monitor", "store", "source" */
	const char *name;                    /* the spec, path or source */
	const char *verdict;                 /* "ok", "wrong", "missing", "note" */
	const char *text;
	const struct counter_value *value;   /* NULL = none */
	double limit;                        /* NaN = none */
	uint32_t line;                       /* of the conf file that says so; 0 = none */
};

static void put_value(struct buf *out, const struct counter_value *v)
{
	if (v->absent || v->unread) {
		buf_puts(out, v->absent ? "the instance does not exist now"
					: "its value is known only while recording");
		return;
	}
	buf_printf(out, fabs(v->value) >= 100 ? "now %.0f" : "now %.4g", v->value);
	buf_printf(out, "%s%s", *v->unit ? " " : "", v->unit);
	if (*v->meant) {
		buf_puts(out, ", of ");
		utf8_put_clean(out, v->meant, strlen(v->meant), SIZE_MAX);
	}
}

static void put_finding(struct check *c, const struct finding *f)
{
	struct sheet *p = &c->sheet;
	struct buf value = {0};

	if (f->value)
		put_value(&value, f->value);
	sheet_finding(p, f->what, f->verdict, f->name, f->value ? buf_text(&value) : NULL, f->text);
	if (p->json && f->value) {
		json_key_num(&p->j, "value", f->value->absent ? NAN : f->value->value);
		json_key_bool(&p->j, "absent", f->value->absent);
		json_key_str(&p->j, "unit", f->value->unit);
	}
	if (p->json && f->limit == f->limit)
		json_key_num(&p->j, "limit", f->limit);
	sheet_close(p);
	buf_free(&value);
}

/* A finding that makes check fail when rc says so; *why is its text then. */
static void put_verdict(struct check *c, struct finding *f, int rc, struct err *why)
{
	struct err *first = c->wrong ? NULL : &c->first_wrong;

	if (rc) {
		c->wrong++;
		f->verdict = "wrong";
		f->text = why->text;
		f->value = NULL;
		if (first)
			*first = *why;
		if (first && !strstr(why->text, f->name))
			err_prefix(first, "'%.100s'", f->name);
		if (first)
			options_at_line(c->o, f->line, first);
		options_at_line(c->o, f->line, why);
	}
	put_finding(c, f);
}

/* ---- settings -------------------------------------------------------------------------------- */

static const char *origin_text(enum option_origin origin)
{
	return origin == FROM_ARGS ? "command line" : origin == FROM_CONF ? "conf file" : "default";
}

static bool setting_text(const struct options *o, const struct option_info *info, struct buf *out)
{
	const void *at = (const char *)o + info->offset;
	char text[40];

	switch (info->type) {
	case OPTION_INT:
		option_number_text(*(const uint32_t *)at, text, sizeof(text));
		break;
	case OPTION_FLOAT:
		if (*(const double *)at < info->min)
			return false;        /* not given, and the default depends on the machine */
		option_number_text(*(const double *)at, text, sizeof(text));
		break;
	case OPTION_SECONDS:
		option_number_text((double)*(const int64_t *)at / 1e9, text, sizeof(text));
		break;
	case OPTION_BOOL:
		buf_puts(out, *(const bool *)at ? "true" : "false");
		return true;
	case OPTION_TEXT:
		buf_puts(out, *(char *const *)at ? *(char *const *)at : "");
		return true;
	default:
		return false;
	}
	buf_puts(out, text);
	return true;
}

/* The settings that were not left at their defaults; --json has them all. */
static void check_settings(struct check *c)
{
	const struct option_info *info;
	struct buf text = {0};
	struct err why = {0};
	int rc;

	for (info = option_table; info->name; info++) {
		enum option_origin origin = options_origin(c->o, info->name);

		buf_reset(&text);
		if (!info->conf || info->same_as || (!c->o->json && origin == FROM_DEFAULT) ||
		    !setting_text(c->o, info, &text))
			continue;
		buf_printf(&text, "%s%s, %s", info->unit ? " " : "", info->unit ? info->unit : "",
			   origin_text(origin));
		rc = strcmp(info->name, "stack-kb") == 0 ? cmd_check_stack_kb(c->o, &why) : 0;
		put_verdict(c, &(struct finding){"setting", info->name, "ok", buf_text(&text), NULL,
						 NAN, options_line(c->o, info->name)},
			    rc, &why);
	}
	buf_free(&text);
}

/* ---- the store ------------------------------------------------------------------------------- */

static int check_store(struct check *c, struct err *err)
{
	struct finding f = {"store", NULL, "ok", NULL, NULL, NAN, 0};
	struct store *store = NULL;
	struct buf path = {0};
	char text[80], size[NUMBER_BYTES];
	struct err why = {0};
	int rc = cmd_store_path(c->o, STORE_RECORD, &path, err), opened;

	if (!rc) {
		f.name = buf_text(&path);
		opened = store_open(f.name, STORE_READ, &store, &why);
		if (opened == ERR_NOT_FOUND) {
			f.text = "does not exist yet; collect creates it";
		} else if (opened) {
			f.verdict = "wrong";
			f.text = why.text;
			c->no_store = true;
		} else {
			snprintf(text, sizeof(text), "%s in use",
				 text_bytes(store_bytes(store), size));
			f.text = text;
		}
		put_finding(c, &f);
	}
	store_close(store);
	buf_free(&path);
	return rc;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static int check_counters(const struct check *c, struct needs *needs, struct counter_value *value,
			  struct err *err)
{
	int rc = cmd_check_live(&c->sources, needs, err);

	/* A rule usually has one counter; of several, the first is shown. */
	if (!rc && needs->ncounters)
		rc = counter_read_once(needs->counters[0].name, value, err);
	return rc;
}

/* What a preset stands for. */
static void put_presets(const struct trigger *t, struct buf *out)
{
	const char *line;
	unsigned i;

	for (i = 0; (line = preset_line(t, i)) != NULL; i++)
		buf_printf(out, "%s%s", i ? " or " : "= ", line);
}

/* A missing log may appear later, or its name is wrong. */
static void put_missing_logs(const struct needs *needs, struct buf *out)
{
	uint32_t i;

	for (i = 0; i < needs->nlogs; i++)
		if (needs->logs[i].name[0] == '/' && !os_exists(needs->logs[i].name))
			buf_printf(out, "%sthe log %s does not exist yet; waiting for it",
				   out->len ? "; " : "", needs->logs[i].name);
}

static void check_rule(struct check *c, const struct rule_spec *rule, struct needs *needs)
{
	struct finding f = {"rule", rule->spec, "ok", NULL, NULL, NAN, 0};
	struct counter_value value = {.absent = true};
	struct trigger_status status = {.limit = NAN};
	struct trigger *t = NULL;
	struct buf text = {0}, doubts = {0}, meant = {0};
	struct err why = {0};
	int rc;

	memset(needs, 0, sizeof(*needs));
	rc = cmd_rule_open(c->o, rule, needs, &t, &why);
	if (rc) {
		put_verdict(c, &f, rc, &why);
		return;
	}
	f.line = rule->line;
	trigger_status(t, &status);
	rc = check_counters(c, needs, &value, &why);
	put_presets(t, &text);
	put_missing_logs(needs, &text);
	cmd_rule_doubts(t, &doubts);
	cmd_rule_meant(t, &meant);
	if ((needs->nlogs && text.len) || doubts.len || (needs->ncounters && value.absent))
		f.verdict = "note";
	buf_printf(&text, "%s%s", text.len && doubts.len ? "; " : "", buf_text(&doubts));
	buf_printf(&text, "%s%s", text.len && meant.len ? "; " : "", buf_text(&meant));
	f.name = t->spec;
	f.text = buf_text(&text);
	f.limit = status.limit;
	f.value = needs->ncounters ? &value : NULL;
	put_verdict(c, &f, rc, &why);
	trigger_close(t);
	buf_free(&text);
	buf_free(&doubts);
	buf_free(&meant);
}

/* Whose stacks are recorded. */
static void check_record_process(struct check *c)
{
	struct finding f = {"process", c->o->capture.only_process, "ok", NULL, NULL, NAN, 0};
	struct process_filter filter;
	struct buf text = {0};

	if (f.name && !process_filter_parse(f.name, strlen(f.name), &filter, NULL)) {
		cmd_put_meant(&filter, &text);
		f.text = buf_text(&text);
		put_finding(c, &f);
	}
	buf_free(&text);
}

static void check_monitor(struct check *c, const char *spec, uint32_t line,
			  struct needs *needs)
{
	struct counter_value value = {.absent = true};
	struct finding f = {"monitor", spec, "ok", NULL, &value, NAN, line};
	struct err why = {0};
	int rc;

	memset(needs, 0, sizeof(*needs));
	rc = counter_monitor_parse(spec, needs, &why);
	if (!rc)
		rc = check_counters(c, needs, &value, &why);
	put_verdict(c, &f, rc, &why);
}

/* What is recorded besides: --providers and its like. */
static void check_asked(struct check *c, struct needs *needs)
{
	const struct capture *asked = &c->o->capture;
	const char *what = asked->providers	 ? asked->providers
			   : asked->only_providers ? asked->only_providers
			   : asked->events	   ? asked->events
			   : asked->cpu_counters   ? asked->cpu_counters
			   : asked->kernel_events  ? asked->kernel_events
			   : asked->clr_events	   ? asked->clr_events
			   : asked->tpl_events	   ? asked->tpl_events
						   : asked->clr_event_level;
	struct finding f = {"events", what, "ok", NULL, NULL, NAN, 0};
	struct buf unknown = {0};
	struct err why = {0};
	int rc;

	if (!what || asked->file)
		return;
	memset(needs, 0, sizeof(*needs));
	rc = cmd_runtime_needs(c->o, needs, &why);
	if (!rc)
		rc = cmd_check_live(&c->sources, needs, &why);
	if (!rc && asked_unknown(needs, &unknown)) {
		f.verdict = "note";
		f.text = buf_text(&unknown);
	}
	put_verdict(c, &f, rc, &why);
	buf_free(&unknown);
}

static int check_rules(struct check *c, struct err *err)
{
	struct needs *needs = malloc(sizeof(*needs));        /* 100 KB: too much for a stack */
	uint32_t i;

	if (!needs)
		return err_memory(err, "while checking the rules");
	for (i = 0; i < c->o->rules.n; i++)
		check_rule(c, &c->o->rules.items[i], needs);
	for (i = 0; i < c->o->monitors.n; i++)
		check_monitor(c, c->o->monitors.items[i], c->o->monitors.lines[i], needs);
	check_asked(c, needs);
	if (!c->o->rules.n)
		put_finding(c, &(struct finding){
			"rule", "none", "note",
			"collect would record until it is stopped, then write one incident", NULL,
			NAN, 0});
	check_record_process(c);
	free(needs);
	return 0;
}

/* ---- privileges ------------------------------------------------------------------------------ */

/* Parts of a source that may be missing while the rest works. */
static void check_parts(struct check *c, const struct source_ops *source)
{
	struct source_part part = {0};
	unsigned i;

	for (i = 0; source->part; i++, part.name = NULL) {
		struct err why = {0};
		int rc = source->part(i, &part, &why);
		struct finding f = {"source", part.name, "ok", part.summary, NULL, NAN, 0};

		if (!part.name)
			return;
		if (rc && capture_switches(&c->o->capture) && !strcmp(part.name, "tracepoints")) {
			err_prefix(&why, "%s needs it (%s)",
				   c->o->capture.thread_time ? "--thread-time" : "--wakers",
				   part.summary);
			f.verdict = "missing";
			c->cannot_record = true;
		} else if (rc) {
			err_prefix(&why, "not available (%s)", part.summary);
			f.verdict = "note";
		}
		f.text = rc ? why.text : part.summary;
		put_finding(c, &f);
	}
}

static void check_sources(struct check *c)
{
	struct source_config cfg = {.capture = c->o->capture};
	unsigned i;

	for (i = 0; c->sources.all[i]; i++) {
		const struct source_ops *s = c->sources.all[i];
		struct finding f = {"source", s->name, "ok", s->summary, NULL, NAN, 0};
		struct err why = {0};

		if (s->looks_at_others)
			os_rights_raise();
		if (s->probe && s->probe(&cfg, &why)) {
			err_prefix(&why, s->optional ? "not available (%s)"
						     : "without it nothing is recorded (%s)",
				   s->summary);
			f.verdict = s->optional ? "note" : "missing";
			f.text = why.text;
			c->cannot_record |= !s->optional;
		}
		put_finding(c, &f);
		check_parts(c, s);
		os_rights_lower();
	}
	if (!i)
		put_finding(c, &(struct finding){
			"source", "none", "missing",
			"this program has no live source on this system; incidents recorded "
			"elsewhere can be listed, shown and exported", NULL, NAN, 0});
}

#define PLAN_NS (10 * NS_PER_SEC)

/* Whether the history reaches as far back as an incident. */
static bool reaches(const struct check *c, const struct plan *plan)
{
	return plan->history_s * 1e9 >= (double)c->o->capture.pre_ns;
}

static void put_plan(struct check *c, const struct plan *plan, const char *text)
{
	struct sheet *p = &c->sheet;

	sheet_finding(p, "plan", plan->history_s <= 0 || reaches(c, plan) ? "ok" : "note",
		     "buffer-mb", NULL, text);
	if (p->json) {
		json_key_num(&p->j, "history_s",
			     plan->history_s > 0 ? plan->history_s : (double)NAN);
		json_key_str(&p->j, "history_ends_by", plan->by_processes ? "processes" : "buffer");
		json_key_num(&p->j, "new_processes_per_s", plan->new_processes_s);
		json_key_uint(&p->j, "history_samples", plan->held_samples);
		json_key_num(&p->j, "samples_per_s", plan->samples_per_s);
		json_key_num(&p->j, "bytes_per_sample", plan->bytes_per_sample);
		json_key_uint(&p->j, "memory_bytes", plan->memory_bytes);
	}
	sheet_close(p);
}

static void plan_text(const struct check *c, const struct plan *plan, double ring_mb, char *text,
		      size_t n)
{
	char a[NUMBER_BYTES], b[NUMBER_BYTES], most[NUMBER_BYTES];
	const char *more = "--pre-sec asks for more";

	if (!(plan->history_s > 0))
		snprintf(text, n, "no sample arrived in %.0f s, so there is nothing to measure: "
			 "try again under load", plan->measured_s);
	else if (plan->by_processes)
		snprintf(text, n,
			 "the history will reach back %s at the load of the last %.0f s: %.1f new "
			 "processes per second fill the process table (%s entries) before the "
			 "buffer; %.3g MB would hold %s: %s",
			 text_seconds(plan->history_s, a), plan->measured_s, plan->new_processes_s,
			 text_count(PROCESSES_MAX, most), ring_mb, text_seconds(plan->ring_s, b),
			 reaches(c, plan) ? "a smaller buffer is enough" : more);
	else
		snprintf(text, n,
			 "%.3g MB will hold %s at the load of the last %.0f s (%.0f samples per "
			 "second of %.1f bytes each); the recorder will use %s of memory%s%s",
			 ring_mb, text_seconds(plan->history_s, a), plan->measured_s,
			 plan->samples_per_s, plan->bytes_per_sample,
			 text_bytes(plan->memory_bytes, b), reaches(c, plan) ? "" : ": ",
			 reaches(c, plan) ? "" : more);
}

/* The rules' counters take room too, so they are read during the measurement. */
static int plan_needs(const struct options *o, struct needs *needs, struct err *err)
{
	struct trigger *t;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < o->rules.n; i++) {
		t = NULL;
		rc = cmd_rule_open(o, &o->rules.items[i], needs, &t, err);
		if (t)
			trigger_close(t);
	}
	for (i = 0; !rc && i < o->monitors.n; i++)
		rc = counter_monitor_parse(o->monitors.items[i], needs, err);
	return rc ? rc : cmd_runtime_needs(o, needs, err);
}

/* Predict how far back the ring will reach, from ten seconds of the current load. */
static int check_plan(struct check *c, struct err *err)
{
	struct plan_config cfg = {
		.sources = c->sources.all,
		.measure_ns = PLAN_NS,
		.source = {.capture = c->o->capture},
	};
	struct needs *needs = calloc(1, sizeof(*needs));
	char text[400];
	struct memory_share memory;
	struct plan plan;
	int rc = cmd_memory(c->o, &memory, err);

	if (rc)
		return rc;
	cfg.ring_bytes = (size_t)memory.ring_bytes;
	cfg.keeps_ns = c->o->capture.pre_ns + c->o->capture.post_ns;
	if (!needs)
		return err_memory(err, "for the plan");
	cfg.needs = needs;
	rc = plan_needs(c->o, needs, err);
	if (!rc)
		rc = log_open(NULL, &cfg.source.log, err);
	if (!rc)
		rc = plan_measure(&cfg, &plan, err);
	log_close(cfg.source.log);
	free(needs);
	if (rc)
		return rc;
	plan_text(c, &plan, (double)cfg.ring_bytes / 1048576, text, sizeof(text));
	put_plan(c, &plan, text);
	return 0;
}

static void check_data_file(struct check *c)
{
	struct finding f = {"file", c->o->capture.data_file, "ok", NULL, NULL, NAN,
			    options_line(c->o, "data-file")};
	struct buf name = {0};
	struct err err = {0};

	if (!c->o->capture.data_file)
		return;
	data_file_first(c->o->capture.data_file, &name);
	f.text = buf_text(&name);
	put_verdict(c, &f, cmd_check_data_file(c->o, &err), &err);
	buf_free(&name);
}

static void check_http(struct check *c)
{
	struct finding f = {"http", c->o->http ? c->o->http : c->o->textfile, "ok",
			    "metrics are there once it records", NULL, NAN, 0};
	struct err err = {0};

	if (f.name)
		put_verdict(c, &f, cmd_check_http(c->o, &err), &err);
}

static void check_ship(struct check *c)
{
	struct finding f = {"ship", c->o->ship.n ? "targets" : NULL, "ok",
			    "incidents are sent once it records", NULL, NAN, 0};
	struct err err = {0};

	if (f.name)
		put_verdict(c, &f, cmd_check_ship(c->o, &err), &err);
}

static void check_command(struct check *c, const char *option, const char *value)
{
	struct finding f = {"command", value, "ok", NULL, NULL, NAN, options_line(c->o, option)};
	struct command_line line = {0};
	struct err why = {0};
	bool exits;
	int rc;

	if (!value)
		return;
	rc = strcmp(option, "on-failure") == 0 ? cmd_on_failure(c->o, &exits, &line, &why)
					       : cmd_stop_command(c->o, &line, &why);
	if (!rc && line.nargs && !os_finds_program(line.args[0]))
		rc = err_set(&why, ERR_NOT_FOUND,
			     "no executable program '%.200s' in PATH or at that path",
			     line.args[0]);
	put_verdict(c, &f, rc, &why);
	command_line_free(&line);
}

/* PerfView's options that do nothing here: said once, so that nobody relies on them. */
static void remark_no_effect(const struct options *o)
{
	struct buf text = {0};

	options_no_effect(o, &text);
	if (text.len)
		cmd_note("%s", buf_text(&text));
	buf_reset(&text);
	cmd_unused_rules(o, &text);
	if (text.len)
		cmd_note("%s", buf_text(&text));
	buf_free(&text);
}

int cmd_check(const struct options *o, struct err *err)
{
	struct check c = {.o = o};
	struct memory_share memory;          /* validated only */
	int rc = cmd_sources(o, &c.sources, err);

	if (rc)
		return rc;
	rc = cmd_memory(o, &memory, err);
	if (!rc)
		rc = cmd_check_process(o, err);
	if (rc)
		return rc;
	sheet_init(&c.sheet, o);
	c.sheet.columns = FIT_ALL;            /* findings are for grep, too */
	remark_no_effect(o);
	check_settings(&c);
	check_data_file(&c);
	check_http(&c);
	check_ship(&c);
	check_command(&c, "stop-command", o->stop_command);
	check_command(&c, "on-failure", o->on_failure);
	rc = check_store(&c, err);
	if (!rc)
		rc = check_rules(&c, err);
	if (!rc) {
		check_sources(&c);
		check_stacks(o, &c.sheet);
		if (o->plan && !c.wrong && !c.cannot_record)
			rc = check_plan(&c, err);
	}
	if (!rc)
		rc = sheet_print(&c.sheet, err);
	if (!rc && c.wrong)
		rc = err_set(
			err, ERR_USAGE,
			"%u %s wrong%s: %s", c.wrong, c.wrong == 1 ? "setting is" : "settings are",
			c.wrong == 1 ? "" : "; the first", c.first_wrong.text);
	else if (!rc && c.no_store)
		rc = err_set(err, ERR_IO, "unusable store: see above");
	else if (!rc && c.cannot_record)
		rc = err_set(err, ERR_ACCESS, "collect would not start: a source is missing");
	sheet_free(&c.sheet);
	return rc;
}
