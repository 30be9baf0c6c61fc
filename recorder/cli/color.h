/*
 * Colour for a terminal: a last pass over a command's finished text, so that the code that makes
 * the text knows nothing of colour. It adds escape sequences and changes no other byte. Any thread.
 *
 * bold     labels, table heads, names of events, shares of 10 % and more
 * green    what check finds good; in diff what shrank
 * yellow   remarks of check, losses, incidents that are not whole
 * red      what check finds wrong or missing, damage, what failed; in diff what grew
 *
 * Source: ECMA-48, 8.3.117 (SGR): ESC [ 1 m, 31, 32, 33, 0.
 */
#pragma once

#include "options/options.h"

/* --color: auto, always or never. Returns 0 or ERR_USAGE. */
int color_check(const struct options *o, struct err *err);

/*
 * Whether standard output gets colour. auto (the default): it is a terminal that takes escape
 * sequences, NO_COLOR is not set or empty (no-color.org), TERM is not "dumb". Never with --json.
 */
bool color_wanted(const struct options *o);

/* Append n bytes of whole lines, as `about` prints them, with colour. */
void color_lines(struct buf *out, enum command about, const char *text, size_t n);
