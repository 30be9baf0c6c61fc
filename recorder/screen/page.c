#include "screen/page.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Source: Unicode 15, EastAsianWidth.txt: blocks whose characters are W or F, nearly all. */
static const struct {
	uint32_t first, last;
} wide[] = {
	{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f},
	{0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
	{0xffe0, 0xffe6},   {0x17000, 0x18cff}, {0x1f300, 0x1f64f}, {0x1f900, 0x1faff},
	{0x20000, 0x3fffd},
};

static unsigned columns_of(uint32_t c)
{
	size_t i;

	for (i = 0; i < COUNT_OF(wide); i++)
		if (c >= wide[i].first && c <= wide[i].last)
			return 2;
	return 1;
}

/* It stands above the one before, and takes no column: not drawn. Source: blocks of Unicode 15. */
static bool is_combining(uint32_t c)
{
	return (c >= 0x300 && c <= 0x36f) || (c >= 0x1ab0 && c <= 0x1aff) ||
	       (c >= 0x20d0 && c <= 0x20ff) || (c >= 0xfe00 && c <= 0xfe0f) ||
	       (c >= 0xfe20 && c <= 0xfe2f);
}

int page_begin(struct page *p, unsigned columns, unsigned rows)
{
	size_t n, i;

	columns = columns < PAGE_COLUMNS_MAX ? columns : PAGE_COLUMNS_MAX;
	rows = rows < PAGE_ROWS_MAX ? rows : PAGE_ROWS_MAX;
	n = (size_t)columns * rows;
	if (!p->cells || columns != p->columns || rows != p->rows) {
		page_free(p);
		p->cells = malloc((n + 1) * sizeof(*p->cells));
		if (!p->cells)
			return ERR_MEMORY;
		p->columns = columns;
		p->rows = rows;
	}
	p->failed = false;
	for (i = 0; i < n; i++)
		p->cells[i] = (struct page_cell){' ', PAGE_PLAIN};
	return 0;
}

void page_free(struct page *p)
{
	free(p->cells);
	*p = (struct page){0};
}

/* How many columns of the field are on the page. */
static unsigned room(const struct page *p, struct page_field f)
{
	if (f.row >= p->rows || f.column >= p->columns)
		return 0;
	return f.width < p->columns - f.column ? f.width : p->columns - f.column;
}

static struct page_cell *cell_at(const struct page *p, struct page_field f, unsigned width)
{
	return width ? p->cells + (size_t)f.row * p->columns + f.column : NULL;
}

/* Of a valid character of n bytes. */
static uint32_t decode(const char *at, size_t n)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t c = (unsigned char)at[0] & first[n];
	size_t i;

	for (i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)at[i] & 0x3f);
	return c;
}

unsigned page_put(struct page *p, struct page_field field, enum page_style style, const char *text)
{
	unsigned width = room(p, field), used = 0, columns;
	struct page_cell *to = cell_at(p, field, width);
	struct buf clean = {0};
	const char *at, *end;
	size_t n;

	if (width)
		utf8_put_clean(&clean, text, strlen(text), PAGE_COLUMNS_MAX * 4);
	at = buf_text(&clean);
	end = at + (clean.failed ? 0 : clean.len);
	for (; at < end; at += n) {
		uint32_t c;

		n = utf8_char(at, end);
		if (!n)
			break;
		c = decode(at, n);
		if (is_combining(c))
			continue;
		columns = columns_of(c);
		if (used + columns > width)
			break;
		to[used] = (struct page_cell){c, style};
		if (columns == 2)
			to[used + 1] = (struct page_cell){0, style};
		used += columns;
	}
	/* Cut: the last column says so. */
	if (at < end && used == width) {
		used--;
		if (used && !to[used].c)
			to[used - 1] = (struct page_cell){' ', style};
	}
	if (at < end && width)
		to[used++] = (struct page_cell){'~', style};
	p->failed |= clean.failed;
	buf_free(&clean);
	return used;
}

unsigned page_put_buf(struct page *p, struct page_field field, enum page_style style,
		      struct buf *text)
{
	unsigned used = page_put(p, field, style, buf_text(text));

	p->failed |= text->failed;
	buf_free(text);
	return used;
}

void page_style(struct page *p, struct page_field field, enum page_style style)
{
	unsigned width = room(p, field), i;
	struct page_cell *to = cell_at(p, field, width);

	for (i = 0; i < width; i++)
		to[i].style = style;
}

void page_row_text(const struct page *p, unsigned row, struct buf *out)
{
	const struct page_cell *cells = p->cells + (size_t)row * p->columns;
	unsigned n = p->columns, i;
	char bytes[4];

	while (n && cells[n - 1].c == ' ')
		n--;
	for (i = 0; i < n; i++)
		if (cells[i].c)
			buf_put(out, bytes, utf8_encode(cells[i].c, bytes));
}

/* ---- sequences ------------------------------------------------------------------------------- */

static void put_style(enum page_style style, bool color, struct buf *out)
{
	static const char *const codes[PAGE_STYLES] = {
		[PAGE_BAR] = ";7", [PAGE_TITLE] = ";4", [PAGE_FOCUS] = ";1;4", [PAGE_HOT] = ";1",
		[PAGE_LOSS] = ";33", [PAGE_BAD] = ";31",
	};
	bool colored = style == PAGE_LOSS || style == PAGE_BAD;

	buf_puts(out, "\033[0");
	if (codes[style])
		buf_puts(out, colored && !color ? ";1" : codes[style]);
	buf_putc(out, 'm');
}

static void put_row(const struct page *p, unsigned row, bool color, struct buf *out)
{
	const struct page_cell *cells = p->cells + (size_t)row * p->columns;
	enum page_style style = PAGE_STYLES;
	unsigned i;
	char bytes[4];

	buf_printf(out, "\033[%u;1H", row + 1);
	for (i = 0; i < p->columns; i++) {
		if (cells[i].style != style)
			put_style(cells[i].style, color, out);
		style = cells[i].style;
		if (cells[i].c)
			buf_put(out, bytes, utf8_encode(cells[i].c, bytes));
	}
}

int page_put_sequences(const struct page *p, struct page *shown, bool color, struct buf *out)
{
	bool all = !shown->cells || p->columns != shown->columns || p->rows != shown->rows;
	size_t row_bytes = p->columns * sizeof(*p->cells);
	unsigned row;

	if (all && page_begin(shown, p->columns, p->rows))
		return ERR_MEMORY;
	if (all)
		buf_puts(out, "\033[0m\033[2J");
	for (row = 0; row < p->rows; row++) {
		size_t at = (size_t)row * p->columns;

		if (!all && memcmp(shown->cells + at, p->cells + at, row_bytes) == 0)
			continue;
		put_row(p, row, color, out);
		memcpy(shown->cells + at, p->cells + at, row_bytes);
	}
	if (!out->failed)
		return 0;
	page_free(shown);
	return ERR_MEMORY;
}
