/* The page: a bar, the load, three panes, and a line of keys or of what was said. */
#include "screen/view_private.h"

#include "base/array.h"
#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SIDE_BY_SIDE 120u                    /* columns from which the stack stands on the right */
#define SMALL_ROWS 14u                       /* below, one pane has all of it */
#define LEAST_ROWS 4u
#define LEAST_COLUMNS 20u
#define BAR_COLUMNS 10u
#define BAR_FROM 70u                         /* narrower panes have no bars */
#define HOT_PCT 10.0

static const char *const nothing_words[STREAMS_MAX] = {
	[STREAM_CPU] = "nothing ran on a CPU",
	[STREAM_OFF_CPU] = "no waiting is recorded: 'recorder top --thread-time' does",
	[STREAM_ALLOC] = "no allocations are recorded",
	[STREAM_EVENT] = "no events are recorded: 'recorder top -e LIST' does",
	[STREAM_RSS] = "no page faults are recorded",
};

static const char *const help_lines[] = {
	"Where the time goes now: processes, the functions of the chosen one, and the",
	"stacks of the chosen function, the heaviest first.",
	"",
	"  Up, Down     choose; in a stack: scroll     Enter   go deeper",
	"  Left, Right  another stack                  Esc     undo, go back",
	"  Tab          the next pane has the keys     z       this pane alone",
	"  /            only rows with a text          o       order: self, inclusive",
	"  m            CPU, waiting, memory, events   g       one row a name",
	"  k            kernel frames                  + -     a longer, shorter time",
	"  Space        pause and go on                s       keep an incident",
	"  ?            this page                      q       quit",
	"",
	"Busy    a digit each time the page changed, the last one is now: _ nothing,",
	"        . under 1 %, o under 10 %, 1 to 9 tenths of all CPUs.",
	"CPU %   of one CPU: two busy CPUs are 200 %.",
	"WAIT %  100 % is one thread that waits all the time.",
	"SELF %  share of the process's time in the function itself; INCL %: also in",
	"        what it calls.",
};

struct box {
	unsigned row, column, width, height;         /* its first row is the title */
};

/* ---- words ----------------------------------------------------------------------------------- */

static double share(uint64_t part, uint64_t of)
{
	return of ? 100.0 * (double)part / (double)of : 0;
}

/* Eight columns. */
static void put_cost(const struct view *v, uint64_t weight, char out[16])
{
	static const char units[] = " KMGTP";
	double rate = v->span_ns ? (double)weight * 1e9 / (double)v->span_ns : 0;
	unsigned unit = 0;

	if (stream_is_time(v->stream)) {
		snprintf(out, 16, "%8.1f", rate / 1e7);
		return;
	}
	if (stream_is_bytes(v->stream))
		for (; rate >= 1000 && unit < sizeof(units) - 2; unit++)
			rate /= 1000;
	snprintf(out, 16, unit ? "%7.1f%c" : "%8.1f", rate, units[unit]);
}

static const char *scope_text(const struct view *v)
{
	return v->chosen[PANE_PROCESSES].len ? buf_text(&v->chosen[PANE_PROCESSES])
					     : "all processes";
}

static void put_filter(struct buf *out, const struct view *v, enum pane pane)
{
	if (v->lists[pane].filter.len)
		buf_printf(out, "  with '%s'", buf_text(&v->lists[pane].filter));
}

static const char *stream_words(enum stream stream)
{
	if (stream_is_time(stream))
		return stream == STREAM_CPU ? "CPU %" : "WAIT %";
	return stream_is_bytes(stream) ? "BYTES/s" : "EVENTS/s";
}

static void put_title(const struct view *v, enum pane pane, bool bars, struct buf *out)
{
	const struct view_list *l = &v->lists[pane];

	if (pane == PANE_PROCESSES) {
		buf_printf(out, "%8s  %-*s%s", stream_words(v->stream),
			   bars ? (int)BAR_COLUMNS + 2 : 0, "",
			   v->by_name ? "PROCESSES, by name" : "PROCESS");
	} else if (pane == PANE_FUNCTIONS) {
		buf_printf(out, " SELF %%   INCL %%  %-*sFUNCTION, by %s, of %s",
			   bars ? (int)BAR_COLUMNS + 2 : 0, "",
			   v->by_inclusive ? "inclusive" : "self", scope_text(v));
	} else if (!l->n) {
		buf_puts(out, " STACK");
	} else {
		buf_printf(out, " STACK %" PRIu32 " of %" PRIu32 ", leaf first: %.1f %% of %s",
			   l->at + 1, l->n, share(l->rows[l->at].self, v->scope_weight),
			   scope_text(v));
		if (v->chosen[PANE_FUNCTIONS].len)
			buf_printf(out, ", %s %s", v->by_inclusive ? "through" : "in",
				   buf_text(&v->chosen[PANE_FUNCTIONS]));
	}
	put_filter(out, v, pane);
}

/* ---- panes ----------------------------------------------------------------------------------- */

