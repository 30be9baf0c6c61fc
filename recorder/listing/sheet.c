#include "listing/sheet.h"

#include "base/fit.h"
#include "base/os.h"
#include "base/out.h"
#include "base/utf8.h"
#include "listing/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_COLUMNS = 10, FINDING_INDENT = 18, TEXT_MAX_COLUMNS = 4000 };
#define HOT_PCT 10.0
#define CHANGED_PART 0.1                     /* of the larger amount; less is noise */

int sheet_check_color(const struct options *o, struct err *err)
{
	if (!o->color || strcmp(o->color, "auto") == 0 || strcmp(o->color, "always") == 0 ||
	    strcmp(o->color, "never") == 0)
		return 0;
	return err_set(err, ERR_USAGE, "--color: '%.60s' is not auto, always or never", o->color);
}

bool sheet_wants_color(const struct options *o)
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

void sheet_init(struct sheet *p, const struct options *o)
{
	*p = (struct sheet){.j.out = &p->out, .json = o->json, .color = sheet_wants_color(o),
			   .columns = o->json ? FIT_ALL : fit_columns()};
}

void sheet_free(struct sheet *p)
{
	buf_free(&p->out);
	buf_free(&p->fitted);
}

const struct buf *sheet_text(struct sheet *p)
{
	if (p->columns == FIT_ALL || p->out.failed)
		return &p->out;
	buf_reset(&p->fitted);
	fit_lines(&p->fitted, buf_text(&p->out), p->out.len, p->columns);
	return &p->fitted;
}

int sheet_print(struct sheet *p, struct err *err)
{
	return print_text(sheet_text(p), err);
}

int print_text(const struct buf *text, struct err *err)
{
	struct out *out = NULL;
	int rc = buf_check(text, "the output", err);

	if (!rc)
		rc = out_open("-", true, &out, err);
	if (rc)
		return rc;
	out_put(out, buf_text(text), text->len);
	return out_close(out, err);
}

/* ---- text for people ------------------------------------------------------------------------- */

static void insert(struct buf *out, size_t at, const char *text)
{
	size_t n = strlen(text), len = out->len;

	buf_puts(out, text);
	if (out->failed)
		return;
	memmove(out->data + at + n, out->data + at, len - at);
	memcpy(out->data + at, text, n);
}

void sheet_style_part(struct sheet *p, size_t from, size_t to, enum sheet_style style)
{
	static const char *const codes[] = {
		[SHEET_HEAD] = "\033[1m", [SHEET_LOSS] = "\033[33m",
		[SHEET_BAD] = "\033[31m", [SHEET_GOOD] = "\033[32m",
	};

	if (!p->color || style == SHEET_PLAIN || p->out.failed || from >= to)
		return;
	insert(&p->out, to, "\033[0m");
	insert(&p->out, from, codes[style]);
}

void sheet_style(struct sheet *p, size_t from, enum sheet_style style)
{
	from += strspn(buf_text(&p->out) + from, " ");
	sheet_style_part(p, from, p->out.len, style);
}

static void put_styled(struct sheet *p, enum sheet_style style, const char *format, va_list args)
{
	size_t from = p->out.len;

	buf_vprintf(&p->out, format, args);
	sheet_style(p, from, style);
}

void sheet_put(struct sheet *p, enum sheet_style style, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_styled(p, style, format, args);
	va_end(args);
}

void sheet_label(struct sheet *p, const char *label)
{
	sheet_put(p, SHEET_HEAD, "%s", label);
	buf_printf(&p->out, "%*s", LABEL_COLUMNS - (int)strlen(label), "");
}

void sheet_line(struct sheet *p, const char *label, enum sheet_style style, const char *format, ...)
{
	va_list args;

	sheet_label(p, label);
	va_start(args, format);
	put_styled(p, style, format, args);
	va_end(args);
	buf_putc(&p->out, '\n');
}

