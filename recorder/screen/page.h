/*
 * A page of text for a terminal: a grid of characters with styles. Whatever is put on it, what is
 * there is safe to print: text goes through utf8_put_clean(), stays in its field, and a wide
 * character (of Unicode's East_Asian_Width W or F) takes two cells. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum page_style {
	PAGE_PLAIN,
	PAGE_BAR,                            /* the first line; the row at the cursor */
	PAGE_TITLE,                          /* of a pane */
	PAGE_FOCUS,                          /* of the pane that has the keys */
	PAGE_HOT,                            /* a share of 10 % and more; what is asked */
	PAGE_DIM,
	PAGE_LOSS,
	PAGE_BAD,
	PAGE_STYLES,
};

#define PAGE_COLUMNS_MAX 1000u
#define PAGE_ROWS_MAX 500u

struct page_cell {
	uint32_t c;                          /* 0: the second cell of a wide character */
	enum page_style style;
};

struct page {
	unsigned columns, rows;
	struct page_cell *cells;             /* rows after each other */
	bool failed;                         /* a text is missing, for lack of memory */
};

/* All blank, of this size or the largest that is allowed. ERR_MEMORY leaves it without cells. */
int page_begin(struct page *p, unsigned columns, unsigned rows);
void page_free(struct page *p);

/* A field: where text may stand. What lies outside of the page is not drawn. */
struct page_field {
	unsigned row, column, width;
};

/* Put text at the field's beginning, cut at its end; returns the columns that it took. */
unsigned page_put(struct page *p, struct page_field field, enum page_style style, const char *text);
/* The same; takes the text. */
unsigned page_put_buf(struct page *p, struct page_field field, enum page_style style,
		      struct buf *text);
/* The whole field gets a style; what stands there stays. */
void page_style(struct page *p, struct page_field field, enum page_style style);
/* A row as text, without the blanks at its end: for tests. */
void page_row_text(const struct page *p, unsigned row, struct buf *out);
/*
 * Put what turns a terminal that shows `shown` into one that shows p: rows that differ, each with
 * its position, or all of them behind a clear screen where the size differs. `shown` becomes p.
 *
 * color    false: bold instead
 * returns  0 or ERR_MEMORY: nothing is to be sent, and the next call puts all
 * source   ECMA-48: CUP (8.3.21), ED (8.3.39), SGR (8.3.117)
 */
int page_put_sequences(const struct page *p, struct page *shown, bool color, struct buf *out);
