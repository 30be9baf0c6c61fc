/* Parts that both pages for browsers have. Any thread. */
#pragma once

#include "base/out.h"

/* Lines "Label: text" as rows of a <dl>. The reason is left out: it is the page's heading. */
void html_put_notes(struct buf *out, const struct buf *notes);

/*
 * Write a page.
 *
 * head     from its title to the end of its header
 * body     what follows the header
 * json     for unpack() of data.js
 * scripts  ending in NULL
 * returns  0 or ERR_MEMORY
 */
int html_write_page(const struct buf *head, const char *body, const struct buf *json,
		    const char *const *scripts, struct out *out, struct err *err);
