/*
 * Text for people fitted to the columns of their terminal. A column per character: wide ones are rare in
 * reasons and names, and only look odd. UTF-8 stays whole. Without a terminal nothing is cut or wrapped,
 * for grep may want it: columns is FIT_ALL then.
 */
#ifndef BASE_FIT_H
#define BASE_FIT_H

#include "base/buf.h"

#define FIT_ALL SIZE_MAX

/* Of standard output; FIT_ALL when it is no terminal. */
size_t fit_columns(void);

/* Append at most `columns` characters of text, cut with an ellipsis, control characters as blanks. */
void fit_cut(struct buf *out, const char *text, size_t columns);

/*
 * Append the last cell of a row, cut at the terminal's end; indent more blanks stand before it, as far as
 * there is room. Where the cells before it leave it hardly any, it goes on a line of its own.
 */
void fit_last(struct buf *out, const char *text, size_t indent, size_t columns);

/*
 * Append lines, those that are too long broken at blanks. They go on under the text that follows the
 * label or the numbers in front, that is behind the last two blanks in a row, if that leaves room for words.
 */
void fit_lines(struct buf *out, const char *text, size_t n, size_t columns);

#endif
