/*
 * The call tree as a format prints it: process, thread, then frames, each by its text.
 *
 * Two addresses of one function, or two threads of one name when ids are left out, have the same
 * text and become one node, so a format only has to write what is here. Texts and nodes have dense
 * numbers from 0 and callers come before callees, always in the same order for the same incident.
 * Nothing is here that no exported sample uses. One thread.
 */
#ifndef EXPORT_TREE_H
#define EXPORT_TREE_H

#include "export/export.h"

#include "base/table.h"

#define TREE_NONE UINT32_MAX

/* How a format writes the three kinds of names; each appends to out and never nothing. */
struct tree_style {
	void (*process)(const struct incident *in, const struct export_options *opt,
			uint32_t thread, struct buf *out);
	void (*thread)(const struct incident *in, const struct export_options *opt,
		       uint32_t thread, struct buf *out);
	void (*frame)(const struct incident *in, const struct export_options *opt, uint32_t frame,
		      struct buf *out);
	/* Turn such a text into what stands in the file; NULL = it stands there as it is. */
	void (*escape)(struct buf *out, const char *text, size_t n);
	/* Change a text where a stack ends in it; whether it did. NULL = no difference. */
	bool (*leaf)(char *text, size_t n);
};

/* "app (100)", "worker (101)", "libc.so.6!read": plain text, cleaned. */
extern const struct tree_style tree_plain_style;
/* The same as strings of JSON, quotes and all. */
extern const struct tree_style tree_json_style;
/* An escape for styles: a text as a string of JSON. */
void tree_quote(struct buf *out, const char *text, size_t n);

struct tree_text {
	uint32_t at, len;                    /* in tree.bytes */
};

struct tree_node {
	uint32_t caller;                     /* TREE_NONE = a process */
	uint32_t text;
};

struct tree {
	struct tree_text *texts;
	struct tree_node *nodes;
	uint32_t *of_sample;                 /* node of each sample; TREE_NONE = not exported */
	uint32_t ntexts, nnodes, nsamples;   /* nsamples: those exported */
	struct buf bytes;
	struct tree_build *build;            /* private, while it is built */
};

/* The samples of one stream of an incident; tree starts as {0}. 0 or ERR_MEMORY. */
int tree_build(struct tree *t, const struct incident *in, const struct export_options *opt,
	       const struct tree_style *style, struct err *err);
void tree_free(struct tree *t);

static inline const char *tree_text(const struct tree *t, uint32_t text)
{
	return t->bytes.data + t->texts[text].at;
}

#endif
