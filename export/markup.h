/*
 * What formats of markup share: escaping; and those for browsers: units and colours. Any thread.
 */
#ifndef EXPORT_MARKUP_H
#define EXPORT_MARKUP_H

#include "base/buf.h"
#include "model/incident.h"

/* Append text for XML and HTML, between tags and in quotes. text is clean UTF-8 (name_put()). */
void markup_put(struct buf *out, const char *text, size_t n);
/* The same without quotes: between tags only. */
void markup_put_text(struct buf *out, const char *text, size_t n);

/* "samples", "us of CPU time", "ns off CPU", "bytes": what export_weight() counts. */
const char *markup_unit(const struct incident *in, enum stream stream);

/* The colour of a frame's text, "#rrggbb": the same for all of a module; report.js has the twin. */
const char *markup_colour(const char *text, size_t n);

#endif