static void put_bar(struct page *p, struct page_field at, double pct)
{
	char text[BAR_COLUMNS + 1] = "";
	unsigned n = (unsigned)(pct / 100 * BAR_COLUMNS + 0.5);

	memset(text, '|', n < BAR_COLUMNS ? n : BAR_COLUMNS);
	page_put(p, at, PAGE_DIM, text);
}

/* Numbers in front; returns their columns. */
static unsigned put_numbers(const struct view *v, enum pane pane, const struct view_row *row,
			    char out[48], double *pct)
{
	char cost[16];
	double self = share(row->self, v->scope_weight);
	double inclusive = share(row->inclusive, v->scope_weight);

	if (pane == PANE_PROCESSES) {
		put_cost(v, row->self, cost);
		*pct = share(row->self, v->whole);
		return (unsigned)snprintf(out, 48, "%s  ", cost);
	}
	*pct = v->by_inclusive ? inclusive : self;
	return (unsigned)snprintf(out, 48, "%7.1f  %7.1f  ", self, inclusive);
}

static void draw_row(const struct view *v, struct page *p, enum pane pane,
		     const struct view_row *row, struct page_field at, bool chosen)
{
	bool bars = at.width >= BAR_FROM;
	unsigned n;
	char numbers[48];
	double pct;

	n = put_numbers(v, pane, row, numbers, &pct);
	page_put(p, at, pct >= HOT_PCT ? PAGE_HOT : PAGE_PLAIN, numbers);
	if (bars)
		put_bar(p, (struct page_field){at.row, at.column + n, BAR_COLUMNS}, pct);
	n += bars ? BAR_COLUMNS + 2 : 0;
	if (n < at.width)
		page_put(p, (struct page_field){at.row, at.column + n, at.width - n}, PAGE_PLAIN,
			 pane == PANE_PROCESSES && !*row->text ? "all processes" : row->text);
	if (chosen && pane == v->focus)
		page_style(p, at, PAGE_BAR);
	else if (chosen)
		page_put(p, at, PAGE_HOT, ">");
}

/* The cursor stays in sight. */
static void scroll_to(struct view_list *l, uint32_t height)
{
	if (l->at < l->top)
		l->top = l->at;
	if (height && l->at >= l->top + height)
		l->top = l->at - height + 1;
	if (l->top + height > l->n)
		l->top = l->n > height ? l->n - height : 0;
}

static void draw_list(struct view *v, struct page *p, enum pane pane, struct box b)
{
	struct view_list *l = &v->lists[pane];
	struct page_field at = {b.row + 1, b.column, b.width};
	bool has_cursor = pane == PANE_PROCESSES || v->chosen[pane].len;
	uint32_t i;

	scroll_to(l, b.height - 1);
	for (i = l->top; i < l->n && at.row < b.row + b.height; i++, at.row++)
		draw_row(v, p, pane, &l->rows[i], at, has_cursor && i == l->at);
	if (pane == PANE_PROCESSES && v->loaded && !v->whole && at.row < b.row + b.height)
		page_put(p, (struct page_field){at.row, b.column + 10, b.width - 10}, PAGE_LOSS,
			 nothing_words[v->stream]);
}

static void draw_stack(struct view *v, struct page *p, struct box b)
{
	const struct view_list *l = &v->lists[PANE_STACK];
	const struct stack_tree *t = &v->tree;
	struct page_field at = {b.row + 1, b.column + 2, b.width > 2 ? b.width - 2 : 0};
	uint32_t node, depth = 0, room = b.height - 1, i;

	if (!l->n)
		return;
	for (node = l->rows[l->at].node; stack_tree_is_frame(t, node); node = t->nodes[node].caller)
		depth++;
	if (v->scroll + room > depth)
		v->scroll = depth > room ? depth - room : 0;
	node = l->rows[l->at].node;
	for (i = 0; i < depth && at.row < b.row + b.height; i++, node = t->nodes[node].caller) {
		if (i < v->scroll)
			continue;
		page_put(p, at, i ? PAGE_PLAIN : PAGE_HOT,
			 stack_tree_text(t, t->nodes[node].text));
		at.row++;
	}
	if (node != STACK_TREE_NONE && i < depth && room)
		page_put(p, (struct page_field){b.row + b.height - 1, b.column, 2}, PAGE_DIM, "v");
	if (v->scroll)
		page_put(p, (struct page_field){b.row + 1, b.column, 2}, PAGE_DIM, "^");
}

static void draw_pane(struct view *v, struct page *p, enum pane pane, struct box b)
{
	struct page_field title = {b.row, b.column, b.width};
	enum page_style style = pane == v->focus ? PAGE_FOCUS : PAGE_TITLE;
	struct buf text = {0};

	v->page_rows[pane] = b.height ? b.height - 1 : 0;
	if (!b.height)
		return;
	put_title(v, pane, b.width >= BAR_FROM, &text);
	page_put_buf(p, title, style, &text);
	page_style(p, title, style);
	if (!v->loaded)
		return;
	if (pane == PANE_STACK)
		draw_stack(v, p, b);
	else
		draw_list(v, p, pane, b);
}

