/*
 * What the pages for browsers share. Any thread.
 */
#ifndef EXPORT_HTML_H
#define EXPORT_HTML_H

#include "base/out.h"

/* A page up to its title, with a policy that refuses everything from outside. */
extern const char html_begin[];

/* Lines "Label: text" as rows of a <dl>; the reason, which is a heading, is left out. */
void html_put_notes(struct buf *out, const struct buf *notes);

/* JSON for unpack() of data.js: zlib, base64. 0 or ERR_MEMORY. */
int html_put_data(const struct buf *json, struct out *out, struct err *err);

#endif
