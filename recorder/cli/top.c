/*
 * top: where the time goes now. As LiveStacks prints it: the stacks go to standard output; the time
 * of each summary, and what it cost, to standard error, as there. Or, on a terminal, as a screen.
 */
#include "cli/cmd.h"
#include "cli/live.h"
#include "listing/sheet.h"

#include "base/moment.h"
#include "base/os.h"
#include "base/text.h"
#include "engine/engine.h"
#include "export/export.h"
#include "screen/terminal.h"
#include "screen/view.h"
#include "source/stopped/thread_stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define USUAL_NS (5 * NS_PER_SEC)            /* --count without --interval */
#define KEEP_NS (4 * NS_PER_SEC)

/* Of the screen. */
#define REFRESH_NS (3 * NS_PER_SEC)          /* as top of procps-ng */
#define REFRESH_MAX_NS (10 * NS_PER_SEC)     /* whatever it costs: no sample may pass unseen */
#define REACH_NS (50 * NS_PER_MS)            /* between two looks at whether a window is there */
#define COST_PARTS 200u                      /* a refresh costs one of so many parts of the time */

struct top {
	const struct options *o;
	struct live *live;
	bool folded;
	uint64_t interval_ns;                /* 0 = one summary, at the end */
	uint64_t events;
	bool stopped;
};

/* ---- a summary ------------------------------------------------------------------------------- */

static void put_time(void)
{
	char text[MOMENT_TEXT_BYTES];
	unsigned hour, minute, second;

	moment_local_text(os_wall_ns(), text);
	if (sscanf(text + 11, "%u:%u:%u", &hour, &minute, &second) == 3)
		fprintf(stderr, "%u:%02u:%02u %s\n", hour % 12 ? hour % 12 : 12, minute, second,
			hour < 12 ? "AM" : "PM");
}

static int put_stacks(const struct top *t, const struct incident *in, enum stream stream,
		      struct err *err)
{
	const struct export_options opt = {
		.stream = stream, .offsets = true, .top = t->folded ? 0 : t->o->top,
		.min_weight = t->o->min_count,
	};
	const struct exporter *e = exporter_by_name(t->folded ? "folded" : "livestacks");
	struct buf text = {0};
	struct out *out = NULL;
	int rc = out_to_buf(&text, &out, err);

	if (!rc)
		rc = e->write(in, &opt, out, err);
	if (out)
		rc = out_close(out, rc ? NULL : err) ? ERR_MEMORY : rc;
	if (!rc && t->o->clear)
		rc = os_write(os_stdout(), "\033[H\033[2J\033[3J", 11, err);
	if (!rc) {
		put_time();
		rc = os_write(os_stdout(), buf_text(&text), text.len, err);
	}
	buf_free(&text);
	return rc;
}

static int summary(struct top *t, struct err *err)
{
	char flooded[ENGINE_FLOODED_BYTES];
	uint64_t start_ns = os_now_ns();
	struct incident in = {0};
	enum stream stream;
	int rc = live_take(t->live, &stream, &in, err);

	if (!rc)
		rc = put_stacks(t, &in, stream, err);
	if (!rc)
		fprintf(stderr, "  Time aggregating/resolving: %" PRIu64 "ms\n",
			(uint64_t)((os_now_ns() - start_ns) / NS_PER_MS));
	if (!rc && (in.head.lost || in.head.lost_by_kind[LOSS_FLOOD]))
		fprintf(stderr, "  Lost: %" PRIu64 "%s\n", in.head.lost,
			engine_flooded_text(in.head.lost_by_kind[LOSS_FLOOD], flooded));
	if (!rc && live_bare_events(t->live))
		fprintf(stderr, "  Events without a stack: %" PRIu64 "\n",
			live_bare_events(t->live));
	t->events += in.nsamples;
	incident_free(&in);
	return rc;
}

/* ---- summaries ------------------------------------------------------------------------------- */

/* Until the window is to end; without an interval until somebody says stop. */
static void wait_for_end(struct top *t)
{
	uint64_t due_ns = live_from_ns(t->live) + t->interval_ns, now_ns, wait_ns;

	while (!t->stopped) {
		now_ns = os_wall_ns();
		if (t->interval_ns && now_ns >= due_ns)
			return;
		wait_ns = t->interval_ns && due_ns - now_ns < KEEP_NS ? due_ns - now_ns : KEEP_NS;
		if (os_signal_wait(wait_ns) == OS_SIGNAL_STOP)
			t->stopped = true;
		else if (wait_ns == KEEP_NS)
			live_keep(t->live);
	}
	fprintf(stderr, "Ctrl+C pressed, stopping...\n");
}

