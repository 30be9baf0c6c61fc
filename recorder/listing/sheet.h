/*
 * What a command prints: text for people, or with --json one object a line. Callers say what a text
 * is (a heading, a loss, a share); the sheet knows the terminal's width and whether colour is
 * wanted. Colour adds escape sequences and changes no other byte.
 *
 * bold     labels, headings, names of events, shares of 10 % and more
 * green    what check finds good; in diff what shrank
 * yellow   remarks of check, losses, incidents that are not whole
 * red      what check finds wrong or missing, damage; in diff what grew
 *
 * One thread. Source: ECMA-48, 8.3.117 (SGR): ESC [ 1 m, 31, 32, 33, 0.
 */
#pragma once

#include "base/json.h"
#include "options/options.h"

enum sheet_style { SHEET_PLAIN, SHEET_HEAD, SHEET_LOSS, SHEET_BAD, SHEET_GOOD };

struct sheet {
	struct buf out;                      /* what was written so far */
	struct json j;                       /* writes into out */
	bool json, color;
	size_t columns;                      /* of the terminal; see base/fit.h */
	struct buf fitted;
};

/* --color: auto, always or never. Returns 0 or ERR_USAGE. */
int sheet_check_color(const struct options *o, struct err *err);

/*
 * Whether standard output gets colour. auto (the default): it is a terminal that takes escape
 * sequences, NO_COLOR is not set or empty (no-color.org), TERM is not "dumb". Never with --json.
 */
bool sheet_wants_color(const struct options *o);

/* A sheet must not move between sheet_init() and sheet_free(). */
void sheet_init(struct sheet *p, const struct options *o);
void sheet_free(struct sheet *p);

/* What was written; lines too long for the terminal are broken (base/fit.h). Valid until then. */
const struct buf *sheet_text(struct sheet *p);
/* Write sheet_text() to standard output. */
int sheet_print(struct sheet *p, struct err *err);
/* The same of a command that has only a text. */
int print_text(const struct buf *text, struct err *err);

/* ---- text for people ------------------------------------------------------------------------- */

void sheet_put(struct sheet *p, enum sheet_style style, const char *format, ...) PRINTF_LIKE(3, 4);
/* Give a style to what was written since p->out.len was `from`; leading blanks stay plain. */
void sheet_style(struct sheet *p, size_t from, enum sheet_style style);
/* The same up to `to`. */
void sheet_style_part(struct sheet *p, size_t from, size_t to, enum sheet_style style);

/* "Fired     ": ten columns; "" for the lines below a label's first. */
void sheet_label(struct sheet *p, const char *label);
/* A label, its text, a line feed. */
void sheet_line(struct sheet *p, const char *label, enum sheet_style style, const char *format,
		...) PRINTF_LIKE(4, 5);
/* The same with text from outside, made safe to print; nothing where text is NULL or "". */
void sheet_text_line(struct sheet *p, const char *label, const char *text);

/* ---- for people or with --json --------------------------------------------------------------- */

enum sheet_kind {
	/* A NaN is "-", and n/a of SHEET_PERCENT. */
	SHEET_TEXT,                   /* text */
	SHEET_NAME,                   /* text: the row's last cell, fitted to the terminal */
	SHEET_COUNT,                  /* n: "12,345" */
	SHEET_BOOL,                   /* n; with --json only */
	SHEET_BYTES,                  /* n: "1.2 MB" */
	SHEET_NUMBER,                 /* v with `digits` decimals */
	SHEET_GENERAL,                /* v with five significant digits */
	SHEET_READING,                /* v with four, or whole if longer */
	SHEET_SECONDS,                /* v: "61.2 s" */
	SHEET_SHARE,                  /* v in %, hot ones bold */
	SHEET_PERCENT,                /* v with a sign and `digits` decimals; NaN = "n/a" */
	SHEET_CHANGE,                 /* v with a sign; red or green if over a tenth of `of` */
};

/* A cell of a table. Rows and their heading come from the same cells. */
struct sheet_cell {
	const char *key;                     /* with --json; NULL = not there */
	const char *head;                    /* of its column */
	/* Of the column, with the blanks before it; 0 = not for people. Negative: two blanks, then
	 * text to the left in at least so many columns, never cut. */
	int width;
	enum sheet_kind kind;
	const char *text;
	uint64_t n;
	double v, of;
	int digits;
	size_t indent;                       /* of a name */
	size_t mark;                         /* so many bytes of a name are yellow */
	bool is_loss;                        /* yellow unless 0 */
};

/* One row: a line, or an object. */
void sheet_row(struct sheet *p, const struct sheet_cell *cells, size_t n);
/* With --json: its members alone, into the object that is open. */
void sheet_members(struct sheet *p, const struct sheet_cell *cells, size_t n);
/* For people only: the same without the line feed. */
void sheet_cells(struct sheet *p, const struct sheet_cell *cells, size_t n);
/* The heading of such rows, below an empty line; nothing with --json. */
void sheet_heading(struct sheet *p, const struct sheet_cell *cells, size_t n);
/* Make each column as wide as this row and the heading need, with two blanks between columns. */
void sheet_measure(const struct sheet_cell *cells, size_t n, int *widths);

/* An object of a line of its own. */
void sheet_open(struct sheet *p);
void sheet_close(struct sheet *p);

/*
 * A finding of check: what was looked at ("rule", "store"), its verdict ("ok", "note", or bad
 * news), its name and a sentence. value: a line above the sentence, for people only; NULL = none.
 * Follow it with sheet_close(); with --json, more keys may be put before.
 */
void sheet_finding(struct sheet *p, const char *what, const char *verdict, const char *name,
		  const char *value, const char *text);
