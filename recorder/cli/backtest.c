/*
 * backtest: when rules would have fired on a stored incident, the history or a trace file, and how
 * often with other limits.
 */
#include "analysis/backtest.h"
#include "cli/cmd.h"
#include "listing/sheet.h"

#include "base/array.h"
#include "base/fit.h"
#include "base/moment.h"
#include "base/os.h"
#include "analysis/known_names.h"
#include "analysis/replay.h"
#include "engine/trace.h"
#include "triggers/threshold.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_MAX 200u

struct sweep {
	double from, to, step;
	uint32_t n;                          /* limits; 0 = no sweep */
};

struct run {
	const struct options *o;
	struct trigger **triggers;           /* of a sweep: the one rule, with each limit */
	uint32_t ntriggers;
	struct needs *needs;                 /* not asked of any source: the events are recorded */
	struct sweep sweep;
	struct backtest test;
	struct processes *processes;
	struct known_names *names;           /* that an incident or the history holds */
	uint64_t zero_ns;                    /* times are printed from here */
	bool wall;                           /* the history: times are of the wall clock */
	struct buf doubts;                   /* names in rules that were not found, a line each */
	struct err *err;
};

/* ---- rules ----------------------------------------------------------------------------------- */

/* "10:200:10": from, to, step. */
static int parse_sweep(const char *text, struct sweep *out, struct err *err)
{
	double n;
	int end = 0;

	if (sscanf(text, "%40lf:%40lf:%40lf%n", &out->from, &out->to, &out->step, &end) != 3 ||
	    text[end] || !(out->step > 0) || !(out->to >= out->from))
		return err_set(err, ERR_USAGE,
			       "--sweep '%.60s' is not FROM:TO:STEP, like 10:200:10", text);
	n = floor((out->to - out->from) / out->step + 1e-9) + 1;
	if (!(n <= SWEEP_MAX))
		return err_set(err, ERR_USAGE,
			       "--sweep '%.60s' has over %u limits; use a larger step", text,
			       SWEEP_MAX);
	out->n = (uint32_t)n;
	return 0;
}

static int open_rule(struct run *r, const struct rule_spec *rule, struct err *err)
{
	int rc = cmd_rule_open(r->o, rule, r->needs, &r->triggers[r->ntriggers], err);

	if (!rc)
		r->ntriggers++;
	return rc;
}

static int open_sweep(struct run *r, struct err *err)
{
	uint32_t i;
	int rc = 0;

	if (r->o->rules.n != 1)
		return err_set(err, ERR_USAGE, "--sweep takes one rule; %" PRIu32 " were given",
			       r->o->rules.n);
	for (i = 0; !rc && i < r->sweep.n; i++) {
		rc = open_rule(r, &r->o->rules.items[0], err);
		if (!rc && !r->triggers[i]->limit)
			rc = err_set(err, ERR_USAGE, "--sweep: %s has no limit of its own",
				     r->triggers[i]->spec);
		if (!rc)
			trigger_set_limit(r->triggers[i], r->sweep.from + i * r->sweep.step);
	}
	return rc;
}

static int open_rules(struct run *r, struct err *err)
{
	uint32_t i;
	int rc = 0;

	if (!r->o->rules.n)
		return err_set(err, ERR_USAGE, "backtest: which rule? Give it as for collect, like "
					       "/StopOnGCOverMsec:100");
	rc = cmd_check_process(r->o, err);
	if (!rc && r->o->sweep)
		rc = parse_sweep(r->o->sweep, &r->sweep, err);
	if (rc)
		return rc;
	r->triggers = calloc(r->o->rules.n + r->sweep.n + 1u, sizeof(*r->triggers));
	r->needs = calloc(1, sizeof(*r->needs));
	if (!r->triggers || !r->needs)
		return err_memory(err, "for the rules");
	rc = processes_new(&r->processes, err);
	if (!rc)
		rc = known_names_new(&r->names, err);
	if (rc)
		return rc;
	if (r->sweep.n)
		rc = open_sweep(r, err);
	for (i = 0; !rc && !r->sweep.n && i < r->o->rules.n; i++)
		rc = open_rule(r, &r->o->rules.items[i], err);
	if (!rc)
		rc = backtest_init(&r->test, r->triggers, r->ntriggers,
				   (uint64_t)r->o->capture.post_ns, r->sweep.n > 0, err);
	return rc;
}

