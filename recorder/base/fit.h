/*
 * Text for people, fitted to the columns of their terminal. Each character counts as one column:
 * wide ones are rare in reasons and names, and only look odd. UTF-8 characters stay whole, and the
 * escape sequences of colours (ESC [ ... m) take no column. Without a terminal nothing is cut or
 * wrapped, for the sake of grep; columns is then FIT_ALL.
 */
#pragma once

#include "base/buf.h"

#define FIT_ALL SIZE_MAX

/* The columns of standard output; FIT_ALL when it is no terminal. */
size_t fit_columns(void);

/*
 * Append at most `columns` characters of text, cut with an ellipsis; control characters as blanks.
 */
void fit_cut(struct buf *out, const char *text, size_t columns);

/*
 * Append the last cell of a row, cut at the terminal's edge. Up to `indent` blanks stand before it,
 * as far as there is room. Where the cells before it leave hardly any, it gets a line of its own.
 */
void fit_last(struct buf *out, const char *text, size_t indent, size_t columns);

/*
 * Append lines, breaking those that are too long at blanks. A continuation is indented to the text
 * that follows the label or the numbers, that is after the last two blanks in a row, if that leaves
 * room for words.
 */
void fit_lines(struct buf *out, const char *text, size_t n, size_t columns);
