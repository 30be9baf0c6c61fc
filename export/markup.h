/* Escaping for XML and HTML, and the units and colours of flame graphs. Any thread. */
#pragma once

#include "base/buf.h"
#include "model/incident.h"

/* Append text for use between tags and in quotes. text is clean UTF-8 (name_put()). */
void markup_put(struct buf *out, const char *text, size_t n);
/* The same for use between tags only: quotes stay. */
void markup_put_text(struct buf *out, const char *text, size_t n);

/*
 * Append a cell of CSV (RFC 4180), in quotes if need be. excel: a spreadsheet must not compute it.
 */
void markup_put_csv(struct buf *out, const char *text, bool excel);

/* The unit of export_weight(): "samples", "us of CPU time", "ns off CPU", "bytes". */
#define UNIT_TEXT_MAX 40
const char *markup_unit(const struct incident *in, enum stream stream, char text[UNIT_TEXT_MAX]);

/*
 * The colour of a frame's text, "#rrggbb". Kinds of code have colours of their own (kernel grey,
 * Java green, Python blue, JavaScript yellow, .NET violet, native code from orange to rose), in
 * shades by module where code is native, else by class. Its twin is in flame.js.
 */
const char *markup_colour(const char *text, size_t n, enum code_kind code);