static void run_free(struct run *r)
{
	backtest_free(&r->test);
	known_names_free(r->names);
	buf_free(&r->doubts);
	while (r->ntriggers) {
		r->ntriggers--;
		trigger_close(r->triggers[r->ntriggers]);
	}
	processes_free(r->processes);
	free(r->triggers);
	free(r->needs);
}

/* ---- what was recorded ----------------------------------------------------------------------- */

static int each_of_file(void *ctx, const struct event *e, const struct source_origin *origin)
{
	struct run *r = ctx;

	if (!r->test.started)
		r->zero_ns = origin->start_ns && origin->start_ns <= e->time_ns ? origin->start_ns
										: e->time_ns;
	return backtest_feed(&r->test, e, r->err);
}

static int read_file(struct run *r, struct err *err)
{
	struct trace t = {.sources = file_sources(r->o->capture.file),
			  .path = r->o->capture.file,
			  .each = each_of_file,
			  .ctx = r};
	int rc;

	rc = cmd_check_file(t.path, r->needs, err);
	if (!rc)
		rc = trace_read(&t, err);
	if (!rc && t.origin.note[0])
		cmd_note("%s: %s", t.path, t.origin.note);
	if (!rc)
		cmd_find_unknown_names(t.path, r->triggers, r->sweep.n ? 1 : r->ntriggers,
				       &r->doubts);
	return rc;
}

static int feed(void *ctx, const struct event *e, struct err *err)
{
	struct run *r = ctx;
	int rc = backtest_feed(&r->test, e, err);

	return rc ? rc : known_names_add(r->names, e, err);
}

static int feed_incident(void *ctx, const struct incident *in, struct err *err)
{
	struct run *r = ctx;

	return replay_incident(in, r->processes, feed, r, err);
}

/* Collect the names in rules that it does not hold. */
static void explain_names(struct run *r, const char *where)
{
	uint32_t i;

	for (i = 0; i < r->ntriggers && (!i || !r->sweep.n); i++)
		known_names_explain(r->names, r->triggers[i], where, &r->doubts);
}

static int read_incident(struct run *r, struct err *err)
{
	char where[INCIDENT_TITLE_BYTES];
	struct incident in = {0};
	int rc = cmd_load(r->o, &in, err);

	if (!rc)
		rc = incident_whole(&in, err);
	r->zero_ns = in.head.trigger_ns;
	if (!rc)
		rc = feed_incident(r, &in, err);
	if (!rc)
		rc = backtest_end(&r->test, in.head.t1_ns, err);
	snprintf(where, sizeof(where), "incident %" PRId64, in.head.id);
	if (!rc)
		explain_names(r, where);
	incident_free(&in);
	return rc;
}

static int read_history(struct run *r, struct err *err)
{
	struct cmd_window window = {.to_ns = os_wall_ns()};
	int rc = cmd_window_asked(r->o) ? cmd_window(r->o, &window, err) : 0;

	r->wall = true;
	if (!rc)
		rc = cmd_each_piece(r->o, &window, feed_incident, r, err);
	r->zero_ns = window.from_ns;
	if (!rc)
		rc = backtest_end(&r->test, window.to_ns, err);
	if (!rc)
		explain_names(r, "the history");
	return rc;
}

/* ---- what comes out -------------------------------------------------------------------------- */

static void put_firing(const struct run *r, const struct backtest_firing *f, struct sheet *sheet)
{
	int64_t ns = (int64_t)(f->time_ns - r->zero_ns);
	/* stored times are multiples of 100 ns */
	double seconds = ns > -500 && ns < 0 ? 0 : (double)ns / 1e9;
	char local[MOMENT_TEXT_BYTES], utc[OS_TIME_TEXT_BYTES];
	const struct sheet_cell cells[] = {
		{"time_s", .kind = SHEET_NUMBER, .v = seconds},
		{"rule", .text = r->triggers[f->rule]->spec},
		{"value", .kind = SHEET_NUMBER, .v = f->value},
		{"limit", .kind = SHEET_NUMBER, .v = f->limit},
		{"reason", .text = f->why},
		{"time_utc", .text = utc},
	};

	moment_local_text(f->time_ns, local);
	os_time_text(f->time_ns, utc);
	if (sheet->json)
		sheet_row(sheet, cells, COUNT_OF(cells) - !r->wall);
	else if (r->wall)
		buf_printf(&sheet->out, "%s  %s\n", local, f->why);
	else
		buf_printf(&sheet->out, "%+14.6f s  %s\n", seconds, f->why);
}