/* Rows first to last belong to the panes. */
static void draw_panes(struct view *v, struct page *p, unsigned first, unsigned last)
{
	unsigned rows = last - first, left = p->columns, processes, functions;

	if (v->zoomed || rows < SMALL_ROWS) {
		draw_pane(v, p, v->focus, (struct box){first, 0, p->columns, rows});
		return;
	}
	if (p->columns >= SIDE_BY_SIDE) {
		left = p->columns * 11 / 20;
		processes = rows * 2 / 5;
		functions = rows - processes;
		draw_pane(v, p, PANE_STACK,
			  (struct box){first, left + 1, p->columns - left - 1, rows});
	} else {
		processes = rows * 3 / 10 + 1;
		functions = rows * 7 / 20 + 1;
		draw_pane(v, p, PANE_STACK,
			  (struct box){first + processes + functions, 0, p->columns,
				       rows - processes - functions});
	}
	draw_pane(v, p, PANE_PROCESSES, (struct box){first, 0, left, processes});
	draw_pane(v, p, PANE_FUNCTIONS, (struct box){first + processes, 0, left, functions});
}

/* ---- around them ----------------------------------------------------------------------------- */

static void draw_bar(const struct view *v, struct page *p)
{
	struct page_field all = {0, 0, p->columns};
	struct buf text = {0};
	unsigned n;

	buf_printf(&text, " %s", v->clock.len ? buf_text(&v->clock) : "starting");
	if (v->nloads)
		buf_printf(&text, "  %.2f of %u CPUs busy, last %.0f s", v->busy, v->ncpus,
			   (double)v->span_ns / 1e9);
	if (v->paused)
		buf_puts(&text, "  PAUSED");
	n = page_put_buf(p, all, PAGE_BAR, &text) + 2;
	if (n + v->from.len < p->columns)
		page_put(p, (struct page_field){0, p->columns - (unsigned)v->from.len - 1,
						(unsigned)v->from.len}, PAGE_BAR,
			 buf_text(&v->from));
	page_style(p, all, PAGE_BAR);
}

/* Of all CPUs: '_' nothing, '.' under 1 %, 'o' under 10 %, '1' to '9' its tenths; as `report`. */
static char load_char(const struct view *v, double load)
{
	double part = load / v->ncpus;

	if (part <= 0)
		return '_';
	if (part < 0.1)
		return part < 0.01 ? '.' : 'o';
	return part >= 0.9 ? '9' : (char)('0' + (int)(part * 10));
}

static void draw_load(const struct view *v, struct page *p, unsigned row)
{
	char text[VIEW_LOADS + 1];
	struct buf line = {0};
	unsigned i, n;

	for (i = 0; i < v->nloads; i++)
		text[i] = load_char(v, v->loads[i]);
	text[i] = '\0';
	buf_printf(&line, " busy, tenths: %s", text);
	n = page_put_buf(p, (struct page_field){row, 0, p->columns}, PAGE_PLAIN, &line) + 2;
	buf_printf(&line, "%" PRIu64 " samples", v->samples);
	if (v->lost)
		buf_printf(&line, ", %" PRIu64 " LOST", v->lost);
	page_put_buf(p, (struct page_field){row, n, p->columns}, v->lost ? PAGE_LOSS : PAGE_DIM,
		     &line);
}

static void draw_last(const struct view *v, struct page *p, unsigned row)
{
	struct page_field at = {row, 0, p->columns};
	struct buf text = {0};

	if (v->asks) {
		buf_printf(&text, " %s: %s_   (Enter: done, Esc: not at all)",
			   v->asks == ASKS_FILTER ? "Only rows with" : "Keep an incident; reason",
			   buf_text(&v->answer));
		page_put_buf(p, at, PAGE_HOT, &text);
	} else if (v->said.len) {
		buf_printf(&text, " %s", buf_text(&v->said));
		page_put_buf(p, at, v->said_bad ? PAGE_BAD : PAGE_HOT, &text);
	} else {
		page_put(p, at, PAGE_DIM, " Enter deeper  / filter  o order  m metric  "
			 "Space pause  s keep  ? help  q quit");
	}
}

static void draw_help(const struct view *v, struct page *p, unsigned first, unsigned last)
{
	unsigned i;

	(void)v;
	for (i = 0; i < COUNT_OF(help_lines) && first + i < last; i++)
		page_put(p, (struct page_field){first + i, 1, p->columns - 1}, PAGE_PLAIN,
			 help_lines[i]);
}

int view_draw(struct view *v, struct page *p, unsigned columns, unsigned rows)
{
	if (page_begin(p, columns, rows))
		return ERR_MEMORY;
	if (p->rows < LEAST_ROWS || p->columns < LEAST_COLUMNS) {
		page_put(p, (struct page_field){0, 0, p->columns}, PAGE_PLAIN, "too small");
		return 0;
	}
	draw_bar(v, p);
	draw_load(v, p, 1);
	if (v->helps)
		draw_help(v, p, 3, p->rows - 1);
	else
		draw_panes(v, p, 2, p->rows - 1);
	draw_last(v, p, p->rows - 1);
	return p->failed ? ERR_MEMORY : 0;
}
