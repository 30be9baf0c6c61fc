/*
 * The call tree that most exports print: processes, threads, a mark for broken and cut walks,
 * frames; and the names that most formats give them. A style's ctx is the struct export_options.
 */
#pragma once

#include "export/export.h"
#include "model/stack_tree.h"

/* "app (100)", "worker (101)", "libc.so.6!read": plain text, cleaned. */
extern const struct stack_tree_style export_tree_plain;
/* The same as strings of JSON, quotes and all. */
extern const struct stack_tree_style export_tree_json;

/* For a style's slot `escape`: a text as a string of JSON. */
void export_tree_quote(struct buf *out, const char *text, size_t n);

/* The samples of opt's stream; t is untouched on failure. 0 or ERR_MEMORY. */
int export_tree_build(struct stack_tree *t, const struct incident *in,
		      const struct export_options *opt, const struct stack_tree_style *style,
		      struct err *err);

/* stack_tree_own() in the stream's unit; free() it; NULL without memory. */
uint64_t *export_tree_own(const struct stack_tree *t, const struct incident *in);

/* Append a text of the tree. */
static inline void export_tree_put(struct buf *out, const struct stack_tree *t, uint32_t text)
{
	buf_put(out, stack_tree_text(t, text), t->texts.items[text].len);
}
