/*
 * report: where the time of an incident went, in the terminal. Tables of processes, threads and
 * functions, call trees, callers and callees; grouped and folded by PerfView's patterns.
 */
#include "analysis/call_tree.h"
#include "cli/cmd.h"
#include "analysis/report_events.h"

#include "base/fit.h"
#include "base/json.h"
#include "base/os.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Narrower terminals get no WHEN column. */
enum { INDENT_MAX = 40, WHEN_MIN_COLUMNS = 100 };

struct view {
	const struct options *o;
	const struct incident *in;
	struct buf *out;
	enum stream stream;                  /* cpu or off-cpu: both in ns */
	double whole;                        /* weight of all samples */
	size_t columns;                      /* of the terminal */
};

/* ---- rows ------------------------------------------------------------------------------------ */

static double share(const struct view *v, uint64_t part)
{
	return v->whole > 0 ? 100 * (double)part / v->whole : 0;
}

/* Relative to the trigger, in seconds. */
static double seconds_at(const struct view *v, uint64_t time_ns)
{
	return ((double)time_ns - (double)v->in->head.trigger_ns) / 1e9;
}

static void put_heading(const struct view *v, const char *title)
{
	if (v->o->json)
		return;
	buf_printf(v->out, "\n%10s %7s %10s %7s  ", "SELF MS", "SELF %", "INCL MS", "INCL %");
	if (v->columns >= WHEN_MIN_COLUMNS)
		buf_printf(v->out, "%-*s  ", (int)CALL_WHEN, "WHEN");
	fit_last(v->out, title, 0, v->columns);
	buf_putc(v->out, '\n');
}

struct row {
	const char *kind, *name;
	uint32_t depth;
	const struct call_cost *cost;
};

static void put_json_row(const struct view *v, const struct call_tree *t, const struct row *r)
{
	struct json j = {.out = v->out};
	char when[CALL_WHEN + 1];

	call_when_text(t, r->cost->when, when);
	json_open(&j, '{');
	json_key_str(&j, "row", r->kind);
	json_key_uint(&j, "depth", r->depth);
	json_key_str(&j, "name", r->name);
	json_key_num(&j, "self_ms", (double)r->cost->exclusive / 1e6);
	json_key_num(&j, "self_pct", share(v, r->cost->exclusive));
	json_key_num(&j, "inclusive_ms", (double)r->cost->inclusive / 1e6);
	json_key_num(&j, "inclusive_pct", share(v, r->cost->inclusive));
	json_key_uint(&j, "self_samples", r->cost->samples);
	json_key_num(&j, "first_s", seconds_at(v, r->cost->first_ns));
	json_key_num(&j, "last_s", seconds_at(v, r->cost->last_ns));
	json_key_uint(&j, "folded", r->cost->folded);
	json_key_str(&j, "when", when);
	json_close(&j, '}');
	buf_putc(v->out, '\n');
}

static void put_row(const struct view *v, const struct call_tree *t, const struct row *r)
{
	char when[CALL_WHEN + 1];

	if (v->o->json) {
		put_json_row(v, t, r);
		return;
	}
	call_when_text(t, r->cost->when, when);
	buf_printf(v->out, "%10.1f %5.1f %% %10.1f %5.1f %%  ", (double)r->cost->exclusive / 1e6,
		   share(v, r->cost->exclusive), (double)r->cost->inclusive / 1e6,
		   share(v, r->cost->inclusive));
	if (v->columns >= WHEN_MIN_COLUMNS)
		buf_printf(v->out, "%s  ", when);
	fit_last(v->out, r->name, r->depth < INDENT_MAX ? r->depth : INDENT_MAX, v->columns);
	buf_putc(v->out, '\n');
}

static struct row row_of(const struct call_tree *t, uint32_t node, const char *kind, uint32_t depth)
{
	const struct call_node *n = &t->nodes[node];

	return (struct row){kind, n->name, depth, &n->cost};
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int put_functions(const struct view *v, const struct call_tree *t, bool by_inclusive,
			 struct err *err)
{
	struct call_function *functions = NULL;
	uint32_t n = 0, i, put = 0;
	int rc = call_functions(t, by_inclusive, &functions, &n, err);