static int summaries(struct top *t, struct err *err)
{
	uint32_t n = 0;
	int rc = 0;

	while (!rc && !t->stopped && (!t->o->times || n < t->o->times)) {
		wait_for_end(t);
		if (!t->stopped || !t->interval_ns)
			rc = summary(t, err);
		n++;
	}
	if (!rc)
		fprintf(stderr, "\nTotal events seen: %" PRIu64 "\n", t->events);
	return rc;
}

static int check_format(const struct options *o, struct top *t, struct err *err)
{
	t->folded = o->format && text_same_fold(o->format, "folded");
	if (o->format && !t->folded && !text_same_fold(o->format, "livestacks"))
		return err_set(err, ERR_USAGE, "top prints the formats livestacks and folded, not "
			       "'%.60s'; 'recorder run -p PID -o FILE' writes the others",
			       o->format);
	return 0;
}

/* A number means a process that is there; one with this name may still start. */
static int check_process(const struct options *o, struct err *err)
{
	uint32_t pid;

	if (!o->process || thread_stacks_find(o->process, &pid, 1))
		return 0;
	if (!o->process[strspn(o->process, "0123456789,")])
		return err_set(err, ERR_NOT_FOUND, "there is no process '%.200s'; 'recorder top' "
			       "without -p shows which there are", o->process);
	cmd_note("there is no process '%.200s' now; what starts under this name is shown",
		 o->process);
	return 0;
}

/* ---- the screen ------------------------------------------------------------------------------ */

struct screen {
	const struct options *o;
	struct live *live;
	struct terminal *terminal;
	struct view *view;
	struct page page;
	uint64_t due_ns;                     /* of the next window, by the recorder's clock */
	uint64_t to_ns;                      /* the end of the one that is awaited; 0 = none is */
	uint64_t shown_ns;                   /* the end of the one that is shown; 0 = none is */
	uint64_t kept_ns;                    /* when the recorder last heard of us */
	uint64_t cost_ns;                    /* CPU time of this thread at the last one */
	bool over, failed;
};

static void draw(struct screen *s)
{
	unsigned columns, rows;

	terminal_size(s->terminal, &columns, &rows);
	if (columns && rows && !view_draw(s->view, &s->page, columns, rows))
		terminal_draw(s->terminal, &s->page);
}

/* An error is shown, and what is on the screen stays: a recorder may be started again. */
static void fail(struct screen *s, const struct err *err)
{
	char text[sizeof(err->text) + 32];

	snprintf(text, sizeof(text), "%s; trying again", err->text);
	view_say(s->view, true, text);
	s->failed = true;
	s->to_ns = 0;
	s->due_ns = os_now_ns() + REFRESH_NS;
}

/* The window that ends at a moment, which was reached. */
static int show(struct screen *s, uint64_t to_ns, struct err *err)
{
	struct view_facts facts = {.span_ns = view_span_ns(s->view), .ncpus = os_cpu_count()};
	char clock[MOMENT_TEXT_BYTES];
	struct incident in = {0};
	struct buf from = {0};
	int rc = live_load(s->live, to_ns, view_kernel(s->view), &facts.span_ns, &in, err);

	if (!rc) {
		moment_local_text(to_ns, clock);
		live_put_source(s->live, &from);
		facts.clock = clock + 11;
		facts.from = buf_text(&from);
		facts.lost = in.head.lost;
		rc = view_load(s->view, &in, &facts, err);
		s->shown_ns = to_ns;
	}
	if (!rc && s->failed)
		view_say(s->view, false, NULL);
	s->failed = s->failed && rc;
	incident_free(&in);
	buf_free(&from);
	return rc;
}

/* The next is due when this one, and all that was drawn since, has cost its part of the time. */
static void note_cost(struct screen *s)
{
	uint64_t now_ns = os_thread_cpu_ns(), wait_ns = (now_ns - s->cost_ns) * COST_PARTS;

	if (wait_ns < REFRESH_NS)
		wait_ns = REFRESH_NS;
	s->cost_ns = now_ns;
	s->due_ns = os_now_ns() + (wait_ns < REFRESH_MAX_NS ? wait_ns : REFRESH_MAX_NS);
}

