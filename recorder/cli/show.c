/*
 * show: one incident for a person, or as JSON: what fired, the window, what was lost, what was hot.
 */
#include "cli/cmd.h"
#include "cli/show_losses.h"
#include "cli/show_own.h"
#include "cli/show_times.h"
#include "cli/source_lines.h"
#include "analysis/summary.h"

#include "base/fit.h"
#include "base/json.h"
#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_FUNCTIONS = 10, TOP_PROCESSES = 10, TOP_STACKS = 3, STACK_FRAMES = 12, LABEL = 10 };

static const char *const loss_words[LOSS_KINDS] = {
	[LOSS_KERNEL] = "samples (the kernel's buffer was full)",
	[LOSS_THROTTLED] = "times the kernel throttled sampling",
	[LOSS_QUEUE] = "samples (the recorder's queue was full)",
	[LOSS_SIDEBAND] = "records of processes and mappings",
	[LOSS_TABLE] = "stacks (a table was full; their samples are kept)",
	[LOSS_LATE] = "events that arrived out of order (kept)",
	[LOSS_FLOOD] = "events of floods (one busy process, or very many short-lived ones)",
	[LOSS_EVENTS] = "events (tracepoints, probes, switches, .NET) too fast to be read",
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

static double before_s(const struct incident_head *h)
{
	return ((double)h->trigger_ns - (double)h->t0_ns) / 1e9;
}

static double after_s(const struct incident_head *h)
{
	return ((double)h->t1_ns - (double)h->trigger_ns) / 1e9;
}

/* ---- --json ---------------------------------------------------------------------------------- */

static uint32_t count_stacks(const struct incident *in)
{
	bool *seen = calloc((size_t)in->nstacks + 1, sizeof(*seen));
	uint32_t i, n = 0;

	for (i = 0; seen && i < in->nsamples; i++) {
		uint32_t stack =
			in->samples[i].stream == STREAM_OFF_CPU ? STACK_NONE : in->samples[i].stack;

		if (stack != STACK_NONE && !seen[stack]) {
			seen[stack] = true;
			n++;
		}
	}
	free(seen);
	return n;
}

/* Count the frames of the shown samples, and how many of them have a name. */
static uint32_t count_frames(const struct incident *in, uint32_t *named)
{
	bool *seen_stack = calloc((size_t)in->nstacks + 1, sizeof(*seen_stack));
	bool *seen = calloc((size_t)in->nframes + 1, sizeof(*seen));
	uint32_t i, node, n = 0;

	*named = 0;
	for (i = 0; seen && seen_stack && i < in->nsamples; i++) {
		for (node = in->samples[i].stack; node != STACK_NONE && !seen_stack[node];
		     node = in->stacks[node].parent) {
			uint32_t frame = in->stacks[node].frame;

			seen_stack[node] = true;
			if (seen[frame])
				continue;
			seen[frame] = true;
			n++;
			*named += in->frames[frame].function != NULL;
		}
	}
	free(seen);
	free(seen_stack);
	return n;
}

static void json_head(struct json *j, const struct incident_head *h)
{
	char time[OS_TIME_TEXT_BYTES];

	os_time_text(h->trigger_wall_ns, time);
	json_key_int(j, "id", h->id);
	json_key_str(j, "uuid", h->uuid);
	json_key_str(j, "state", incident_state_text(h->state));
	json_key_str(j, "trigger", h->rule);
	json_key_str(j, "reason", h->reason);
	json_key_num(j, "value", h->value);
	json_key_num(j, "limit", h->limit);
	json_key_str(j, "time_utc", time);
	json_key_num(j, "window_s", (double)(h->t1_ns - h->t0_ns) / 1e9);
	json_key_uint(j, "samples", h->samples);
	json_key_uint(j, "lost", h->lost);
	json_key_uint(j, "bytes", h->stored_bytes);
	json_key_bool(j, "pinned", h->pinned);
	json_key_num(j, "asked_pre_s", (double)h->asked_pre_ns / 1e9);
	json_key_num(j, "asked_post_s", (double)h->asked_post_ns / 1e9);
	json_key_num(j, "pre_s", before_s(h));
	json_key_num(j, "post_s", after_s(h));
	json_key_str(j, "gap_reason", h->gap_reason);
	json_key_str(j, "host", h->host);
	json_key_str(j, "host_text", h->host_text);
	json_key_str(j, "recorder_version", h->recorder_version);
	json_key_str(j, "note", h->note);
}

static void json_counts(struct json *j, const struct incident *in)
{
	const struct incident_head *h = &in->head;
	uint32_t named;
	unsigned i;

	if (in->damage)
		json_key_str(j, "damage", in->damage);
	json_key_uint(j, "processes", in->nprocesses);
	json_key_uint(j, "threads", in->nthreads);
	json_key_uint(j, "stacks", count_stacks(in));
	json_key_uint(j, "frames", count_frames(in, &named));
	json_key_uint(j, "frames_named", named);
	json_key(j, "stack_quality");
	json_open(j, '{');
	for (i = 0; i < QUALITIES; i++)
		json_key_uint(j, stack_quality_text((enum stack_quality)i), h->quality[i]);
	json_close(j, '}');
	json_key(j, "lost_by_reason");
	json_open(j, '{');
	for (i = 0; i < LOSS_KINDS; i++)
		json_key_uint(j, loss_kind_text((enum loss_kind)i), h->lost_by_kind[i]);
	json_close(j, '}');
	json_key(j, "period_ns");
	json_open(j, '{');
	for (i = 0; i < STREAMS_MAX; i++) {
		if (h->period_ns[i])
			json_key_uint(j, stream_text((enum stream)i), h->period_ns[i]);
	}
	json_close(j, '}');
	json_key(j, "recorder");
	json_open(j, '{');
	json_key_num(j, "cpu_ms", (double)h->recorder_cpu_ns / 1e6);
	json_key_uint(j, "rss_kb", h->recorder_rss_bytes / 1024);
	json_close(j, '}');
	times_json(in, j);
	own_json(in, j);
}

static int json_counters(struct json *j, const struct incident *in, struct err *err)
{
	struct summary_counter *counters;
	uint32_t n, i;
	int rc = summary_counters(in, &counters, &n, err);

	if (rc)
		return rc;
	json_key(j, "counters");
	json_open(j, '[');
	for (i = 0; i < n; i++) {
		json_open(j, '{');
		json_key_str(j, "counter", counters[i].name);
		json_key_uint(j, "values", counters[i].values);
		json_key_num(j, "at_trigger", counters[i].at_trigger);
		json_key_num(j, "min", counters[i].min);
		json_key_num(j, "mean", counters[i].mean);
		json_key_num(j, "max", counters[i].max);
		json_close(j, '}');
	}
	json_close(j, ']');
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
		    e->time_ns / SEGMENT_TICK_NS == in->head.trigger_ns / SEGMENT_TICK_NS)
			return e->stack;
	}
	return STACK_NONE;
}

