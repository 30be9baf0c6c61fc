/*
 * show: one incident for a person, or as JSON: what fired, the window, what was lost, what was hot.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"
#include "cli/show_losses.h"
#include "cli/show_own.h"
#include "cli/show_times.h"
#include "cli/source_lines.h"
#include "analysis/summary.h"

#include "base/array.h"
#include "base/fit.h"
#include "base/os.h"
#include "base/text.h"
#include "store/history.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_FUNCTIONS = 10, TOP_PROCESSES = 10, TOP_STACKS = 3, STACK_FRAMES = 12 };

static const char *const loss_words[LOSS_KINDS] = {
	[LOSS_KERNEL] = "samples (the kernel's buffer was full)",
	[LOSS_THROTTLED] = "times the kernel throttled sampling",
	[LOSS_QUEUE] = "samples (the recorder's queue was full)",
	[LOSS_SIDEBAND] = "records of processes and mappings",
	[LOSS_TABLE] = "files, processes or frames had no room in a table; samples are kept",
	[LOSS_LATE] = "events that arrived out of order (kept)",
	[LOSS_FLOOD] = "events of floods (one busy process, or very many short-lived ones)",
	[LOSS_EVENTS] = "events (tracepoints, switches, .NET, log lines) too fast to be read",
	[LOSS_PYTHON] = "samples show no Python frames: these could not be read in time, or placed",
};

/* Of those that are not in the sum. */
static const char *const kept_labels[LOSS_KINDS] = {
	[LOSS_TABLE] = "No room", [LOSS_FLOOD] = "Left out", [LOSS_PYTHON] = "Python",
};

static const char *const quality_words[QUALITIES] = {
	[QUALITY_NONE] = "without a stack",
	[QUALITY_COMPLETE] = "complete",
	[QUALITY_FP] = "by frame pointers",
	[QUALITY_STITCHED] = "stitched",
	[QUALITY_REMOTE] = "read afterwards",
	[QUALITY_TRUNCATED] = "truncated",
	[QUALITY_BROKEN] = "broken",
};

/* ---- --json ---------------------------------------------------------------------------------- */

struct counts {
	uint32_t stacks, frames, named;      /* different ones; frames that have a name */
};

/* Count what the shown samples use; off-CPU time has no stacks of its own. */
static struct counts count_used(const struct incident *in)
{
	enum { IS_LEAF = 1, IS_WALKED = 2 };
	unsigned char *stacks = calloc((size_t)in->nstacks + 1, 1);
	bool *seen = calloc((size_t)in->nframes + 1, sizeof(*seen));
	struct counts n = {0};
	uint32_t i, node;

	for (i = 0; seen && stacks && i < in->nsamples; i++) {
		node = in->samples[i].stack;
		if (stream_is_counted(in->samples[i].stream) && node != STACK_NONE) {
			n.stacks += !(stacks[node] & IS_LEAF);
			stacks[node] |= IS_LEAF;
		}
		for (; node != STACK_NONE && !(stacks[node] & IS_WALKED);
		     node = in->stacks[node].parent) {
			uint32_t frame = in->stacks[node].frame;

			stacks[node] |= IS_WALKED;
			n.frames += !seen[frame];
			n.named += !seen[frame] && in->frames[frame].function;
			seen[frame] = true;
		}
	}
	free(seen);
	free(stacks);
	return n;
}

static void json_head(struct json *j, const struct incident_head *h)
{
	json_incident(j, h, true);
	json_key_num(j, "asked_pre_s", (double)h->asked_pre_ns / 1e9);
	json_key_num(j, "asked_post_s", (double)h->asked_post_ns / 1e9);
	json_key_num(j, "pre_s", ((double)h->trigger_ns - (double)h->t0_ns) / 1e9);
	json_key_num(j, "post_s", ((double)h->t1_ns - (double)h->trigger_ns) / 1e9);
	json_key_str(j, "gap_reason", h->gap_reason);
	json_key_str(j, "host", h->host);
	json_key_str(j, "host_text", h->host_text);
	json_key_str(j, "recorder_version", h->recorder_version);
	json_key_str(j, "note", h->note);
	json_key_str(j, "remarks", h->remarks);
}