/* Begin a window when it is due, and show it once it can be read. */
static void refresh(struct screen *s)
{
	struct err err = {0};
	bool can = false;
	int rc = 0;

	if (!s->to_ns && !view_paused(s->view) && os_now_ns() >= s->due_ns)
		s->to_ns = os_wall_ns();
	if (!s->to_ns) {
		if (os_now_ns() >= s->kept_ns + KEEP_NS) {
			live_keep(s->live);
			s->kept_ns = os_now_ns();
		}
		return;
	}
	rc = live_reach(s->live, s->to_ns, &can, &err);
	s->kept_ns = os_now_ns();
	if (!rc && !can)
		return;
	if (!rc)
		rc = show(s, s->to_ns, &err);
	s->to_ns = 0;
	note_cost(s);
	if (rc)
		fail(s, &err);
	draw(s);
}

static void keep_incident(struct screen *s)
{
	struct buf said = {0};
	struct err err = {0};

	if (live_snapshot(s->live, view_reason(s->view), &said, &err))
		view_say(s->view, true, err.text);
	else
		view_say(s->view, false, buf_text(&said));
	buf_free(&said);
}

static void press(struct screen *s, uint32_t key)
{
	struct err err = {0};

	switch (view_key(s->view, key)) {
	case VIEW_WISH_QUIT:
		s->over = true;
		break;
	case VIEW_WISH_LOAD:
		if (s->shown_ns && show(s, s->shown_ns, &err))
			fail(s, &err);
		break;
	case VIEW_WISH_KEEP:
		keep_incident(s);
		break;
	default:
		break;
	}
}

/* Keys that have come together are drawn once. */
static void wait_for_key(struct screen *s)
{
	uint64_t now_ns = os_now_ns(), wait_ns = s->to_ns ? REACH_NS : KEEP_NS;
	enum terminal_event event;
	uint32_t key = 0;

	if (!s->to_ns && !view_paused(s->view) && s->due_ns < now_ns + wait_ns)
		wait_ns = s->due_ns > now_ns ? s->due_ns - now_ns : 0;
	event = terminal_wait(s->terminal, wait_ns, &key);
	if (event == TERMINAL_TIME)
		return;
	for (; event != TERMINAL_TIME && !s->over; event = terminal_wait(s->terminal, 0, &key)) {
		if (event == TERMINAL_KEY)
			press(s, key);
		s->over |= event == TERMINAL_END;
		if (event == TERMINAL_RESUMED) {
			live_restart(s->live);
			s->to_ns = 0;
		}
	}
	if (!s->over)
		draw(s);
}

static int run_screen(const struct options *o, struct terminal *terminal, struct err *err)
{
	struct screen s = {.o = o, .terminal = terminal};
	int rc = live_open(o, true, &s.live, err);

	if (!rc && !(s.view = view_new(o->capture.events ? STREAM_EVENT : STREAM_CPU)))
		rc = err_memory(err, "for the screen");
	if (!rc) {
		s.due_ns = os_now_ns() + REFRESH_NS / 2;
		s.cost_ns = os_thread_cpu_ns();
		draw(&s);
		while (!s.over) {
			refresh(&s);
			wait_for_key(&s);
		}
	}
	view_free(s.view);
	page_free(&s.page);
	terminal_close(terminal);            /* before what the end may say */
	live_close(s.live);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Nobody asked for text: NULL, with a remark where the terminal is no screen. */
static struct terminal *screen_of(const struct options *o)
{
	struct terminal *terminal = NULL;
	struct err err = {0};

	if (o->interval_s > 0 || o->times || o->format || o->clear ||
	    !os_is_terminal(os_stdout()))
		return NULL;
	if (terminal_open(sheet_wants_color(o), &terminal, &err))
		cmd_note("no live screen: %s; Ctrl-C prints a summary", err.text);
	return terminal;
}

int cmd_top(const struct options *o, struct err *err)
{
	const double interval_s = o->interval_s > 0 ? o->interval_s : 0;
	struct top t = {.o = o, .interval_ns = (uint64_t)(interval_s * 1e9)};
	struct terminal *terminal;
	int rc = check_format(o, &t, err);

	if (!rc)
		rc = check_process(o, err);
	if (o->times && !t.interval_ns)
		t.interval_ns = USUAL_NS;
	if (!rc)
		rc = os_signals_open(err);
	if (rc)
		return rc;
	terminal = screen_of(o);
	if (terminal) {
		rc = run_screen(o, terminal, err);
	} else {
		rc = live_open(o, false, &t.live, err);
		if (!rc)
			rc = summaries(&t, err);
		live_close(t.live);
	}
	os_signals_close();
	return rc;
}
