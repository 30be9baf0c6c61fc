#include "cli/markdown.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { BODY = 2, TERM_TEXT_MIN = 12, TERM_TEXT_MAX = 28, NARROW = 60, CELLS_MAX = 4 };

static const char bold[] = "\033[1m", normal[] = "\033[0m";

struct page {
	struct buf *out;
	enum markdown_form form;
	size_t columns, column, indent;      /* column 0: nothing stands in the line yet */
	bool is_bold, in_term;
	bool after_heading, after_item;
};

struct span {
	const char *at, *end;
};

static struct span line_at(const char *text)
{
	return (struct span){text, text + strcspn(text, "\n")};
}

static const char *next_line(struct span line)
{
	return *line.end ? line.end + 1 : line.end;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void set_bold(struct page *p, bool on)
{
	if (p->form == MARKDOWN_MAN)
		buf_puts(p->out, on ? "\\fB" : "\\fR");
	else if (p->form == MARKDOWN_STYLED)
		buf_puts(p->out, on ? bold : normal);
	p->is_bold = on;
}

static void put_char(struct page *p, char c)
{
	static const char special[] = "\\-'^~`";
	static const char *const names[] = {"\\e", "\\-", "\\(aq", "\\(ha", "\\(ti", "\\(ga"};
	const char *found = c && p->form == MARKDOWN_MAN ? strchr(special, c) : NULL;

	p->column += ((unsigned char)c & 0xc0) != 0x80;
	/* A long term may be broken there. */
	if (c == '[' && p->form == MARKDOWN_MAN)
		buf_puts(p->out, "\\:");
	/* A hyphen and an apostrophe of prose stay what they are. */
	if (found && (p->is_bold || (c != '-' && c != '\'')))
		buf_puts(p->out, names[found - special]);
	else
		buf_putc(p->out, c);
}

/* Plain text has quotes around code with blanks, or of one character. */
static void put_code_mark(struct page *p, const char *mark, const char *end, bool *quoted)
{
	const char *close = memchr(mark + 1, '`', (size_t)(end - mark - 1));

	if (!p->is_bold)
		*quoted = p->form == MARKDOWN_PLAIN && !p->in_term && close &&
			  (close == mark + 2 || memchr(mark, ' ', (size_t)(close - mark)));
	if (*quoted)
		put_char(p, '\'');
	set_bold(p, !p->is_bold);
}

/* At most: a quote may not be printed. */
static size_t word_columns(const struct page *p, const char *word, const char *end)
{
	size_t n = 0;

	for (; word < end; word++) {
		if (begins(word, "**"))
			word++;
		else
			n += ((unsigned char)*word & 0xc0) != 0x80 &&
			     (*word != '`' || p->form == MARKDOWN_PLAIN);
	}
	return n;
}

static void new_line(struct page *p)
{
	size_t i;

	if (p->column)
		buf_putc(p->out, '\n');
	for (i = 0; p->form != MARKDOWN_MAN && i < p->indent; i++)
		buf_putc(p->out, ' ');
	p->column = p->form == MARKDOWN_MAN ? 0 : p->indent;
}

static void end_line(struct page *p)
{
	buf_putc(p->out, '\n');
	p->column = 0;
}

/* Words, wrapped at p->columns. */
static void put_words(struct page *p, struct span text)
{
	const char *at = text.at, *end;
	bool first = true, quoted = false;

	for (;; at = end, first = false) {
		size_t columns;

		while (at < text.end && (*at == ' ' || *at == '\n'))
			at++;
		if (at == text.end)
			return;
		for (end = at; end < text.end && *end != ' ' && *end != '\n';)
			end++;
		columns = word_columns(p, at, end);
		if (!first && p->column + 1 + columns > p->columns) {
			new_line(p);
		} else if (!first) {
			buf_putc(p->out, ' ');
			p->column++;
		}
		if (p->form == MARKDOWN_MAN && !p->column && (*at == '.' || *at == '\''))
			buf_puts(p->out, "\\&");
		for (; at < end; at++) {
			if (*at == '`')
				put_code_mark(p, at, text.end, &quoted);
			else if (begins(at, "**") && at + 1 < end)
				set_bold(p, !p->is_bold), at++;
			else if (*at != '\\' || at[1] != '|')
				put_char(p, *at);
		}
	}
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void begin_block(struct page *p, bool is_item)
{
	bool apart = !p->after_heading && !(is_item && p->after_item);

	if (p->form == MARKDOWN_MAN)
		buf_puts(p->out, apart && !is_item ? ".PP\n" : "");
	else if (apart && p->out->len)
		buf_putc(p->out, '\n');
	p->after_heading = false;
	p->after_item = is_item;
	p->column = 0;
}

static const char *put_heading(struct page *p, const char *text)
{
	struct span line = line_at(text);
	bool section = text[2] != '#';
	const char *at = line.at + (section ? 3 : 4);

	/* One heading is enough for people who read the text at once. */
	if (p->form != MARKDOWN_MAN && section && begins(line.end, "\n\n###"))
		return next_line(line);
	if (p->form == MARKDOWN_MAN) {
		buf_puts(p->out, section ? ".SH " : ".SS ");
		if (begins(text, "## Usage\n")) {
			buf_puts(p->out, "SYNOPSIS");
			at = line.end;
		}
		for (; at < line.end; at++)
			put_char(p, section ? (char)toupper((unsigned char)*at) : *at);
	} else {
		if (p->out->len)
			buf_putc(p->out, '\n');
		set_bold(p, true);
		buf_put(p->out, at, (size_t)(line.end - at));
		set_bold(p, false);
	}
	end_line(p);
	p->after_heading = true;
	p->after_item = false;
	return next_line(line);
}

/* Lines as they are, with the empty ones between them. */
static const char *put_code(struct page *p, const char *text)
{
	bool man = p->form == MARKDOWN_MAN;
	struct span line;

	begin_block(p, false);
	buf_puts(p->out, man ? ".RS 4\n.nf\n" : "");
	for (;; text = next_line(line)) {
		line = line_at(text);
		if (line.at == line.end && begins(text, "\n    ")) {
			buf_puts(p->out, man ? ".sp\n" : "\n");
			continue;
		}
		if (!begins(text, "    "))
			break;
		if (!man)
			buf_puts(p->out, "    ");
		else if (text[4] == '.' || text[4] == '\'')
			buf_puts(p->out, "\\&");
		p->is_bold = man;
		for (text += 4; text < line.end; text++)
			put_char(p, *text);
		p->is_bold = false;
		buf_putc(p->out, '\n');
	}
	buf_puts(p->out, man ? ".fi\n.RE\n" : "");
	return text;
}

static unsigned split_cells(struct span row, struct span cells[CELLS_MAX])
{
	const char *at = row.at + 1, *from = at;
	unsigned n = 0;

	for (; at < row.end && n < CELLS_MAX; at++) {
		if (*at != '|' || at[-1] == '\\')
			continue;
		cells[n++] = (struct span){from, at};
		from = at + 1;
	}
	return n;
}

static void put_term(struct page *p, const struct span *cells, unsigned n, size_t text_at)
{
	size_t all = p->columns;
	unsigned i;

	begin_block(p, true);
	buf_puts(p->out, p->form == MARKDOWN_MAN ? ".TP\n" : "");
	p->indent = BODY;
	new_line(p);
	p->columns = SIZE_MAX;
	p->in_term = true;
	put_words(p, cells[0]);
	for (i = 1; i + 1 < n; i++) {
		put_char(p, ' ');
		put_char(p, '(');
		put_words(p, cells[i]);
		put_char(p, ')');
	}
	p->columns = all;
	p->in_term = false;
	p->indent = text_at;
	if (p->form == MARKDOWN_MAN || p->column + 2 > text_at)
		new_line(p);
	for (; p->form != MARKDOWN_MAN && p->column < text_at; p->column++)
		buf_putc(p->out, ' ');
	if (p->form == MARKDOWN_MAN)
		p->column = 0;
	put_words(p, cells[n - 1]);
	end_line(p);
}

/* Behind the longest term, when that is short. */
static size_t term_text_at(const struct page *p, const char *text)
{
	size_t at = p->columns < NARROW ? 0 : TERM_TEXT_MIN;
	struct span cells[CELLS_MAX], row;

	for (; *text == '|' && at; text = next_line(row)) {
		row = line_at(text);
		if (split_cells(row, cells) > 2)
			return TERM_TEXT_MAX;
		if (at < (size_t)(cells[0].end - cells[0].at))
			at = (size_t)(cells[0].end - cells[0].at);
	}
	return at > TERM_TEXT_MAX ? TERM_TEXT_MAX : at ? at : TERM_TEXT_MIN;
}

/* The first two lines are the heads of columns, which a list of terms has not. */
static const char *put_table(struct page *p, const char *text)
{
	size_t text_at = term_text_at(p, text);
	struct span cells[CELLS_MAX], row;
	unsigned line, n;

	for (line = 0; *text == '|'; line++, text = next_line(row)) {
		row = line_at(text);
		n = split_cells(row, cells);
		if (line >= 2 && n >= 2)
			put_term(p, cells, n, text_at);
	}
	return text;
}

static bool begins_block(const char *text)
{
	return !*text || *text == '\n' || *text == '|' || begins(text, "- ") || begins(text, "##");
}

/* A paragraph or an item, up to where the next block begins. */
static const char *put_text(struct page *p, const char *text)
{
	bool is_item = begins(text, "- "), man = p->form == MARKDOWN_MAN;
	struct span line = line_at(text), all = line;

	for (text = next_line(line); !begins_block(text); text = next_line(line)) {
		line = line_at(text);
		all.end = line.end;
	}
	begin_block(p, is_item);
	p->indent = is_item ? BODY + 2 : BODY;
	if (is_item) {
		buf_puts(p->out, man ? ".IP \\(bu 2\n" : "  - ");
		p->column = man ? 0 : BODY + 2;
		all.at += 2;
	} else {
		new_line(p);
	}
	put_words(p, all);
	end_line(p);
	return text;
}

void markdown_put(struct buf *out, const char *text, enum markdown_form form, size_t columns)
{
	struct page p = {.out = out, .form = form, .columns = columns};

	p.after_heading = form == MARKDOWN_MAN || !out->len;
	while (*text) {
		if (*text == '\n')
			text++;
		else if (begins(text, "##"))
			text = put_heading(&p, text);
		else if (begins(text, "    "))
			text = put_code(&p, text);
		else if (*text == '|')
			text = put_table(&p, text);
		else
			text = put_text(&p, text);
	}
}
