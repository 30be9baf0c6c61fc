#include "cli/color.h"

#include "base/os.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_COLUMNS = 10, VERDICT_AT = 9, SPANS_MAX = 8, NO_COLUMN = 0 };
#define HOT_PCT 10.0
#define CHANGED_PART 0.1              /* of the larger amount; less is noise */

static const char bold[] = "\033[1m", red[] = "\033[31m", green[] = "\033[32m",
		  yellow[] = "\033[33m";

/* What a line gets; and what later lines must know of those before them. */
struct painter {
	enum command about;
	const char *line, *end;
	bool first, after_blank, after_heading;
	const char *value_style;             /* of the label above, for the lines below it */
	size_t lost_end, change_end, last_at;     /* columns of the heading above, or NO_COLUMN */
	struct {
		const char *from, *to, *style;
	} spans[SPANS_MAX];
	unsigned nspans;
};

/* ---- whether --------------------------------------------------------------------------------- */

int color_check(const struct options *o, struct err *err)
{
	if (!o->color || strcmp(o->color, "auto") == 0 || strcmp(o->color, "always") == 0 ||
	    strcmp(o->color, "never") == 0)
		return 0;
	return err_set(err, ERR_USAGE, "--color: '%.60s' is not auto, always or never", o->color);
}

bool color_wanted(const struct options *o)
{
	const char *no = os_env("NO_COLOR"), *term = os_env("TERM");
	bool terminal;

	if (o->json || (o->color && strcmp(o->color, "never") == 0))
		return false;
	/* Also for "always": a console of Windows must be told to obey. */
	terminal = os_is_terminal(os_stdout()) && os_terminal_styles();
	if (o->color && strcmp(o->color, "always") == 0)
		return true;
	return terminal && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

/* ---- words of a line ------------------------------------------------------------------------- */

/* In order from left to right. */
static void span(struct painter *p, const char *from, const char *to, const char *style)
{
	if (p->nspans == SPANS_MAX || from >= to || !style)
		return;
	p->spans[p->nspans].from = from;
	p->spans[p->nspans].to = to;
	p->spans[p->nspans++].style = style;
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && *at == ' ')
		at++;
	return at;
}

