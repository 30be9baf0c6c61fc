#include "screen/view_private.h"

#include "base/array.h"
#include "base/os.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_BYTES 200u
#define LOAD_NS (2 * NS_PER_SEC)             /* about a refresh */

static const unsigned view_spans[] = {1, 2, 5, 10, 30, 60, 120};       /* seconds */
#define SPAN_USUAL 3u

struct view *view_new(enum stream first)
{
	struct view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->stream = first;
	v->span = SPAN_USUAL;
	v->ncpus = 1;
	return v;
}

void view_free(struct view *v)
{
	unsigned i;

	if (!v)
		return;
	view_drop_window(v);
	incident_free(&v->in);
	for (i = 0; i < PANES; i++) {
		free(v->lists[i].rows);
		buf_free(&v->lists[i].filter);
		buf_free(&v->chosen[i]);
	}
	buf_free(&v->clock);
	buf_free(&v->from);
	buf_free(&v->answer);
	buf_free(&v->reason);
	buf_free(&v->said);
	free(v);
}

static void set_text(struct buf *b, const char *text)
{
	buf_reset(b);
	buf_puts(b, text);
}

/* CPUs that were busy in the last span_ns of the window. */
static double busy(const struct view *v, uint64_t span_ns)
{
	uint64_t from_ns = v->in.head.t1_ns > span_ns ? v->in.head.t1_ns - span_ns : 0, sum = 0;
	uint32_t i;

	for (i = 0; i < v->in.nsamples; i++)
		if (v->in.samples[i].stream == STREAM_CPU && v->in.samples[i].time_ns > from_ns)
			sum += v->in.samples[i].weight;
	return span_ns ? (double)sum / (double)span_ns : 0;
}

int view_load(struct view *v, struct incident *in, const struct view_facts *facts,
	      struct err *err)
{
	view_drop_window(v);
	incident_free(&v->in);
	v->in = *in;
	*in = (struct incident){0};
	v->span_ns = facts->span_ns;
	v->ncpus = facts->ncpus ? facts->ncpus : 1;
	v->lost = facts->lost;
	set_text(&v->clock, facts->clock);
	set_text(&v->from, facts->from);
	if (v->nloads == VIEW_LOADS)
		memmove(v->loads, v->loads + 1, --v->nloads * sizeof(*v->loads));
	v->busy = busy(v, v->span_ns);
	v->loads[v->nloads++] = busy(v, v->span_ns < LOAD_NS ? v->span_ns : LOAD_NS);
	if (v->clock.failed || v->from.failed || view_count_window(v))
		return err_memory(err, "for the screen");
	return 0;
}

bool view_paused(const struct view *v)
{
	return v->paused;
}

bool view_kernel(const struct view *v)
{
	return v->kernel;
}

uint64_t view_span_ns(const struct view *v)
{
	return view_spans[v->span] * NS_PER_SEC;
}

const char *view_reason(const struct view *v)
{
	return buf_text(&v->reason);
}

void view_say(struct view *v, bool bad, const char *text)
{
	set_text(&v->said, text ? text : "");
	v->said_bad = bad;
}

/* ---- the cursor ------------------------------------------------------------------------------ */

/* The row at the cursor is what the panes below it are about. */
static void choose(struct view *v, enum pane pane, uint32_t at)
{
	struct view_list *l = &v->lists[pane];
	enum pane below;

	if (!l->n)
		return;
	l->at = at < l->n ? at : l->n - 1;
	set_text(&v->chosen[pane], pane == PANE_STACK ? "" : l->rows[l->at].text);
	for (below = pane + 1; below < PANES; below++) {
		buf_reset(&v->chosen[below]);
		v->lists[below].at = v->lists[below].top = 0;
	}
	v->scroll = 0;
}

/* Up and down by rows; in a stack by frames. */
static void move(struct view *v, int64_t by)
{
	struct view_list *l = &v->lists[v->focus];
	int64_t at = v->focus == PANE_STACK ? v->scroll : l->at;

	at = at + by < 0 ? 0 : at + by;
	if (at > UINT32_MAX - 1)
		at = UINT32_MAX - 1;
	if (v->focus == PANE_STACK)
		v->scroll = (uint32_t)at;        /* drawing knows how long it is */
	else
		choose(v, v->focus, (uint32_t)at);
}

static void another_stack(struct view *v, bool next)
{
	struct view_list *l = &v->lists[PANE_STACK];

	if (next)
		choose(v, PANE_STACK, l->at + 1);
	else if (l->at)
		choose(v, PANE_STACK, l->at - 1);
}

/* Give a pane the keys: its cursor then means something. */
static void focus_on(struct view *v, enum pane pane)
{
	v->focus = pane;
	if (pane == PANE_FUNCTIONS && !v->chosen[pane].len)
		choose(v, pane, 0);
}

static void deeper(struct view *v)
{
	if (v->focus == PANE_STACK)
		v->zoomed = true;
	else
		focus_on(v, v->focus + 1);
}

