/*
 * report: where the time of an incident went, in the terminal. Tables of processes, threads and
 * functions, call trees, callers and callees; grouped and folded by PerfView's patterns.
 */
#include "analysis/activities.h"
#include "analysis/call_tree.h"
#include "analysis/report_events.h"
#include "cli/cmd.h"
#include "listing/report_memory.h"
#include "cli/source_lines.h"
#include "listing/report_requests.h"
#include "listing/report_runtimes.h"
#include "listing/report_source.h"
#include "listing/sheet.h"

#include "base/array.h"
#include "base/os.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Narrower terminals get no WHEN column, and no course of counters. */
enum { PROCESSES_OF_HOME = 5 };
enum { INDENT_MAX = 40, WHEN_MIN_COLUMNS = 100, COURSE_MIN_COLUMNS = 112 };

struct view {
	struct sheet *sheet;
	const struct options *o;
	const struct incident *in;
	enum stream stream;
	const struct unit *unit;             /* of the stream */
	double whole;                        /* weight of all samples of the stream */
	uint64_t nsamples;
	enum home_key by;                    /* HOME_NONE = by process */
};

/* How weights are shown: what a table's columns are called, and in what they are counted. */
static const struct unit {
	const char *self_key, *self, *all_key, *all, *sort;
	double scale;
	int digits;
} units[METRIC_UNITS] = {
	[UNIT_NS] = {"self_ms", "SELF MS", "inclusive_ms", "INCL MS", " TIME", 1e6, 1},
	[UNIT_BYTES] = {"self_kb", "SELF KB", "inclusive_kb", "INCL KB", " BYTES", 1024, 1},
	[UNIT_EVENTS] = {"self", "SELF", "inclusive", "INCL", " COUNT", 1, 0},
};