static void json_counts(struct sheet *p, const struct incident *in)
{
	struct json *j = &p->j;
	const struct incident_head *h = &in->head;
	struct counts n = count_used(in);
	unsigned i;

	if (in->damage)
		json_key_str(j, "damage", in->damage);
	json_key_uint(j, "processes", in->nprocesses);
	json_key_uint(j, "threads", in->nthreads);
	json_key_uint(j, "stacks", n.stacks);
	json_key_uint(j, "frames", n.frames);
	json_key_uint(j, "frames_named", n.named);
	json_key_open(j, "stack_quality", '{');
	for (i = 0; i < QUALITIES; i++)
		json_key_uint(j, stack_quality_text(i), h->quality[i]);
	json_close(j, '}');
	json_key_open(j, "lost_by_reason", '{');
	for (i = 0; i < LOSS_KINDS; i++)
		json_key_uint(j, loss_kind_text(i), h->lost_by_kind[i]);
	json_close(j, '}');
	json_key_open(j, "period_ns", '{');
	for (i = 0; i < STREAMS_MAX; i++) {
		if (h->period_ns[i])
			json_key_uint(j, stream_text(i), h->period_ns[i]);
	}
	json_close(j, '}');
	json_key_open(j, "recorder", '{');
	json_key_num(j, "cpu_ms", (double)h->recorder_cpu_ns / 1e6);
	json_key_uint(j, "rss_kb", h->recorder_rss_bytes / 1024);
	json_close(j, '}');
	times_put(in, p);
	own_put(in, p);
}

/* The counters: a table for people, or an array. */
static int put_counters(struct sheet *p, const struct incident *in, struct err *err)
{
	struct summary_counter *counters;
	uint32_t n, i;
	int rc = summary_counters(in, &counters, &n, err);

	if (rc)
		return rc;
	if (p->json)
		json_key_open(&p->j, "counters", '[');
	for (i = 0; i < n; i++) {
		const struct summary_counter *c = &counters[i];
		const struct sheet_cell cells[] = {
			{"counter", "COUNTER", .kind = SHEET_NAME, .text = c->name},
			{"values", .kind = SHEET_COUNT, .n = c->values},
			{"at_trigger", "AT TRIGGER", 11, SHEET_READING, .v = c->at_trigger},
			{"min", "MIN", 13, SHEET_READING, .v = c->min},
			{"mean", "MEAN", 13, SHEET_READING, .v = c->mean},
			{"max", "MAX", 13, SHEET_READING, .v = c->max},
		};

		if (p->json) {
			json_open(&p->j, '{');
			sheet_members(p, cells, COUNT_OF(cells));
			json_close(&p->j, '}');
			continue;
		}
		if (!i)
			sheet_heading(p, cells, COUNT_OF(cells));
		sheet_row(p, cells, COUNT_OF(cells));
	}
	if (p->json)
		json_close(&p->j, ']');
	free(counters);
	return 0;
}

static void json_frame(struct json *j, const struct incident *in, uint32_t frame, bool addresses)
{
	const struct incident_frame *f = &in->frames[frame];
	struct buf name = {0};

	incident_frame_text(in, frame, addresses, &name);
	json_open(j, '{');
	json_key_str(j, "frame", buf_text(&name));
	if (f->file)
		json_key_str(j, "file", f->file);
	if (f->line)
		json_key_uint(j, "line", f->line);
	if (f->flags & FRAME_INLINED)
		json_key_bool(j, "inlined", true);
	json_close(j, '}');
	buf_free(&name);
}