void sheet_text_line(struct sheet *p, const char *label, const char *text)
{
	if (!text || !*text)
		return;
	sheet_label(p, label);
	fit_cut(&p->out, text, TEXT_MAX_COLUMNS);
	buf_putc(&p->out, '\n');
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* The cell's text: its own, or made in `number`. */
static const char *cell_text(const struct sheet_cell *c, char number[NUMBER_BYTES],
			     enum sheet_style *style)
{
	*style = c->is_loss && (c->n || c->v > 0) ? SHEET_LOSS : SHEET_PLAIN;
	if (c->v != c->v)
		return c->kind == SHEET_PERCENT ? "n/a" : "-";
	switch (c->kind) {
	case SHEET_COUNT:
		return text_count(c->n, number);
	case SHEET_BYTES:
		return text_bytes(c->n, number);
	case SHEET_SECONDS:
		return c->v == c->v ? text_seconds(c->v, number) : "-";
	case SHEET_NUMBER:
		snprintf(number, NUMBER_BYTES, "%.*f", c->digits, c->v);
		return number;
	case SHEET_GENERAL:
		snprintf(number, NUMBER_BYTES, "%.5g", c->v);
		return number;
	case SHEET_READING:
		snprintf(number, NUMBER_BYTES, fabs(c->v) >= 1000 ? "%.0f" : "%.4g", c->v);
		return number;
	case SHEET_SHARE:
		*style = c->v >= HOT_PCT ? SHEET_HEAD : SHEET_PLAIN;
		snprintf(number, NUMBER_BYTES, "%.1f %%", c->v);
		return number;
	case SHEET_PERCENT:
		snprintf(number, NUMBER_BYTES, "%+.*f %%", c->digits, c->v);
		return number;
	case SHEET_CHANGE:
		if (fabs(c->v) > CHANGED_PART * c->of)
			*style = c->v > 0 ? SHEET_BAD : SHEET_GOOD;
		snprintf(number, NUMBER_BYTES, "%+.1f", c->v);
		return number;
	default:
		return c->text ? c->text : "";
	}
}

static void put_name(struct sheet *p, const struct sheet_cell *c, const char *text, size_t indent)
{
	size_t from;

	buf_puts(&p->out, "  ");
	from = p->out.len;
	fit_last(&p->out, text, indent, p->columns);
	/* The cell may have got a line of its own. */
	from += strspn(buf_text(&p->out) + from, "\n ");
	sheet_style_part(p, from, from + c->mark < p->out.len ? from + c->mark : p->out.len,
			 SHEET_LOSS);
}

static void put_cells(struct sheet *p, const struct sheet_cell *cells, size_t n, bool heads)
{
	const struct sheet_cell *name = NULL;
	char number[NUMBER_BYTES];
	enum sheet_style style = SHEET_PLAIN;
	const char *text;
	size_t i, from;

	for (i = 0; i < n; i++) {
		if (cells[i].kind == SHEET_NAME)
			name = &cells[i];
		if (!cells[i].width)
			continue;
		from = p->out.len;
		text = heads ? cells[i].head : cell_text(&cells[i], number, &style);
		buf_printf(&p->out, cells[i].width < 0 ? "  %*s" : "%*s", cells[i].width, text);
		sheet_style(p, from, style);
	}
	if (name && heads)
		put_name(p, &(struct sheet_cell){0}, name->head, 0);
	else if (name)
		put_name(p, name, name->text, name->indent);
}

static void put_member(struct json *j, const struct sheet_cell *c)
{
	if (c->kind == SHEET_TEXT || c->kind == SHEET_NAME)
		json_key_str(j, c->key, c->text);
	else if (c->kind == SHEET_COUNT || c->kind == SHEET_BYTES)
		json_key_uint(j, c->key, c->n);
	else if (c->kind == SHEET_BOOL)
		json_key_bool(j, c->key, c->n);
	else
		json_key_num(j, c->key, c->v);
}

void sheet_cells(struct sheet *p, const struct sheet_cell *cells, size_t n)
{
	put_cells(p, cells, n, false);
}

void sheet_members(struct sheet *p, const struct sheet_cell *cells, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (cells[i].key)
			put_member(&p->j, &cells[i]);
}

void sheet_row(struct sheet *p, const struct sheet_cell *cells, size_t n)
{
	if (!p->json) {
		put_cells(p, cells, n, false);
		buf_putc(&p->out, '\n');
		return;
	}
	sheet_open(p);
	sheet_members(p, cells, n);
	sheet_close(p);
}

void sheet_heading(struct sheet *p, const struct sheet_cell *cells, size_t n)
{
	size_t from;

	if (p->json)
		return;
	if (p->out.len)
		buf_putc(&p->out, '\n');
	from = p->out.len;
	put_cells(p, cells, n, true);
	sheet_style(p, from, SHEET_HEAD);
	buf_putc(&p->out, '\n');
}

void sheet_measure(const struct sheet_cell *cells, size_t n, int *widths)
{
	char number[NUMBER_BYTES];
	enum sheet_style style;
	size_t i;

	for (i = 0; i < n; i++) {
		int text = (int)strlen(cell_text(&cells[i], number, &style)) + (i ? 2 : 0);
		int head = (int)strlen(cells[i].head) + (i ? 2 : 0);

		if (cells[i].kind == SHEET_NAME)
			continue;
		widths[i] = text > widths[i] ? text : widths[i];
		widths[i] = head > widths[i] ? head : widths[i];
	}
}

/* ---- objects --------------------------------------------------------------------------------- */

void sheet_open(struct sheet *p)
{
	json_open(&p->j, '{');
}

void sheet_close(struct sheet *p)
{
	if (!p->json)
		return;
	json_close(&p->j, '}');
	buf_putc(&p->out, '\n');
	p->j.comma = false;
}

void sheet_finding(struct sheet *p, const char *what, const char *verdict, const char *name,
		  const char *value, const char *text)
{
	if (p->json) {
		sheet_open(p);
		json_key_str(&p->j, "check", what);
		json_key_str(&p->j, "name", name);
		json_key_str(&p->j, "verdict", verdict);
		json_key_str(&p->j, "text", text);
		return;
	}
	buf_printf(&p->out, "%-8s ", what);
	sheet_put(p, strcmp(verdict, "ok") == 0     ? SHEET_GOOD
		    : strcmp(verdict, "note") == 0 ? SHEET_LOSS
						   : SHEET_BAD,
		 "%s", verdict);
	buf_printf(&p->out, "%*s ", 8 - (int)strlen(verdict), "");
	utf8_put_clean(&p->out, name, strlen(name), SIZE_MAX);
	buf_putc(&p->out, '\n');
	if (value)
		buf_printf(&p->out, "%*s%s\n", FINDING_INDENT, "", value);
	if (text && *text)
		buf_printf(&p->out, "%*s%s\n", FINDING_INDENT, "", text);
}