/* Text from outside, made safe to print. */
static void put_clean(struct buf *out, const char *text)
{
	if (!text || !*text)
		text = "?";
	utf8_put_clean(out, text, strlen(text), 1000);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static double share(const struct view *v, double part)
{
	return v->whole > 0 ? 100 * part / v->whole : 0;
}

/* Relative to the trigger, in seconds. */
/* Whether --columns names it: 1 or 0. */
static int wants(const struct view *v, const char *column)
{
	const char *at = v->o->columns;
	size_t n;

	for (; at && *at; at += n + (at[n] == ',')) {
		n = strcspn(at, ",");
		if (n == strlen(column) && strncmp(at, column, n) == 0)
			return 1;
	}
	return 0;
}

/* kind: NULL = the heading, with name as the last column's. */
static void put_row(const struct view *v, const struct call_tree *t, const char *kind,
		    const char *name, enum code_kind code, const struct call_cost *cost,
		    uint32_t depth)
{
	int when_columns = v->sheet->columns >= WHEN_MIN_COLUMNS ? -(int)CALL_WHEN : 0;
	double window_s = (double)(v->in->head.t1_ns - v->in->head.t0_ns) / 1e9;
	char in_which[CALL_WHICH + 1];
	double self = cost->exclusive / v->unit->scale, all = cost->inclusive / v->unit->scale;
	char when[CALL_WHEN + 1];
	const struct sheet_cell cells[] = {
		{"row", .text = kind},
		{"depth", .kind = SHEET_COUNT, .n = depth},
		{"name", name, .kind = SHEET_NAME, .text = name,
		 .indent = depth < INDENT_MAX ? depth : INDENT_MAX},
		{v->unit->self_key, v->unit->self, 10, SHEET_NUMBER, .v = self,
		 .digits = v->unit->digits},
		{"self_pct", "SELF %", 8, SHEET_SHARE, .v = share(v, cost->exclusive)},
		{v->unit->all_key, v->unit->all, 11, SHEET_NUMBER, .v = all,
		 .digits = v->unit->digits},
		{"inclusive_pct", "INCL %", 8, SHEET_SHARE, .v = share(v, cost->inclusive)},
		{"self_samples", .kind = SHEET_COUNT, .n = cost->samples},
		{"first_s", "FIRST S", wants(v, "first") * 10, SHEET_NUMBER,
		 .v = incident_seconds(&v->in->head, cost->first_ns), .digits = 3},
		{"last_s", "LAST S", wants(v, "last") * 10, SHEET_NUMBER,
		 .v = incident_seconds(&v->in->head, cost->last_ns), .digits = 3},
		{"folded", "FOLDED", wants(v, "fold") * 8, SHEET_COUNT, .n = cost->folded},
		{NULL, "RATE/S", wants(v, "rate") * 11, SHEET_NUMBER,
		 .v = window_s > 0 ? all / window_s : (double)NAN, .digits = 2},
		{"code", "CODE", t->has_managed ? -11 : 0, .text = code_kind_text(code)},
		{"when", "WHEN", when_columns, .text = when},
		{t->nwhich ? "which" : NULL, "WHICH", -(int)t->nwhich, .text = in_which},
	};

	call_when_text(t, cost->columns, when);
	call_which_text(cost->columns + CALL_WHEN, t->nwhich, in_which);
	(kind ? sheet_row : sheet_heading)(v->sheet, cells, COUNT_OF(cells));
}

static void put_heading(const struct view *v, const struct call_tree *t, const char *title)
{
	put_row(v, t, NULL, title, CODE_NONE, &t->nodes[0].cost, 0);
}

static void put_node(const struct view *v, const struct call_tree *t, uint32_t node,
		     const char *kind, uint32_t depth)
{
	put_row(v, t, kind, t->nodes[node].name,
		stack_tree_code(&t->stacks, t->stacks.nodes[node].text), &t->nodes[node].cost,
		depth);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_left(const struct view *v, uint32_t n)
{
	if (n && !v->sheet->json)
		buf_printf(&v->sheet->out, "%*s  and %" PRIu32 " more; --rows shows more\n",
			   v->sheet->columns >= WHEN_MIN_COLUMNS ? (int)CALL_WHEN + 38 : 0, "", n);
}

static int put_functions(const struct view *v, struct call_tree *t, bool by_inclusive,
			 struct err *err)
{
	struct call_function *functions = NULL;
	uint32_t n = 0, i, put = 0;
	char title[40];
	int rc = call_functions(t, v->in, by_inclusive, &functions, &n, err);

	if (rc)
		return rc;
	snprintf(title, sizeof(title), "FUNCTION, BY %s%s", by_inclusive ? "INCLUSIVE" : "SELF",
		 v->unit->sort);
	put_heading(v, t, title);
	for (i = 0; i < n && put < v->o->rows; i++) {
		if (functions[i].name == t->nodes[0].name)
			continue;                    /* the root: all of it */
		put_row(v, t, "function", functions[i].name,
			stack_tree_code(&t->stacks, functions[i].text), &functions[i].cost, 0);
		put++;
	}
	put_left(v, n - i);
	free(functions);
	return 0;
}

/* Depth first, callees in order of cost; follows the links instead of recursing. */
static void put_nodes(const struct view *v, const struct call_tree *t)
{
	uint32_t node = t->nodes[0].first_child, depth = 0;

	while (node != CALL_NONE && node != 0) {
		put_node(v, t, node, "node", depth);
		if (t->nodes[node].first_child != CALL_NONE) {
			node = t->nodes[node].first_child;
			depth++;
			continue;
		}
		while (node && t->nodes[node].next == CALL_NONE) {
			node = t->nodes[node].parent;
			depth -= depth > 0;
		}
		if (node)
			node = t->nodes[node].next;
	}
}

static void put_threads(const struct view *v, const struct call_tree *t)
{
	static const char *const titles[HOME_KEYS] = {
		"PROCESS AND THREADS", "CONTAINER AND PROCESSES", "UNIT AND PROCESSES",
		"POD AND PROCESSES", "SERVICE AND PROCESSES",
	};
	bool is_set = v->in->nparts, groups = is_set || v->by;
	const char *kind = is_set ? "incident" : v->by ? home_key_text(v->by) : "process";
	uint32_t process, thread, put = 0, below;

	put_heading(v, t, is_set ? "INCIDENT AND PROCESSES" : titles[v->by]);
	for (process = t->nodes[0].first_child; process != CALL_NONE && put < v->o->rows;
	     process = t->nodes[process].next) {
		put_node(v, t, process, kind, 0);
		put++;
		/* The first group must not push the others out of the table. */
		below = groups ? PROCESSES_OF_HOME : UINT32_MAX;
		for (thread = t->nodes[process].first_child;
		     thread != CALL_NONE && put < v->o->rows && below--;
		     thread = t->nodes[thread].next) {
			put_node(v, t, thread, groups ? "process" : "thread", 1);
			put++;
		}
	}
}

static int put_counters(const struct view *v, struct err *err)
{
	int columns = v->sheet->columns >= COURSE_MIN_COLUMNS ? -(int)COUNTER_COURSE : 0;
	struct summary_counter *counters;
	char course[COUNTER_COURSE + 1];
	uint32_t n, i;
	int rc = summary_counters(v->in, &counters, &n, err);

	for (i = 0; !rc && i < n; i++) {
		const struct summary_counter *c = &counters[i];
		const struct sheet_cell cells[] = {
			{"row", .text = "counter"},
			{"counter", "COUNTER", .kind = SHEET_NAME, .text = c->name},
			{"at_trigger", "AT TRIGGER", 11, SHEET_GENERAL, .v = c->at_trigger},
			{"min", "MIN", 13, SHEET_GENERAL, .v = c->min},
			{"mean", "MEAN", 13, SHEET_GENERAL, .v = c->mean},
			{"max", "MAX", 13, SHEET_GENERAL, .v = c->max},
			{"course", "COURSE, 0 LEAST TO 9 MOST", columns, .text = course},
		};

		counter_course(v->in, c, course);
		if (!i)
			sheet_heading(v->sheet, cells, COUNT_OF(cells));
		sheet_row(v->sheet, cells, COUNT_OF(cells));
	}
	if (!rc)
		free(counters);
	return rc;
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Trees fold by themselves, tables only if it was asked for. */
static double table_fold_pct(const struct view *v)
{
	bool asked = options_origin(v->o, "fold-percent") != FROM_DEFAULT;

	return asked ? v->o->fold_percent : 0;
}

/* Functions by their own time and, of a whole report, by their inclusive time. */
static int put_name_view(const struct view *v, bool both, struct err *err)
{
	struct call_options co = {.stream = v->stream, .addresses = v->o->addresses,
				  .by_name = true, .fold_pct = table_fold_pct(v)};
	struct call_tree t;
	int rc = call_tree_new(v->in, &co, &t, err);

	if (rc)
		return rc;
	rc = put_functions(v, &t, false, err);
	if (!rc && both)
		rc = put_functions(v, &t, true, err);
	call_tree_free(&t);
	return rc;
}

/* Calls, callers or callees where they were asked for, else processes and threads. */
static int put_tree_view(const struct view *v, bool calls, struct err *err)
{
	const char *focus = v->o->callers ? v->o->callers : v->o->callees;
	struct call_options co = {.stream = v->stream, .focus = focus, .processes = !focus,
				  .fold_pct = calls ? v->o->fold_percent : 0,
				  .no_frames = !calls,
				  .callers = v->o->callers != NULL, .addresses = v->o->addresses,
				  .by = v->by};
	struct call_tree t;
	int rc = call_tree_new(v->in, &co, &t, err);

	if (rc)
		return rc;
	if (calls) {
		put_heading(v, &t, !focus ? "CALLS" : co.callers ? "CALLERS, UPWARDS" : "CALLEES");
		put_nodes(v, &t);
	} else {
		put_threads(v, &t);
	}
	call_tree_free(&t);
	return 0;
}

static void put_around_rows(const struct view *v, const struct call_tree *t, const char *kind,
			    const char *title, const struct call_function *rows, uint32_t n)
{
	uint32_t i;

	put_heading(v, t, title);
	for (i = 0; i < n && i < v->o->rows; i++)
		put_row(v, t, kind, rows[i].name, stack_tree_code(&t->stacks, rows[i].text),
			&rows[i].cost, 0);
	put_left(v, n - i);
}

/* Callers, the function, callees. */
static int put_around(const struct view *v, struct err *err)
{
	struct call_options co = {.stream = v->stream, .addresses = v->o->addresses,
				  .by_name = true, .fold_pct = table_fold_pct(v)};
	struct call_around a;
	struct call_tree t;
	int rc = call_tree_new(v->in, &co, &t, err);

	if (rc)
		return rc;
	rc = call_around(&t, v->in, v->o->caller_callee, &a, err);
	if (!rc) {
		put_around_rows(v, &t, "caller", "CALLERS", a.callers, a.ncallers);
		put_around_rows(v, &t, "function", "FUNCTION", &a.focus, 1);
		put_around_rows(v, &t, "callee", "CALLEES", a.callees, a.ncallees);
		call_around_free(&a);
	}
	call_tree_free(&t);
	return rc;
}

static int put_source(const struct view *v, struct incident *in, struct err *err)
{
	struct buf notes = {0};
	struct source_texts texts = {in, v->o->capture.symbol_path};
	const struct source_finder finder = {source_text_find, &texts};
	int rc = source_lines_add(in, texts.symbol_path, err);

	if (!rc)
		rc = report_source(v->sheet, v->o, in, v->stream, &finder, &notes, err);
	cmd_notes(&notes);
	buf_free(&notes);
	return rc;
}

static void put_remarks(struct buf *out, const char *at)
{
	size_t n;

	for (; at && *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		buf_puts(out, "Remark: ");
		utf8_put_clean(out, at, n, 1000);
		buf_putc(out, '\n');
	}
}

static void put_head(const struct view *v)
{
	const struct incident_head *h = &v->in->head;
	char time[OS_TIME_TEXT_BYTES], n[NUMBER_BYTES], title[INCIDENT_TITLE_BYTES];
	/* It follows from events, not from samples. */
	uint64_t missing = incident_missing_events(h) + h->lost_by_kind[LOSS_FLOOD];
	struct buf *out = &v->sheet->out;

	if (v->sheet->json)
		return;
	os_time_text(h->trigger_wall_ns, time);
	if (v->in->nparts) {
		put_clean(out, h->reason);
		buf_puts(out, "\nWHICH has a letter for each, in this order");
	} else {
		sheet_put(v->sheet, SHEET_HEAD, "%s", incident_title(h, title));
		buf_puts(out, ": ");
		put_clean(out, h->reason);
		buf_printf(out, "\n%s on ", time);
		put_clean(out, h->host);
	}
	buf_puts(out, "; ");
	put_span(out, h);
	if (stream_is_time(v->stream))
		buf_printf(out, "; %s samples, %.1f s %s\n",
			   text_count(v->stream == STREAM_CPU ? h->samples : v->nsamples, n),
			   v->whole / 1e9, stream_metrics[v->stream].what);
	else if (stream_is_bytes(v->stream))
		buf_printf(out, "; %.1f MB %s\n", v->whole / 1048576,
			   stream_metrics[v->stream].what);
	else
		buf_printf(out, "; %s of %s\n", text_count((uint64_t)v->whole, n), v->o->metric);
	if (v->stream >= STREAM_VM && v->stream <= STREAM_VM_PEAK && missing)
		buf_printf(out, "An estimate: %s events were too fast to be read, so calls are "
			   "missing.\n", text_count(missing, n));
	if (v->o->runtimes && missing)
		buf_printf(out, "Counts of events may be too low: %s were lost or left out; "
			   "`recorder show --losses` says which.\n", text_count(missing, n));
	put_remarks(out, h->remarks);
}

static int parse_by(const struct options *o, enum home_key *by, struct err *err)
{
	unsigned key;

	for (key = HOME_NONE + 1; o->by && key < HOME_KEYS && !*by; key++)
		if (strcmp(o->by, home_key_text(key)) == 0)
			*by = (enum home_key)key;
	if (!o->by || *by)
		return 0;
	return err_set(err, ERR_USAGE, "--by is container, unit, pod or service, not '%.40s'",
		       o->by);
}

static int no_samples(const struct options *o, const struct incident *in, struct err *err)
{
	struct buf metrics = {0};

	if (!incident_put_metrics(in, &metrics))
		buf_puts(&metrics, "none");
	err_set(err, ERR_NOT_FOUND, "this incident has no samples of the metric %s; its metrics: "
		"%s", o->metric, buf_text(&metrics));
	buf_free(&metrics);
	return ERR_NOT_FOUND;
}

static int put_report(struct sheet *sheet, const struct options *o, struct incident *in,
		      struct err *err)
{
	struct view v = {.sheet = sheet, .o = o, .in = in, .stream = cmd_stream_of(o, in)};
	bool calls = o->callers || o->callees || o->tree;
	uint32_t i;
	int rc;

	rc = parse_by(o, &v.by, err);
	if (rc)
		return rc;
	v.unit = &units[stream_metrics[v.stream].unit];
	for (i = 0; i < in->nsamples; i++) {
		if (in->samples[i].stream != v.stream)
			continue;
		v.whole += (double)in->samples[i].weight;
		v.nsamples++;
	}
	if (v.stream == STREAM_OFF_CPU && v.whole <= 0)
		return err_set(err, ERR_NOT_FOUND,
			       "this incident has no thread times; record with --thread-time");
	if (v.stream != STREAM_CPU && v.whole <= 0 && !o->memory && !o->runtimes)
		return no_samples(o, in, err);
	put_head(&v);
	if (o->memory)
		return report_memory(sheet, o, in, err);
	if (o->runtimes)
		return report_runtimes(sheet, o, in, err);
	if (o->source_of)
		return put_source(&v, in, err);
	if (o->by_name)
		return put_name_view(&v, false, err);
	if (o->caller_callee)
		return put_around(&v, err);
	rc = put_tree_view(&v, calls, err);
	if (!rc && !calls)
		rc = put_name_view(&v, true, err);
	if (!rc && !calls)
		rc = report_collections(sheet, o, in, err);
	return rc || calls ? rc : put_counters(&v, err);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check_columns(const struct options *o, struct err *err)
{
	static const char *const known[] = {"first", "last", "fold", "rate"};
	const char *at = o->columns;
	size_t n, i;

	for (; at && *at; at += n + (at[n] == ',')) {
		n = strcspn(at, ",");
		for (i = 0; i < COUNT_OF(known); i++)
			if (n == strlen(known[i]) && strncmp(at, known[i], n) == 0)
				break;
		if (i == COUNT_OF(known))
			return err_set(err, ERR_USAGE, "--columns: '%.*s' is not one of first, "
				       "last, fold, rate", (int)n, at);
	}
	return 0;
}

/* Requests are found in the whole incident: what is chosen of it may begin in the middle of one. */
static int put_requests(const struct options *o, struct err *err)
{
	struct activities a = {0};
	struct incident in = {0};
	struct sheet sheet;
	int rc = 0;

	if (cmd_several(o) || o->activities)
		return err_set(err, ERR_USAGE, "--requests takes one incident, and no "
			       "--activities");
	sheet_init(&sheet, o);
	rc = cmd_load(o, &in, err);
	if (!rc)
		rc = activities_find(&in, o->pairs.items, o->pairs.n, &a, err);
	if (!rc)
		rc = cmd_filter(o, &in, err);
	if (!rc)
		rc = activities_measure(&in, &a, err);
	if (!rc)
		rc = report_requests(&sheet, o, &in, &a, err);
	if (!rc)
		rc = sheet_print(&sheet, err);
	if (!rc)
		rc = incident_whole(&in, err);
	sheet_free(&sheet);
	activities_free(&a);
	incident_free(&in);
	return rc;
}

int cmd_report(const struct options *o, struct err *err)
{
	/* A group has no lines. */
	cmd_filter_incident *filter = o->source_of ? cmd_filter : cmd_filter_and_group;
	struct incident in = {0};
	struct sheet sheet;
	int rc, views;

	views = (o->callers != NULL) + (o->callees != NULL) + (o->caller_callee != NULL) +
		o->by_name + o->memory + o->runtimes + o->requests + (o->source_of != NULL);
	if (views + o->tree > 1)
		return err_set(err, ERR_USAGE, "--caller-callee, --callers, --callees, --tree, "
			       "--by-name, --memory, --runtimes, --requests and --source exclude "
			       "each other; give one");
	if (o->by && views)
		return err_set(err, ERR_USAGE, "--by is for processes, alone or with --tree: omit "
			       "--caller-callee, --callers, --callees, --by-name, --memory, "
			       "--runtimes, --requests and --source");
	if (o->requests)
		return put_requests(o, err);
	sheet_init(&sheet, o);
	rc = check_columns(o, err);
	if (!rc)
		rc = cmd_check_patterns(o, err);
	if (!rc && cmd_several(o))
		rc = cmd_load_several(o, filter, &in, err);
	else if (!rc)
		rc = cmd_load(o, &in, err);
	if (!rc && !cmd_several(o))
		rc = filter(o, &in, err);
	if (!rc)
		rc = put_report(&sheet, o, &in, err);
	if (!rc)
		rc = sheet_print(&sheet, err);
	if (!rc)
		rc = incident_whole(&in, err);
	sheet_free(&sheet);
	incident_free(&in);
	return rc;
}