static const char *word_end(const char *at, const char *end)
{
	while (at < end && *at != ' ')
		at++;
	return at;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* strstr() within a line. */
static const char *find(const char *at, const char *end, const char *what)
{
	size_t n = strlen(what);

	for (; (size_t)(end - at) >= n; at++)
		if (memcmp(at, what, n) == 0)
			return at;
	return NULL;
}

static bool begins(const char *at, const char *end, const char *what)
{
	size_t n = strlen(what);

	return (size_t)(end - at) >= n && memcmp(at, what, n) == 0;
}

/* A number with at most a sign, a point and commas; *v without the commas. */
static bool number(const char *at, const char *end, double *v)
{
	char text[32];
	size_t n = 0;

	if (at == end || !is_digit(end[-1]))
		return false;
	for (; at < end && n + 1 < sizeof(text); at++) {
		if (is_digit(*at) || *at == '.' || (n == 0 && (*at == '-' || *at == '+')))
			text[n++] = *at;
		else if (*at != ',')
			return false;
	}
	text[n] = '\0';
	*v = strtod(text, NULL);
	return at == end;
}

/* The word that ends in this column, where the heading's did. */
static const char *cell(const struct painter *p, size_t column_end, double *v)
{
	const char *to = p->line + column_end, *from = to;

	if (column_end == NO_COLUMN || to > p->end || (to < p->end && *to != ' '))
		return NULL;
	while (from > p->line && from[-1] != ' ')
		from--;
	return number(from, to, v) ? from : NULL;
}

/* ---- kinds of lines -------------------------------------------------------------------------- */

/* Capitals only, below an empty line; its last cell may stand on a line of its own. */
static bool is_heading(const struct painter *p)
{
	const char *at = skip_blanks(p->line, p->end);

	if (!(p->first || p->after_blank || p->after_heading) || at == p->end || !is_upper(*at))
		return false;
	for (; at < p->end; at++)
		if (is_lower(*at))
			return false;
	return true;
}

static size_t column_end(const struct painter *p, const char *name)
{
	const char *at = find(p->line, p->end, name);

	return at ? (size_t)(at - p->line) + strlen(name) : NO_COLUMN;
}

static void put_heading(struct painter *p)
{
	const char *last = find(p->line, p->end, "WHAT FIRED");

	if (!p->after_heading) {
		p->lost_end = column_end(p, " LOST");
		p->change_end = p->about == CMD_DIFF ? column_end(p, " CHANGE") : NO_COLUMN;
		p->last_at = last ? (size_t)(last - p->line) : NO_COLUMN;
	}
	span(p, skip_blanks(p->line, p->end), p->end, bold);
}

/* "Fired     ", ten columns. */
static bool is_label(const struct painter *p)
{
	const char *at = p->line;

	if (p->end - at <= LABEL_COLUMNS || !is_upper(*at) || at[LABEL_COLUMNS - 1] != ' ' ||
	    at[LABEL_COLUMNS] == ' ')
		return false;
	for (at++; is_lower(*at); at++)
		;
	return at > p->line + 1 && skip_blanks(at, p->end) == p->line + LABEL_COLUMNS;
}

static const char *style_of_value(const struct painter *p)
{
	const char *value = p->line + LABEL_COLUMNS;

	if (begins(p->line, p->end, "Damaged "))
		return red;
	if (begins(p->line, p->end, "Lost ") && !begins(value, p->end, "nothing"))
		return yellow;
	return NULL;
}

static void put_label(struct painter *p)
{
	const char *lost = p->about == CMD_STATUS ? find(p->line, p->end, ", lost ") : NULL;

	p->value_style = style_of_value(p);
	span(p, p->line, word_end(p->line, p->end), bold);
	span(p, p->line + LABEL_COLUMNS, p->end, p->value_style);
	if (lost && begins(p->line, p->end, "Samples ") && !begins(lost, p->end, ", lost 0"))
		span(p, lost + 2, p->end, yellow);
}

/* "Incident 4, partial: ...", "Incident 4: reason". */
static void put_title(struct painter *p)
{
	const char *to = p->line + strlen("Incident ");

	while (to < p->end && is_digit(*to))
		to++;
	span(p, p->line, to, bold);
	if (begins(to, p->end, ", ") && !begins(to, p->end, ", pinned"))
		span(p, to + 2, p->end, yellow);
}

/* Numbers, then a name: the shares among them, and the columns that mean something. */
static void put_row(struct painter *p)
{
	const char *at = skip_blanks(p->line, p->end), *to, *what = p->line + p->last_at;
	double v, before = 0, last = 0, change;
	const char *lost = cell(p, p->lost_end, &v), *changed;
	bool share;

	if (lost && v > 0)
		span(p, lost, p->line + p->lost_end, yellow);
	if (p->last_at && what < p->end && *what == '[' && !begins(what, p->end, "[pinned]"))
		span(p, what, word_end(what, p->end), yellow);
	changed = cell(p, p->change_end, &change);
	for (; !lost && at < p->end; at = skip_blanks(to, p->end)) {
		to = word_end(at, p->end);
		if (!number(at, to, &v)) {
			if (to - at == 3 && begins(at, to, "n/a"))
				continue;
			break;
		}
		if (at == changed && fabs(change) > CHANGED_PART * fmax(before, last))
			span(p, at, to, change > 0 ? red : green);
		before = last;
		last = v;
		if (!begins(to, p->end, " %"))
			continue;
		/* one decimal, no sign */
		share = is_digit(*at) && to - at > 2 && to[-2] == '.';
		to += 2;
		if (share && v >= HOT_PCT)
			span(p, at, to, bold);
	}
}

/* "rule     ok       NAME"; what is said of it stands below, behind 18 blanks. */
static void put_finding(struct painter *p)
{
	const char *at = p->line + VERDICT_AT, *to;

	if (p->end - p->line <= VERDICT_AT || *p->line == ' ' || at[-1] != ' ')
		return;
	to = word_end(at, p->end);
	span(p, at, to, begins(at, to, "ok") ? green : begins(at, to, "note") ? yellow : red);
}

/*
 * "12.345 process(1) 1 cpu 0 PROVIDER/NAME field=...", or a list of names with fields below them.
 */
static void put_event(struct painter *p)
{
	const char *at = skip_blanks(p->line, p->end), *to = word_end(at, p->end);
	double v;

	if (at > p->line) {
		if (!number(at, to, &v) || !find(at, to, ".") || !begins(to, p->end, "  "))
			return;
		at = find(to + 2, p->end, "  ");
		if (!at)
			return;
		at += 2;
		/* Names may have blanks: up to the word of the first "field=". */
		to = find(at, p->end, "=");
		for (; to && to > at && *to != ' '; to--)
			;
		span(p, at, to ? to : p->end, bold);
		return;
	}
	span(p, at, to, bold);
}

static void put_page_line(struct painter *p)
{
	const char *at = skip_blanks(p->line, p->end);
	bool heading = is_heading(p), label = !heading && is_label(p);

	if (heading)
		put_heading(p);
	else if (label)
		put_label(p);
	else if (p->first && begins(p->line, p->end, "Incident "))
		put_title(p);
	else if (p->value_style && at - p->line >= LABEL_COLUMNS)
		span(p, at, p->end, p->value_style);
	else if (at < p->end && (is_digit(*at) || *at == '+' || *at == '-' ||
				 begins(at, p->end, "all ") || begins(at, p->end, "n/a ")))
		put_row(p);
	if (at == p->end)
		p->value_style = NULL;
	p->after_heading = heading;
	p->after_blank = at == p->end;
}

/* ---- the text -------------------------------------------------------------------------------- */

static void put_spans(const struct painter *p, struct buf *out)
{
	const char *at = p->line;
	unsigned i;

	for (i = 0; i < p->nspans; i++) {
		if (p->spans[i].from < at)
			continue;
		buf_put(out, at, (size_t)(p->spans[i].from - at));
		buf_puts(out, p->spans[i].style);
		buf_put(out, p->spans[i].from, (size_t)(p->spans[i].to - p->spans[i].from));
		buf_puts(out, "\033[0m");
		at = p->spans[i].to;
	}
	buf_put(out, at, (size_t)(p->end - at));
}

void color_lines(struct buf *out, enum command about, const char *text, size_t n)
{
	struct painter p = {.about = about, .first = true};
	const char *all = text + n;

	for (p.line = text; p.line < all; p.line = p.end + (p.end < all)) {
		p.end = memchr(p.line, '\n', (size_t)(all - p.line));
		if (!p.end)
			p.end = all;
		p.nspans = 0;
		if (about == CMD_CHECK)
			put_finding(&p);
		else if (about == CMD_EVENTS)
			put_event(&p);
		else
			put_page_line(&p);
		put_spans(&p, out);
		if (p.end < all)
			buf_putc(out, '\n');
		p.first = false;
	}
}
