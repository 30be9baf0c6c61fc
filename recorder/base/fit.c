#include "base/fit.h"

#include "base/os.h"
#include "base/utf8.h"

#include <string.h>

enum { LAST_MIN = 20, LAST_INDENT = 4, BROKEN_MIN = 16 };

size_t fit_columns(void)
{
	return os_is_terminal(os_stdout()) ? os_terminal_columns() : FIT_ALL;
}

/* The place after the styles at `at`, which take no column: those that begin, or that end. */
static const char *skip_styles(const char *at, const char *end, bool ending)
{
	const char *m;

	while (end - at > 3 && memcmp(at, "\033[", 2) == 0 && (at[2] == '0') == ending &&
	       (m = memchr(at, 'm', (size_t)(end - at))) != NULL)
		at = m + 1;
	return at;
}

/* The place after the character at `at`; an invalid byte counts as a character. */
static const char *next_char(const char *at, const char *end)
{
	size_t len;

	at = skip_styles(at, end, false);
	len = utf8_char(at, end);
	return skip_styles(at + (len ? len : at < end), end, true);
}

static size_t count_chars(const char *at, const char *end)
{
	size_t n;

	for (n = 0; at < end; n++)
		at = next_char(at, end);
	return n;
}

void fit_cut(struct buf *out, const char *text, size_t columns)
{
	struct buf clean = {0};
	const char *at, *fits, *end;
	size_t n;

	utf8_put_clean(&clean, text, strlen(text), SIZE_MAX);
	out->failed |= clean.failed;
	at = fits = text = buf_text(&clean);
	end = text + clean.len;
	for (n = 0; at < end && n < columns; n++) {
		at = next_char(at, end);
		if (n + 1 < columns)
			fits = at;
	}
	/* Cut right after a blank, the text would look as if a word were missing. */
	while (at < end && fits > text && fits[-1] == ' ')
		fits--;
	buf_put(out, text, (size_t)((at < end ? fits : end) - text));
	if (at < end && columns)
		buf_puts(out, "\xe2\x80\xa6");
	buf_free(&clean);
}

static void put_blanks(struct buf *out, size_t n)
{
	while (n--)
		buf_putc(out, ' ');
}

/* Characters of the line being written. */
static size_t used_columns(const struct buf *out)
{
	const char *text = buf_text(out), *end = text + out->len, *at = end;

	while (at > text && at[-1] != '\n')
		at--;
	return count_chars(at, end);
}

void fit_last(struct buf *out, const char *text, size_t indent, size_t columns)
{
	size_t used;

	if (columns == FIT_ALL) {
		put_blanks(out, indent);
		fit_cut(out, text, columns);
		return;
	}
	used = used_columns(out);
	if (columns < used + LAST_MIN) {
		buf_putc(out, '\n');
		put_blanks(out, LAST_INDENT);
		used = LAST_INDENT;
	}
	if (used + indent + LAST_MIN > columns)
		indent = columns > used + LAST_MIN ? columns - used - LAST_MIN : 0;
	put_blanks(out, indent);
	used += indent;
	fit_cut(out, text, columns > used ? columns - used : 1);
}

/* The column where the rest of a broken line goes. */
static size_t indent_of(const char *line, const char *end, size_t columns)
{
	const char *at = line, *text;
	size_t n, indent = 0;

	for (n = 0; at < end && n + BROKEN_MIN <= columns; n++, at = text) {
		text = next_char(at, end);
		if (at >= line + 2 && *at != ' ' && at[-1] == ' ' && at[-2] == ' ')
			indent = n;
	}
	return indent;
}

static void put_line(struct buf *out, const char *at, const char *end, size_t columns)
{
	size_t indent = indent_of(at, end, columns), room = columns ? columns : 1;
	const char *text = at + strspn(at, " ");   /* never break at leading blanks */

	while (count_chars(at, end) > room) {
		const char *stop = at, *blank = NULL;
		size_t n;

		for (n = 0; n < room; n++, stop = next_char(stop, end))
			if (*stop == ' ' && stop > text)
				blank = stop;
		if (*stop == ' ' || !blank)
			blank = stop;
		for (stop = blank; stop > at && stop[-1] == ' ';)
			stop--;
		buf_put(out, at, (size_t)(stop - at));
		for (at = blank; at < end && *at == ' ';)
			at++;
		if (at == end)
			return;
		buf_putc(out, '\n');
		put_blanks(out, indent);
		text = at;
		room = columns > indent ? columns - indent : 1;
	}
	buf_put(out, at, (size_t)(end - at));
}

void fit_lines(struct buf *out, const char *text, size_t n, size_t columns)
{
	const char *all = text + n, *end;

	while (text < all) {
		end = memchr(text, '\n', (size_t)(all - text));
		if (!end)
			end = all;
		put_line(out, text, end, columns);
		if (end < all)
			buf_putc(out, '\n');
		text = end + (end < all);
	}
}