static void put_sweep(const struct run *r, struct sheet *sheet)
{
	char limit[NUMBER_TEXT_BYTES];
	uint32_t i;

	for (i = 0; i < r->sweep.n; i++) {
		double at = r->sweep.from + i * r->sweep.step;
		const struct sheet_cell cells[] = {
			{"limit", .kind = SHEET_NUMBER, .v = at},
			{NULL, "limit", 12, .text = limit},
			{"incidents", "incidents", 11, SHEET_NUMBER,
			 .v = (double)r->test.rules[i].fired},
		};

		number_text(at, limit);
		if (!i)
			sheet_heading(sheet, cells, COUNT_OF(cells));
		sheet_row(sheet, cells, COUNT_OF(cells));
	}
}

/* For rules that did not fire: how near they came, how much they saw. */
static void remark_silent(const struct run *r)
{
	struct buf why = {0};
	uint32_t i;

	for (i = 0; i < r->ntriggers && !r->sweep.n; i++) {
		const struct trigger *t = r->triggers[i];

		if (r->test.rules[i].fired)
			continue;
		buf_reset(&why);
		put_why_silent(&why, t, r->zero_ns);
		cmd_note("%s: would not have fired; %s", t->spec, buf_text(&why));
	}
	buf_free(&why);
}

/*
 * As when live, a rule pauses for the delay after a firing: what it sees then is in that incident.
 */
static void remark_held_back(const struct run *r)
{
	char n[NUMBER_BYTES], delay[NUMBER_BYTES];
	struct trigger_status s;
	uint64_t held = 0;
	uint32_t i;

	text_seconds((double)r->test.post_ns / 1e9, delay);
	for (i = 0; i < r->ntriggers && r->test.post_ns; i++) {
		trigger_status(r->triggers[i], &s);
		held += s.counts.covered;
		if (s.counts.covered && !r->sweep.n)
			cmd_note("%s: %s more firings within the delay of %s after one; "
				 "--delay-after-trigger-sec 0 shows them",
				 r->triggers[i]->spec, text_count(s.counts.covered, n), delay);
	}
	if (held && r->sweep.n)
		cmd_note("firings within the delay of %s after an incident are part of it; "
			 "--delay-after-trigger-sec 0 counts each", delay);
}

/* As for collect --from: exit 3 when no rule would have fired. */
static int check_outcome(const struct run *r, struct err *err)
{
	if (r->sweep.n || r->test.nfirings)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "no rule would have fired (%" PRIu64 " events, %.3f s)",
		       r->test.events, (double)(r->test.last_ns - r->test.first_ns) / 1e9);
}

static int print_firings(const struct run *r, struct err *err)
{
	struct sheet sheet;
	const char *at;
	uint32_t i;
	int rc;

	sheet_init(&sheet, r->o);
	sheet.columns = FIT_ALL;
	for (i = 0; i < r->test.nfirings; i++)
		put_firing(r, &r->test.firings[i], &sheet);
	put_sweep(r, &sheet);
	rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
	for (at = buf_text(&r->doubts); *at; at += strcspn(at, "\n") + 1)
		cmd_note("%.*s", (int)strcspn(at, "\n"), at);
	remark_silent(r);
	remark_held_back(r);
	if (r->test.nfirings == BACKTEST_FIRINGS_MAX)
		cmd_note("only the first %u firings are listed", BACKTEST_FIRINGS_MAX);
	return rc;
}

int cmd_backtest(const struct options *o, struct err *err)
{
	struct options mine = cmd_from_time(o);
	struct run r = {.o = &mine, .err = err};
	int rc = open_rules(&r, err);

	if (!rc && mine.history && (mine.capture.file || mine.ids.n))
		rc = err_set(err, ERR_USAGE, "backtest: --history reads what is beside the store; "
			     "an incident or a trace was named, too: give one of them");
	if (!rc && mine.capture.file)
		rc = read_file(&r, err);
	else if (!rc)
		rc = mine.history || (!mine.ids.n && cmd_window_asked(&mine))
			     ? read_history(&r, err) : read_incident(&r, err);
	if (!rc)
		rc = print_firings(&r, err);
	if (!rc)
		rc = check_outcome(&r, err);
	run_free(&r);
	return rc;
}