static void json_event_stack(struct json *j, const struct incident *in, bool addresses)
{
	const struct incident_event *e;
	uint32_t node = event_stack(in, &e);

	if (node == STACK_NONE)
		return;
	json_key(j, "event_stack");
	json_open(j, '[');
	for (; node != STACK_NONE; node = in->stacks[node].parent)
		json_frame(j, in, in->stacks[node].frame, addresses);
	json_close(j, ']');
}

/* All frames of each, leaf first. */
static void json_stacks(struct json *j, const struct incident *in, const struct summary *s,
			bool addresses)
{
	uint32_t i, node;

	json_key(j, "hottest");
	json_open(j, '[');
	for (i = 0; i < s->nstacks && i < TOP_STACKS; i++) {
		const struct summary_stack *stack = &s->stacks[i];

		json_open(j, '{');
		json_key_uint(j, in->several_periods ? "cpu_us" : "samples", stack->samples);
		if (stack->process != UINT32_MAX) {
			json_key_str(j, "process", in->processes[stack->process].name);
			json_key_uint(j, "pid", in->processes[stack->process].pid);
		}
		json_key(j, "stack");
		json_open(j, '[');
		for (node = stack->stack; node != STACK_NONE; node = in->stacks[node].parent)
			json_frame(j, in, in->stacks[node].frame, addresses);
		json_close(j, ']');
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
		rc = source_lines_add(in, err);
	return rc ? rc : summary_make(in, o->addresses, out, err);
}

static int put_json(struct buf *out, struct incident *in, const struct options *o, struct err *err)
{
	struct json j = {.out = out};
	struct summary summary = {0};
	int rc;

	json_open(&j, '{');
	json_head(&j, &in->head);
	json_counts(&j, in);
	rc = json_counters(&j, in, err);
	if (!rc)
		rc = sum_up(in, o, &summary, err);
	if (!rc)
		json_event_stack(&j, in, o->addresses);
	if (!rc)
		json_stacks(&j, in, &summary, o->addresses);
	json_close(&j, '}');
	buf_putc(out, '\n');
	summary_free(&summary);
	return rc;
}

/* ---- for people: the head -------------------------------------------------------------------- */

static void put_label(struct buf *out, const char *label)
{
	buf_printf(out, "%-*s", LABEL, label);
}

static void put_share(struct buf *out, uint64_t part, uint64_t whole)
{
	buf_printf(out, "%5.1f %%", whole ? 100 * (double)part / (double)whole : 0.0);
}

static void put_window(struct buf *out, const struct incident_head *h)
{
	char a[CMD_NUMBER_BYTES], b[CMD_NUMBER_BYTES];

	put_label(out, "Window");
	put_span(out, h);
	if (h->gap_reason && *h->gap_reason) {
		buf_printf(out, "; requested: %s before, %s after\n",
			   text_seconds((double)h->asked_pre_ns / 1e9, a),
			   text_seconds((double)h->asked_post_ns / 1e9, b));
		put_label(out, "");
		buf_puts(out, h->gap_reason);
	}
	buf_putc(out, '\n');
}

static void put_samples(struct buf *out, const struct incident *in)
{
	const struct incident_head *h = &in->head;
	char n[CMD_NUMBER_BYTES];
	unsigned i;

	if (in->damage) {
		put_label(out, "Damaged");
		buf_printf(out, "%s\n", in->damage);
	}
	put_label(out, "Samples");
	buf_puts(out, text_count(h->samples, n));
	for (i = 0; i < STREAMS_MAX; i++) {
		if (i == STREAM_CPU && in->several_periods)
			buf_puts(out, "; their weights differ, so CPU time is compared");
		else if (h->period_ns[i] && h->samples)
			buf_printf(out, "; %s: one every %.4g ms", stream_text((enum stream)i),
				   (double)h->period_ns[i] / 1e6);
	}
	buf_putc(out, '\n');
}

static void put_losses(struct buf *out, const struct incident_head *h)
{
	char n[CMD_NUMBER_BYTES];
	unsigned i, lines = 0;

	put_label(out, "Lost");
	for (i = 0; i < LOSS_KINDS; i++) {
		if (!h->lost_by_kind[i] || i == LOSS_FLOOD)
			continue;
		if (lines++)
			put_label(out, "");
		buf_printf(out, "%s %s\n", text_count(h->lost_by_kind[i], n), loss_words[i]);
	}
	if (!lines && h->lost)
		buf_printf(out, "%s\n", text_count(h->lost, n));
	else if (!lines && h->note && *h->note)
		buf_puts(out, "nothing was counted; see the note below\n");
	else if (!lines)
		buf_puts(out, "nothing\n");
	if (!h->lost_by_kind[LOSS_FLOOD])
		return;
	put_label(out, "Left out");
	buf_printf(out, "%s %s\n", text_count(h->lost_by_kind[LOSS_FLOOD], n),
		   loss_words[LOSS_FLOOD]);
}

static void put_quality(struct buf *out, const struct incident_head *h)
{
	char n[CMD_NUMBER_BYTES];
	unsigned i, items = 0;

	put_label(out, "Stacks");
	for (i = 0; i < QUALITIES; i++) {
		if (h->quality[i])
			buf_printf(out, "%s%s %s", items++ ? ", " : "",
				   text_count(h->quality[i], n), quality_words[i]);
	}
	buf_puts(out, items ? "\n" : "none\n");
}

static void put_text_line(struct buf *out, const char *label, const char *text)
{
	if (!text || !*text)
		return;
	put_label(out, label);
	put_cut(out, text, 4000);
	buf_putc(out, '\n');
}

static void put_head(struct buf *out, const struct incident *in, const struct ledger *ledger)
{
	const struct incident_head *h = &in->head;
	char time[OS_TIME_TEXT_BYTES], rss[CMD_NUMBER_BYTES], cpu[CMD_NUMBER_BYTES];
	uint32_t named, nframes = count_frames(in, &named);

	os_time_text(h->trigger_wall_ns, time);
	buf_printf(out, "Incident %" PRId64 "%s%s%s%s\n", h->id,
		   h->state == INCIDENT_COMPLETE ? "" : ", ",
		   h->state == INCIDENT_COMPLETE ? "" : incident_state_text(h->state),
		   h->pinned ? ", pinned" : "",
		   h->state == INCIDENT_PARTIAL ? ": the recorder ended before it was complete"
						: "");
	put_text_line(out, "Fired", h->reason);
	put_text_line(out, "Rule", h->rule);
	put_label(out, "When");
	buf_printf(out, "%s on %s (%s)\n", time, h->host ? h->host : "?",
		   h->host_text ? h->host_text : "?");
	put_window(out, h);
	put_samples(out, in);
	if (ledger->nrows) {
		put_label(out, "Expected");
		losses_line(ledger, out);
		buf_putc(out, '\n');
	}
	put_losses(out, h);
	put_quality(out, h);
	put_label(out, "Names");
	buf_printf(out, "%" PRIu32 " of %" PRIu32 " frames have a name\n", named, nframes);
	put_label(out, "Recorder");
	buf_printf(out, "%s of CPU time so far, %s of memory; version %s\n",
		   text_seconds((double)h->recorder_cpu_ns / 1e9, cpu),
		   text_bytes(h->recorder_rss_bytes, rss),
		   h->recorder_version ? h->recorder_version : "?");
	times_put(in, out);
	own_put(in, out);
	put_text_line(out, "Note", h->note);
}

/* ---- for people: what was hot ---------------------------------------------------------------- */

struct page {
	struct buf *out;
	const struct incident *in;
	uint64_t whole;                      /* shares are parts of this */
	size_t columns;                      /* of the terminal */
};

static void put_process_name(const struct page *p, uint32_t process)
{
	char label[PROCESS_LABEL_BYTES];

	if (process == UINT32_MAX) {
		buf_puts(p->out, "(no process)");
		return;
	}
	put_cut(p->out, incident_process_label(p->in, process, label), 60);
	buf_printf(p->out, " (%" PRIu32 ")", p->in->processes[process].pid);
}

/* The quality of its stacks, as shares of its samples. */
static void put_process_quality(struct buf *out, const struct summary_process *p)
{
	unsigned i, items = 0;

	for (i = QUALITY_COMPLETE; i < QUALITIES; i++) {
		if (p->quality[i])
			buf_printf(out, "%s%.0f %% %s", items++ ? ", " : "",
				   100 * (double)p->quality[i] / (double)p->samples,
				   quality_words[i]);
	}
	if (!items)
		buf_puts(out, "no stacks");
}

static void put_count(const struct page *p, uint64_t n)
{
	char text[CMD_NUMBER_BYTES];

	if (p->in->several_periods)
		snprintf(text, sizeof(text), "%.3f s", (double)n / 1e6);
	else
		text_count(n, text);
	buf_printf(p->out, "%11s  ", text);
	put_share(p->out, n, p->whole);
	buf_puts(p->out, "  ");
}

/* Why a process has incomplete stacks and what to do about it, if known; else NULL. */
static const char *stack_advice(const struct page *p, const struct summary_process *s)
{
	const struct incident_process *process;

	/* Only Linux copies stacks. */
	if (s->process != UINT32_MAX && 20 * s->quality[QUALITY_TRUNCATED] >= s->samples &&
	    p->in->head.host_text && !strncmp(p->in->head.host_text, "Linux", 5))
		return "truncated: deeper than the copied part of a stack (32 KB unless --stack-kb "
		       "says less)";
	if (s->process == UINT32_MAX ||
	    2 * (s->quality[QUALITY_BROKEN] + s->quality[QUALITY_FP]) < s->samples)
		return NULL;
	process = &p->in->processes[s->process];
	if (strcmp(process->name, "java") == 0 &&
	    !strstr(process->cmdline, "-XX:+PreserveFramePointer"))
		return "a JVM keeps no frame pointers unless started with "
		       "-XX:+PreserveFramePointer";
	return NULL;
}

static const char *counted(const struct page *p)
{
	return p->in->several_periods ? "CPU TIME" : "SAMPLES";
}

static void put_processes(const struct page *p, const struct summary *s)
{
	const char *advice;
	uint32_t i;

	buf_printf(p->out, "\n%11s  %7s  PROCESS AND ITS STACKS\n", counted(p), "SHARE");
	for (i = 0; i < s->nprocesses && i < TOP_PROCESSES; i++) {
		put_count(p, s->processes[i].samples);
		put_process_name(p, s->processes[i].process);
		buf_puts(p->out, ": ");
		put_process_quality(p->out, &s->processes[i]);
		buf_putc(p->out, '\n');
		advice = stack_advice(p, &s->processes[i]);
		if (advice)
			buf_printf(p->out, "%22s  %s\n", "", advice);
	}
	if (s->nprocesses > TOP_PROCESSES)
		buf_printf(p->out, "%22s  and %" PRIu32 " more\n", "",
			   s->nprocesses - TOP_PROCESSES);
}

static void put_functions(const struct page *p, const struct summary *s, bool inclusive)
{
	uint32_t i;

	buf_printf(p->out, "\n%11s  %7s  FUNCTION\n", inclusive ? "INCLUSIVE" : "SELF", "SHARE");
	for (i = 0; i < s->nfunctions && i < TOP_FUNCTIONS; i++) {
		const struct summary_function *f = &s->functions[i];
		uint64_t n = inclusive ? f->inclusive : f->self;

		if (!n)
			break;
		put_count(p, n);
		fit_last(p->out, f->name, 0, p->columns);
		buf_putc(p->out, '\n');
	}
}

/* " (inlined)  main.c:12", as far as it is known; only the file's own name, --json has its path. */
static void put_line(struct buf *out, const struct incident_frame *f)
{
	if (f->flags & FRAME_INLINED)
		buf_puts(out, " (inlined)");
	if (f->file && f->line)
		buf_printf(out, "  %s:%" PRIu32, text_base_name(f->file), f->line);
}

static void put_frames(const struct page *p, uint32_t node, bool addresses)
{
	struct buf name = {0};
	uint32_t n;

	for (n = 0; node != STACK_NONE && n < STACK_FRAMES; n++) {
		buf_reset(&name);
		incident_frame_text(p->in, p->in->stacks[node].frame, addresses, &name);
		put_line(&name, &p->in->frames[p->in->stacks[node].frame]);
		fit_last(p->out, buf_text(&name), 24, p->columns);
		buf_putc(p->out, '\n');
		node = p->in->stacks[node].parent;
	}
	for (n = 0; node != STACK_NONE; n++)
		node = p->in->stacks[node].parent;
	if (n)
		buf_printf(p->out, "%24s(%" PRIu32 " more callers)\n", "", n);
	buf_free(&name);
}

static void put_stack(const struct page *p, const struct summary_stack *s, bool addresses)
{
	put_count(p, s->samples);
	put_process_name(p, s->process);
	buf_putc(p->out, '\n');
	put_frames(p, s->stack, addresses);
}

static void put_event_stack(const struct page *p, bool addresses)
{
	const struct incident_event *e;
	uint32_t node = event_stack(p->in, &e);

	if (node == STACK_NONE)
		return;
	buf_printf(p->out, "\n%22s  STACK OF THE EVENT THAT FIRED, LEAF FIRST\n%22s  ", "", "");
	put_process_name(p,
			 e->thread == THREAD_NONE ? UINT32_MAX : p->in->threads[e->thread].process);
	buf_putc(p->out, '\n');
	put_frames(p, node, addresses);
}

static void put_hot(const struct page *p, struct summary *s, const struct options *o)
{
	bool user_only = !o->kernel || o->no_kernel;
	char n[CMD_NUMBER_BYTES];
	uint32_t i;

	put_processes(p, s);
	put_functions(p, s, false);
	summary_by_inclusive(s);
	put_functions(p, s, true);
	if (s->nstacks)
		buf_printf(p->out, "\n%11s  %7s  STACK, LEAF FIRST\n", counted(p), "SHARE");
	for (i = 0; i < s->nstacks && i < TOP_STACKS; i++)
		put_stack(p, &s->stacks[i], o->addresses);
	if (s->without_stack)
		buf_printf(p->out, "\n%s samples have no stack%s.\n",
			   text_count(s->without_stack, n), user_only ? " outside the kernel" : "");
	if (user_only)
		buf_puts(p->out, "\nKernel frames are left out; --kernel shows them.\n");
}

/* Four significant digits; whole when larger: 93.41, 12345678. */
static const char *reading(double v, char out[CMD_NUMBER_BYTES])
{
	if (v != v)
		snprintf(out, CMD_NUMBER_BYTES, "-");
	else
		snprintf(out, CMD_NUMBER_BYTES, fabs(v) >= 1000 ? "%.0f" : "%.4g", v);
	return out;
}

static void put_counter(struct buf *out, const char *at, const char *min, const char *mean,
			const char *max, const char *name, size_t columns)
{
	buf_printf(out, "%11s  %11s  %11s  %11s  ", at, min, mean, max);
	fit_last(out, name, 0, columns);
	buf_putc(out, '\n');
}

static int put_counters(struct buf *out, const struct incident *in, size_t columns, struct err *err)
{
	struct summary_counter *counters;
	char at[CMD_NUMBER_BYTES], min[CMD_NUMBER_BYTES], mean[CMD_NUMBER_BYTES];
	char max[CMD_NUMBER_BYTES];
	uint32_t n, i;
	int rc = summary_counters(in, &counters, &n, err);

	if (rc)
		return rc;
	if (n) {
		buf_putc(out, '\n');
		put_counter(out, "AT TRIGGER", "MIN", "MEAN", "MAX", "COUNTER", columns);
	}
	for (i = 0; i < n; i++)
		put_counter(out, reading(counters[i].at_trigger, at), reading(counters[i].min, min),
			    reading(counters[i].mean, mean), reading(counters[i].max, max),
			    counters[i].name, columns);
	free(counters);
	return 0;
}

static int put_page(struct buf *out, struct incident *in, const struct ledger *ledger,
		    const struct options *o, struct err *err)
{
	struct page page = {.out = out, .in = in, .columns = fit_columns()};
	struct summary summary = {0};
	int rc = 0;

	put_head(out, in, ledger);
	if (o->losses) {
		losses_tables(ledger, out);
		return 0;
	}
	rc = put_counters(out, in, page.columns, err);
	if (!rc)
		rc = sum_up(in, o, &summary, err);
	if (!rc)
		put_event_stack(&page, o->addresses);
	if (rc || !in->head.samples) {
		summary_free(&summary);
		return rc;
	}
	page.whole = summary.whole;
	if (!rc)
		put_hot(&page, &summary, o);
	summary_free(&summary);
	return rc;
}

/* Filter to the requested part. Kernel frames stay for now, because --json counts them. */
static int narrow(struct incident *in, const struct options *o, struct err *err)
{
	struct incident_filter filter = {
		.process = o->process, .tid = o->tid,
		.from_ns = o->from_ns, .has_from = o->from_ns != OPTION_NO_TIME,
		.to_ns = o->to_ns, .has_to = o->to_ns != OPTION_NO_TIME,
	};

	if (!filter.process && !filter.tid && !filter.has_from && !filter.has_to)
		return 0;
	return incident_filter(in, &filter, err);
}

int cmd_show(const struct options *o, struct err *err)
{
	/* of the whole incident: a part has no expectation of its own */
	struct ledger ledger = {0};
	struct incident in = {0};
	struct buf out = {0};
	int rc = cmd_load(o, &in, err);

	if (!rc)
		rc = narrow(&in, o, err);
	if (!rc && !(o->process || o->tid))
		rc = ledger_new(&in, &ledger, err);
	if (!rc && o->losses && (o->process || o->tid))
		rc = err_set(err, ERR_USAGE,
			     "--losses is about CPUs: omit --process and --thread");
	if (!rc && o->json && o->losses)
		losses_json(&ledger, &out);
	else if (!rc)
		rc = o->json ? put_json(&out, &in, o, err)
			     : put_page(&out, &in, &ledger, o, err);
	if (!rc)
		rc = cmd_print_fitted(o, &out, err);
	if (!rc)
		rc = incident_whole(&in, err);
	buf_free(&out);
	ledger_free(&ledger);
	incident_free(&in);
	return rc;
}
