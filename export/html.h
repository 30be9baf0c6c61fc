/* Parts that both pages for browsers have. Any thread. */
#pragma once

#include "base/out.h"

/* A page up to its title, with a policy that lets nothing be loaded. */
extern const char html_begin[];

/* Lines "Label: text" as rows of a <dl>. The reason is left out: it is the page's heading. */
void html_put_notes(struct buf *out, const struct buf *notes);

/* The data for unpack() of data.js: zlib, then base64. 0 or ERR_MEMORY. */
int html_put_data(const struct buf *json, struct out *out, struct err *err);
