/*
 * The Markdown of help, as text for a terminal or a pipe, or as the body of a manual page (man(7)).
 *
 * It knows headings (##, ###), paragraphs, "- " items, code indented by four blanks, tables, `code`
 * and **bold**. A table becomes a list of terms: the first column is the term, the last column its
 * meaning, and columns between them stand in parentheses. "\|" is a '|' in a cell. Any thread.
 */
#pragma once

#include "base/buf.h"

enum markdown_form {
	MARKDOWN_PLAIN,                      /* no escape sequences: pipes, files */
	MARKDOWN_STYLED,                     /* bold headings and code */
	MARKDOWN_MAN,
};

/* columns: where lines break; code and tables' terms may be longer. */
void markdown_put(struct buf *out, const char *text, enum markdown_form form, size_t columns);