/* The stack of the event that fired, such as the faulting stack of a crash; or STACK_NONE. */
static uint32_t event_stack(const struct incident *in, const struct incident_event **out)
{
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		*out = e;
		if (e->stack != STACK_NONE && e->kind == EVENT_GENERIC &&
		    strcmp(e->provider, "Recorder") != 0 &&
		    e->time_ns / SEGMENT_TICK_NS == in->head.trigger_ns / SEGMENT_TICK_NS)
			return e->stack;
	}
	return STACK_NONE;
}

/* All frames of a stack, leaf first. */
static void json_stack(struct json *j, const char *key, const struct incident *in, uint32_t node,
		       bool addresses)
{
	json_key_open(j, key, '[');
	for (; node != STACK_NONE; node = in->stacks[node].parent)
		json_frame(j, in, in->stacks[node].frame, addresses);
	json_close(j, ']');
}

static void json_hottest(struct json *j, const struct incident *in, const struct summary *s,
			 bool addresses)
{
	uint32_t i;

	json_key_open(j, "hottest", '[');
	for (i = 0; i < s->nstacks && i < TOP_STACKS; i++) {
		const struct summary_stack *stack = &s->stacks[i];

		json_open(j, '{');
		json_key_uint(j, in->several_periods ? "cpu_us" : "samples", stack->samples);
		if (stack->process != UINT32_MAX) {
			json_key_str(j, "process", in->processes[stack->process].name);
			json_key_uint(j, "pid", in->processes[stack->process].pid);
		}
		json_stack(j, "stack", in, stack->stack, addresses);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/*
 * Summarize what is hot: without the kernel unless --kernel is given, with source lines if --lines
 * is. This changes the incident, so whatever counts all of it must run before.
 */
static int sum_up(struct incident *in, const struct options *o, struct summary *out,
		  struct err *err)
{
	struct incident_filter no_kernel = {.no_kernel = true};
	int rc = 0;

	if (!o->kernel || o->no_kernel)
		rc = incident_filter(in, &no_kernel, err);
	if (!rc && o->lines)
		rc = source_lines_add(in, o->capture.symbol_path, err);
	return rc ? rc : summary_make(in, o->addresses, out, err);
}

static int put_json(struct sheet *p, struct incident *in, const struct options *o, struct err *err)
{
	const struct incident_event *e;
	struct summary summary = {0};
	uint32_t fired;
	int rc;

	sheet_open(p);
	json_head(&p->j, &in->head);
	json_counts(p, in);
	rc = put_counters(p, in, err);
	if (!rc)
		rc = sum_up(in, o, &summary, err);
	fired = rc ? STACK_NONE : event_stack(in, &e);
	if (fired != STACK_NONE)
		json_stack(&p->j, "event_stack", in, fired, o->addresses);
	if (!rc)
		json_hottest(&p->j, in, &summary, o->addresses);
	sheet_close(p);
	summary_free(&summary);
	return rc;
}

/* ---- for people: the head -------------------------------------------------------------------- */

static void put_title(struct sheet *p, const struct incident_head *h)
{
	const char *pinned = h->pinned ? ", pinned" : "";
	char title[INCIDENT_TITLE_BYTES];

	sheet_put(p, SHEET_HEAD, "%s", incident_title(h, title));
	if (h->state == INCIDENT_COMPLETE) {
		buf_printf(&p->out, "%s\n", pinned);
		return;
	}
	buf_puts(&p->out, ", ");
	sheet_put(p, SHEET_LOSS, "%s%s%s", incident_state_text(h->state), pinned,
		 h->state == INCIDENT_PARTIAL ? ": the recorder ended before it was complete" : "");
	buf_putc(&p->out, '\n');
}

static void put_window(struct sheet *p, const struct incident_head *h)
{
	char a[NUMBER_BYTES], b[NUMBER_BYTES];

	sheet_label(p, "Window");
	put_span(&p->out, h);
	if (h->gap_reason && *h->gap_reason) {
		if (h->id)
			buf_printf(&p->out, "; requested: %s before, %s after",
				   text_seconds((double)h->asked_pre_ns / 1e9, a),
				   text_seconds((double)h->asked_post_ns / 1e9, b));
		buf_putc(&p->out, '\n');
		sheet_label(p, "");
		buf_puts(&p->out, h->gap_reason);
	}
	buf_putc(&p->out, '\n');
}

/* The samples that are in the number above, and not below. */
static void put_metrics(struct sheet *p, const struct incident *in)
{
	uint64_t of[STREAMS_MAX];
	char n[NUMBER_BYTES];

	incident_count_streams(in, of);
	if (of[STREAM_CPU] && of[STREAM_EVENT])
		sheet_line(p, "", SHEET_PLAIN, "%s of them are of events: report --metric event",
			   text_count(of[STREAM_EVENT], n));
	if (of[STREAM_CPU] && of[STREAM_ALLOC])
		sheet_line(p, "", SHEET_PLAIN, "%s of them are of memory: report --metric alloc",
			   text_count(of[STREAM_ALLOC], n));
}

static void put_samples(struct sheet *p, const struct incident *in)
{
	const struct incident_head *h = &in->head;
	char n[NUMBER_BYTES];
	unsigned i;

	if (in->damage)
		sheet_line(p, "Damaged", SHEET_BAD, "%s", in->damage);
	sheet_label(p, "Samples");
	buf_puts(&p->out, text_count(h->samples, n));
	for (i = 0; i < STREAMS_MAX; i++) {
		if (i == STREAM_CPU && in->several_periods)
			buf_puts(&p->out, "; their weights differ, so CPU time is compared");
		else if (h->period_ns[i] && h->samples)
			buf_printf(&p->out, "; %s: one every %.4g ms", stream_text(i),
				   (double)h->period_ns[i] / 1e6);
	}
	buf_putc(&p->out, '\n');
	put_metrics(p, in);
}

static void put_losses(struct sheet *p, const struct incident_head *h)
{
	const char *label = "Lost";
	char n[NUMBER_BYTES];
	unsigned i;

	for (i = 0; i < LOSS_KINDS; i++) {
		if (!h->lost_by_kind[i] || !loss_counts(i))
			continue;
		sheet_line(p, label, SHEET_LOSS, "%s %s", text_count(h->lost_by_kind[i], n),
			  loss_words[i]);
		label = "";
	}
	if (*label && h->lost)
		sheet_line(p, label, SHEET_LOSS, "%s", text_count(h->lost, n));
	else if (*label)
		sheet_line(p, label, SHEET_PLAIN, h->note && *h->note ?
			  "nothing was counted; see the note below" : "nothing");
	for (i = 0; i < LOSS_KINDS; i++)
		if (h->lost_by_kind[i] && !loss_counts(i))
			sheet_line(p, kept_labels[i], SHEET_PLAIN, "%s %s",
				   text_count(h->lost_by_kind[i], n), loss_words[i]);
}

static void put_quality(struct sheet *p, const struct incident_head *h)
{
	char n[NUMBER_BYTES];
	unsigned i, items = 0;

	sheet_label(p, "Stacks");
	for (i = 0; i < QUALITIES; i++) {
		if (h->quality[i])
			buf_printf(&p->out, "%s%s %s", items++ ? ", " : "",
				   text_count(h->quality[i], n), quality_words[i]);
	}
	buf_puts(&p->out, items ? "\n" : "none\n");
}

/* The first thing to say: what is different from other days. */
static void put_changed(struct sheet *p, const struct options *o, const struct incident *in)
{
	struct buf changed = {0};
	const char *at, *label = "Changed";
	size_t n;

	cmd_put_changed(o, in, &changed);
	for (at = buf_text(&changed); *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		sheet_line(p, label, SHEET_HEAD, "%.*s", (int)n, at);
		label = "";
	}
	buf_free(&changed);
}

static void put_remarks(struct sheet *p, const char *at)
{
	const char *label = "Remarks";

	while (at && *at) {
		size_t n = strcspn(at, "\n");
		char *line = text_dup(at, n);

		sheet_text_line(p, label, line);
		free(line);
		label = "";
		at += n + (at[n] == '\n');
	}
}

static void put_head(struct sheet *p, const struct options *o, const struct incident *in,
		     const struct ledger *ledger)
{
	const struct incident_head *h = &in->head;
	char time[OS_TIME_TEXT_BYTES], rss[NUMBER_BYTES], cpu[NUMBER_BYTES];
	char named[NUMBER_BYTES], frames[NUMBER_BYTES];
	struct counts n = count_used(in);

	os_time_text(h->trigger_wall_ns, time);
	put_title(p, h);
	put_changed(p, o, in);
	/* A window of the history has fired nothing; its title says what it is. */
	if (strcmp(h->rule ? h->rule : "", HISTORY_RULE) != 0) {
		sheet_text_line(p, "Fired", h->reason);
		sheet_text_line(p, "Rule", h->rule);
	}
	sheet_line(p, "When", SHEET_PLAIN, "%s on %s (%s)", time, h->host ? h->host : "?",
		  h->host_text ? h->host_text : "?");
	put_window(p, h);
	put_samples(p, in);
	if (ledger->nrows)
		losses_line(ledger, p);
	put_losses(p, h);
	put_quality(p, h);
	sheet_line(p, "Names", SHEET_PLAIN, "%s of %s frames have a name",
		   text_count(n.named, named), text_count(n.frames, frames));
	/* The history keeps no costs. */
	if (h->recorder_rss_bytes)
		sheet_line(p, "Recorder", SHEET_PLAIN,
			   "%s of CPU time so far, %s of memory; version %s",
			   text_seconds((double)h->recorder_cpu_ns / 1e9, cpu),
			   text_bytes(h->recorder_rss_bytes, rss),
			   h->recorder_version ? h->recorder_version : "?");
	times_put(in, p);
	own_put(in, p);
	sheet_text_line(p, "Note", h->note);
	put_remarks(p, h->remarks);
}

/* ---- for people: what was hot ---------------------------------------------------------------- */

struct view {
	struct sheet *sheet;
	struct buf *out;                     /* the sheet's */
	const struct incident *in;
	bool addresses;
	uint64_t whole;                      /* shares are parts of this */
};

static void put_process_name(const struct view *v, uint32_t process)
{
	char label[PROCESS_LABEL_BYTES];

	if (process == UINT32_MAX) {
		buf_puts(v->out, "(no process)");
		return;
	}
	fit_cut(v->out, incident_process_label(v->in, process, label), 60);
	buf_printf(v->out, " (%" PRIu32 ")", v->in->processes[process].pid);
}

/* The quality of its stacks, as shares of its samples. */
static void put_process_quality(struct buf *out, const struct summary_process *p)
{
	unsigned i, items = 0, managed = 0;

	for (i = QUALITY_COMPLETE; i < QUALITIES; i++) {
		if (p->quality[i])
			buf_printf(out, "%s%.0f %% %s", items++ ? ", " : "",
				   100 * (double)p->quality[i] / (double)p->samples,
				   quality_words[i]);
	}
	if (!items)
		buf_puts(out, "no stacks");
	for (i = CODE_JAVA; i < CODE_KINDS; i++) {
		if (p->code[i])
			buf_printf(out, "%s%s in %.0f %%", managed++ ? ", " : "; ",
				   code_kind_text(i),
				   100 * (double)p->code[i] / (double)p->samples);
	}
}

static void put_heading(const struct view *v, const char *amount, const char *what)
{
	const struct sheet_cell cells[] = {
		{.head = amount, .width = 11},
		{.head = "SHARE", .width = 9},
		{.head = what, .kind = SHEET_NAME},
	};

	sheet_heading(v->sheet, cells, COUNT_OF(cells));
}

static void put_amount(const struct view *v, uint64_t n)
{
	char text[NUMBER_BYTES];
	const struct sheet_cell cells[] = {
		{.width = 11, .text = text},
		{.width = 9, .kind = SHEET_SHARE,
		 .v = v->whole ? 100 * (double)n / (double)v->whole : 0},
	};

	if (v->in->several_periods)
		snprintf(text, sizeof(text), "%.3f s", (double)n / 1e6);
	else
		text_count(n, text);
	sheet_cells(v->sheet, cells, COUNT_OF(cells));
	buf_puts(v->out, "  ");
}

enum { ADVICE_BYTES = 120 };

/* Why a process has incomplete stacks and what to do about it, if known; else NULL. */
static const char *stack_advice(const struct incident *in, const struct summary_process *s,
				char text[ADVICE_BYTES])
{
	struct incident_names names;
	const char *language;

	if (s->process == UINT32_MAX)
		return NULL;
	incident_process_names(in, s->process, &names);
	language = process_unread_language(names.is.file);
	if (language) {
		snprintf(text, ADVICE_BYTES, "functions of %s itself are not read: these are the "
			 "frames of its interpreter", language);
		return text;
	}
	if (5 * s->unnamed >= s->samples)
		return "generated code has no names: for .NET, start it without "
		       "DOTNET_EnableDiagnostics=0; see recorder check";
	/* Only Linux copies stacks. */
	if (20 * s->quality[QUALITY_TRUNCATED] >= s->samples && in->head.host_text &&
	    !strncmp(in->head.host_text, "Linux", 5))
		return "truncated: deeper than the copied part of a stack (32 KB unless --stack-kb "
		       "says less)";
	return NULL;
}

static void put_processes(const struct view *v, const struct summary *s)
{
	char text[ADVICE_BYTES];
	const char *advice;
	uint32_t i;

	for (i = 0; i < s->nprocesses && i < TOP_PROCESSES; i++) {
		put_amount(v, s->processes[i].samples);
		put_process_name(v, s->processes[i].process);
		buf_puts(v->out, ": ");
		put_process_quality(v->out, &s->processes[i]);
		buf_putc(v->out, '\n');
		advice = stack_advice(v->in, &s->processes[i], text);
		if (advice)
			buf_printf(v->out, "%22s  %s\n", "", advice);
	}
	if (s->nprocesses > TOP_PROCESSES)
		buf_printf(v->out, "%22s  and %" PRIu32 " more\n", "",
			   s->nprocesses - TOP_PROCESSES);
}

static void put_functions(const struct view *v, const struct summary *s, bool inclusive)
{
	uint32_t i;

	put_heading(v, inclusive ? "INCLUSIVE" : "SELF", "FUNCTION");
	for (i = 0; i < s->nfunctions && i < TOP_FUNCTIONS; i++) {
		const struct summary_function *f = &s->functions[i];
		uint64_t n = inclusive ? f->inclusive : f->self;

		if (!n)
			break;
		put_amount(v, n);
		fit_last(v->out, f->name, 0, v->sheet->columns);
		buf_putc(v->out, '\n');
	}
}

/* " (inlined)  main.c:12", as far as it is known; only the file's own name, --json has its path. */
static void put_source_line(struct buf *out, const struct incident_frame *f)
{
	if (f->flags & FRAME_INLINED)
		buf_puts(out, " (inlined)");
	if (f->file && f->line)
		buf_printf(out, "  %s:%" PRIu32, text_base_name(f->file), f->line);
}

/* A process's name and a stack. */
static void put_stack(const struct view *v, uint32_t process, uint32_t node)
{
	struct buf name = {0};
	uint32_t n;

	put_process_name(v, process);
	buf_putc(v->out, '\n');
	for (n = 0; node != STACK_NONE && n < STACK_FRAMES; n++) {
		buf_reset(&name);
		incident_frame_text(v->in, v->in->stacks[node].frame, v->addresses, &name);
		put_source_line(&name, &v->in->frames[v->in->stacks[node].frame]);
		fit_last(v->out, buf_text(&name), 24, v->sheet->columns);
		buf_putc(v->out, '\n');
		node = v->in->stacks[node].parent;
	}
	for (n = 0; node != STACK_NONE; n++)
		node = v->in->stacks[node].parent;
	if (n)
		buf_printf(v->out, "%24s(%" PRIu32 " more callers)\n", "", n);
	buf_free(&name);
}

static void put_event_stack(const struct view *v)
{
	const struct incident_event *e;
	uint32_t node = event_stack(v->in, &e);

	if (node == STACK_NONE)
		return;
	buf_putc(v->out, '\n');
	sheet_put(v->sheet, SHEET_HEAD, "%24sSTACK OF THE EVENT THAT FIRED, LEAF FIRST", "");
	buf_printf(v->out, "\n%24s", "");
	put_stack(v, incident_process_of(v->in, e->thread), node);
}

static void put_hot(const struct view *v, struct summary *s, bool user_only)
{
	const char *counted = v->in->several_periods ? "CPU TIME" : "SAMPLES";
	char n[NUMBER_BYTES];
	uint32_t i;

	put_heading(v, counted, "PROCESS AND ITS STACKS");
	put_processes(v, s);
	put_functions(v, s, false);
	summary_by_inclusive(s);
	put_functions(v, s, true);
	if (s->nstacks)
		put_heading(v, counted, "STACK, LEAF FIRST");
	for (i = 0; i < s->nstacks && i < TOP_STACKS; i++) {
		put_amount(v, s->stacks[i].samples);
		put_stack(v, s->stacks[i].process, s->stacks[i].stack);
	}
	if (s->without_stack)
		buf_printf(v->out, "\n%s samples have no stack%s.\n",
			   text_count(s->without_stack, n), user_only ? " outside the kernel" : "");
	if (user_only)
		buf_puts(v->out, "\nKernel frames are left out; --kernel shows them.\n");
}

static int put_text(struct sheet *p, struct incident *in, const struct ledger *ledger,
		    const struct options *o, struct err *err)
{
	struct view v = {.sheet = p, .out = &p->out, .in = in, .addresses = o->addresses};
	struct summary summary = {0};
	int rc;

	put_head(p, o, in, ledger);
	if (o->losses) {
		losses_tables(ledger, p);
		return 0;
	}
	rc = put_counters(p, in, err);
	if (!rc)
		rc = sum_up(in, o, &summary, err);
	if (!rc)
		put_event_stack(&v);
	v.whole = summary.whole;
	if (!rc && in->head.samples)
		put_hot(&v, &summary, !o->kernel || o->no_kernel);
	summary_free(&summary);
	return rc;
}

int cmd_show(const struct options *o, struct err *err)
{
	struct options part = *o;            /* borrows all of it */
	/* Of the whole incident: a part has no expectation of its own. */
	struct ledger ledger = {0};
	struct incident in = {0};
	struct sheet sheet;
	int rc;

	if (o->group_id)
		return cmd_show_group(o, err);
	rc = cmd_load(o, &in, err);

	sheet_init(&sheet, o);
	/* Kernel frames stay for now, because --json counts them. */
	part.no_kernel = part.no_idle = false;
	if (!rc)
		rc = cmd_filter(&part, &in, err);
	if (!rc && !(o->process || o->tid || cmd_of_home(o)))
		rc = ledger_new(&in, &ledger, err);
	if (!rc && o->losses && (o->process || o->tid || cmd_of_home(o)))
		rc = err_set(err, ERR_USAGE, "--losses is about CPUs: omit --process, --thread and "
			     "what else chooses processes");
	if (!rc && o->threads)
		rc = threads_put(&in, &sheet, err);
	else if (!rc && o->json && o->losses)
		losses_json(&ledger, &sheet);
	else if (!rc)
		rc = o->json ? put_json(&sheet, &in, o, err)
			     : put_text(&sheet, &in, &ledger, o, err);
	if (!rc)
		rc = sheet_print(&sheet, err);
	if (!rc)
		rc = incident_whole(&in, err);
	sheet_free(&sheet);
	ledger_free(&ledger);
	incident_free(&in);
	return rc;
}