/* What was done last is undone first. */
static void back(struct view *v)
{
	struct buf *filter = &v->lists[v->focus].filter;

	if (v->zoomed) {
		v->zoomed = false;
	} else if (filter->len) {
		buf_reset(filter);
	} else if (v->focus != PANE_PROCESSES) {
		buf_reset(&v->chosen[v->focus]);
		v->lists[v->focus].at = 0;
		v->focus--;
	} else {
		choose(v, PANE_PROCESSES, 0);
	}
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void ask(struct view *v, enum view_asks what, const char *already)
{
	v->asks = what;
	set_text(&v->answer, already);
}

static void take_back(struct buf *b)
{
	while (b->len && ((unsigned char)b->data[b->len - 1] & 0xc0) == 0x80)
		b->data[--b->len] = '\0';
	if (b->len)
		b->data[--b->len] = '\0';
}

/* A filter works while it is typed. */
static enum view_wish answer_key(struct view *v, uint32_t key)
{
	enum view_asks asks = v->asks;
	char bytes[4];

	if (key == VIEW_KEY_ESCAPE)
		buf_reset(&v->answer);
	else if (key == VIEW_KEY_BACKSPACE)
		take_back(&v->answer);
	else if (key >= ' ' && key < VIEW_KEY_UP && v->answer.len < ANSWER_BYTES)
		buf_put(&v->answer, bytes, utf8_encode(key, bytes));
	if (asks == ASKS_FILTER)
		set_text(&v->lists[v->focus].filter, buf_text(&v->answer));
	if (key != VIEW_KEY_ESCAPE && key != VIEW_KEY_ENTER)
		return VIEW_WISH_NONE;
	v->asks = ASKS_NOTHING;
	if (asks != ASKS_REASON || key == VIEW_KEY_ESCAPE)
		return VIEW_WISH_NONE;
	set_text(&v->reason, buf_text(&v->answer));
	return VIEW_WISH_KEEP;
}

static void next_stream(struct view *v)
{
	/* What is still there is told by incidents only. */
	v->stream = (enum stream)((v->stream + 1) % STREAM_RSS_NET);
	if (v->loaded && view_count_window(v))
		view_say(v, true, "no memory");
}

static void by_name(struct view *v)
{
	v->by_name = !v->by_name;
	choose(v, PANE_PROCESSES, 0);
	if (v->loaded && view_count_window(v))
		view_say(v, true, "no memory");
}

static enum view_wish longer(struct view *v, bool is)
{
	if (is && v->span + 1 < COUNT_OF(view_spans))
		v->span++;
	else if (!is && v->span)
		v->span--;
	return VIEW_WISH_LOAD;
}

static enum view_wish letter(struct view *v, uint32_t key)
{
	switch (key) {
	case 'q':
		return VIEW_WISH_QUIT;
	case '?':
	case 'h':
		v->helps = true;
		break;
	case ' ':
		v->paused = !v->paused;
		break;
	case 'o':
		v->by_inclusive = !v->by_inclusive;
		break;
	case 'g':
		by_name(v);
		break;
	case 'm':
		next_stream(v);
		break;
	case 'z':
		v->zoomed = !v->zoomed;
		break;
	case 'k':
		v->kernel = !v->kernel;
		return VIEW_WISH_LOAD;
	case '+':
	case '-':
		return longer(v, key == '+');
	case '/':
		if (v->focus != PANE_STACK)
			ask(v, ASKS_FILTER, buf_text(&v->lists[v->focus].filter));
		break;
	case 's':
		ask(v, ASKS_REASON, "");
		break;
	default:
		break;
	}
	return VIEW_WISH_NONE;
}

static void cursor_key(struct view *v, uint32_t key)
{
	int64_t page = v->page_rows[v->focus] > 1 ? v->page_rows[v->focus] - 1 : 1;

	switch (key) {
	case VIEW_KEY_UP:
		move(v, -1);
		break;
	case VIEW_KEY_DOWN:
		move(v, 1);
		break;
	case VIEW_KEY_PAGE_UP:
		move(v, -page);
		break;
	case VIEW_KEY_PAGE_DOWN:
		move(v, page);
		break;
	case VIEW_KEY_HOME:
		move(v, -(int64_t)UINT32_MAX);
		break;
	case VIEW_KEY_END:
		move(v, UINT32_MAX);
		break;
	case VIEW_KEY_LEFT:
	case VIEW_KEY_RIGHT:
		another_stack(v, key == VIEW_KEY_RIGHT);
		break;
	default:
		break;
	}
}

static enum view_wish act(struct view *v, uint32_t key)
{
	if (key >= VIEW_KEY_UP && key <= VIEW_KEY_END) {
		cursor_key(v, key);
		return VIEW_WISH_NONE;
	}
	switch (key) {
	case VIEW_KEY_TAB:
		focus_on(v, (enum pane)((v->focus + 1) % PANES));
		break;
	case VIEW_KEY_BACK_TAB:
		focus_on(v, (enum pane)((v->focus + PANES - 1) % PANES));
		break;
	case VIEW_KEY_ENTER:
		deeper(v);
		break;
	case VIEW_KEY_ESCAPE:
		back(v);
		break;
	case VIEW_KEY_HELP:
		v->helps = true;
		break;
	default:
		return letter(v, key);
	}
	return VIEW_WISH_NONE;
}

enum view_wish view_key(struct view *v, uint32_t key)
{
	enum view_wish wish = VIEW_WISH_NONE;

	buf_reset(&v->said);
	if (v->asks)
		wish = answer_key(v, key);
	else if (v->helps)
		v->helps = false;
	else
		wish = act(v, key);
	if (view_count(v))
		view_say(v, true, "no memory");
	return wish;
}