	if (rc)
		return rc;
	put_heading(v, by_inclusive ? "FUNCTION, BY INCLUSIVE TIME" : "FUNCTION, BY SELF TIME");
	for (i = 0; i < n && put < v->o->rows; i++) {
		struct row r = {"function", functions[i].name, 0, &functions[i].cost};

		if (r.name == t->nodes[0].name)
			continue;                    /* the root: all of it */
		put_row(v, t, &r);
		put++;
	}
	if (i < n && !v->o->json)
		buf_printf(v->out, "%*s  and %" PRIu32 " more; --rows shows more\n",
			   v->columns >= WHEN_MIN_COLUMNS ? (int)CALL_WHEN + 38 : 0, "", n - i);
	free(functions);
	return 0;
}

/* Depth first, callees in order of cost; follows the links instead of recursing. */
static void put_nodes(const struct view *v, const struct call_tree *t)
{
	uint32_t node = t->nodes[0].first_child, depth = 0;

	while (node != CALL_NONE && node != 0) {
		struct row r = row_of(t, node, "node", depth);

		put_row(v, t, &r);
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
	uint32_t process, thread, put = 0;

	put_heading(v, "PROCESS AND THREADS");
	for (process = t->nodes[0].first_child; process != CALL_NONE && put < v->o->rows;
	     process = t->nodes[process].next) {
		struct row r = row_of(t, process, "process", 0);

		put_row(v, t, &r);
		put++;
		for (thread = t->nodes[process].first_child;
		     thread != CALL_NONE && put < v->o->rows; thread = t->nodes[thread].next) {
			r = row_of(t, thread, "thread", 1);
			put_row(v, t, &r);
			put++;
		}
	}
}

/* ---- views ----------------------------------------------------------------------------------- */

static int put_tree_view(const struct view *v, const char *focus, bool callers, struct err *err)
{
	struct call_options co = {.stream = v->stream,
				  .fold_pct = v->o->fold_percent,
				  .focus = focus,
				  .callers = callers,
				  .processes = !focus,
				  .addresses = v->o->addresses};
	struct call_tree t;
	int rc = call_tree_new(v->in, &co, &t, err);

	if (rc)
		return rc;
	put_heading(v, !focus ? "CALLS" : callers ? "CALLERS, UPWARDS" : "CALLEES");
	put_nodes(v, &t);
	call_tree_free(&t);
	return 0;
}

static int put_name_view(const struct view *v, bool both, struct err *err)
{
	struct call_options co = {.stream = v->stream, .addresses = v->o->addresses};
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

static int put_whole(const struct view *v, struct err *err)
{
	struct call_options co = {.stream = v->stream, .processes = true,
				  .addresses = v->o->addresses};
	struct call_tree t;
	int rc = call_tree_new(v->in, &co, &t, err);

	if (rc)
		return rc;
	put_threads(v, &t);
	call_tree_free(&t);
	rc = put_name_view(v, true, err);
	if (!rc)
		rc = report_collections(v->in, v->o->json, v->o->rows, v->out, err);
	if (!rc)
		rc = report_counters(v->in, v->o->json, v->out, err);
	return rc;
}

/* Put text from outside in a form that is safe on a terminal. */
static void put_clean(struct buf *out, const char *text)
{
	if (!text || !*text)
		text = "?";
	utf8_put_clean(out, text, strlen(text), 1000);
}

static void put_head(const struct view *v)
{
	const struct incident_head *h = &v->in->head;
	char time[OS_TIME_TEXT_BYTES], n[CMD_NUMBER_BYTES];

	if (v->o->json)
		return;
	os_time_text(h->trigger_wall_ns, time);
	buf_printf(v->out, "Incident %" PRId64 ": ", h->id);
	put_clean(v->out, h->reason);
	buf_printf(v->out, "\n%s on ", time);
	put_clean(v->out, h->host);
	buf_puts(v->out, "; ");
	put_span(v->out, h);
	buf_printf(v->out, "; %s samples, %.1f s of %s\n", text_count(h->samples, n),
		   v->whole / 1e9, v->stream == STREAM_CPU ? "CPU time" : "thread time");
}

static int put_report(const struct options *o, const struct incident *in, struct buf *out,
		      struct err *err)
{
	struct view v = {.o = o, .in = in, .out = out, .columns = fit_columns()};
	uint32_t i;
	int rc = cmd_stream(o, &v.stream, err);

	if (!rc && v.stream != STREAM_CPU && v.stream != STREAM_OFF_CPU)
		rc = err_set(err, ERR_USAGE,
			     "--metric %s: report shows time only; use cpu or off-cpu", o->metric);
	if (rc)
		return rc;
	for (i = 0; i < in->nsamples; i++) {
		if (in->samples[i].stream == v.stream)
			v.whole += (double)in->samples[i].weight;
	}
	if (v.stream == STREAM_OFF_CPU && v.whole <= 0)
		return err_set(err, ERR_NOT_FOUND,
			       "this incident has no thread times; record with --thread-time");
	put_head(&v);
	if (o->callers)
		return put_tree_view(&v, o->callers, true, err);
	if (o->callees)
		return put_tree_view(&v, o->callees, false, err);
	if (o->tree)
		return put_tree_view(&v, NULL, false, err);
	if (o->by_name)
		return put_name_view(&v, false, err);
	return put_whole(&v, err);
}

/* ---- the command ----------------------------------------------------------------------------- */

int cmd_report(const struct options *o, struct err *err)
{
	struct incident in = {0};
	struct buf out = {0};
	int rc;

	if ((o->callers != NULL) + (o->callees != NULL) + o->tree + o->by_name > 1)
		return err_set(
			err, ERR_USAGE,
			"--callers, --callees, --tree and --by-name exclude each other; give one");
	rc = cmd_check_patterns(o, err);
	if (!rc)
		rc = cmd_load(o, &in, err);
	if (!rc)
		rc = cmd_narrow(o, &in, err);
	if (!rc)
		rc = put_report(o, &in, &out, err);
	if (!rc)
		rc = cmd_print_fitted(o, &out, err);
	if (!rc)
		rc = incident_whole(&in, err);
	buf_free(&out);
	incident_free(&in);
	return rc;
}
