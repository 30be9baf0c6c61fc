/*
 * The samples of an incident as one call tree, which every table, graph and export adds up.
 *
 * A style names the nodes: optionally a root, processes and threads, and below them the frames of
 * each stack. Nodes with the same text below the same caller are one: two addresses of one
 * function, or two threads of one name when ids are left out. Texts and nodes have dense numbers
 * from 0, callers before callees, which are the same for the same incident on every host. The tree
 * has no node that none of its samples uses.
 *
 * Recursion: a function may stand in a stack several times. These are PerfView's rules, and every
 * view keeps them; export/report/data.js has them again for the page:
 *
 *  - Inclusive weight counts a sample once, at the outermost call: stack_tree_is_outermost().
 *  - The callers and the callees of a function are those of its deepest call, stack_tree_focus():
 *    in A>B>C>B>D the caller of B is C, and its callee is D.
 *  - A view of callers and callees together, call_around(), gives 1/N of a sample to
 *    each of the N calls in its stack: in A>B>C>B>D, A and C call B with a half each, B calls C
 *    and D.
 *
 * One thread.
 */
#pragma once

#include "base/text_table.h"
#include "model/incident.h"

#define STACK_TREE_NONE UINT32_MAX

/* ctx is the caller's. The functions append a text to out. */
struct stack_tree_style {
	/*
	 * The text (number 0) of node 0, which is above all others, and to which samples of
	 * unknown threads belong. NULL: there is no root, and unknown threads are named as all.
	 */
	const char *root;
	/*
	 * NULL: there are no nodes for processes, nor for threads. Above the processes of a set of
	 * incidents (incident_join.h) is a node for each incident.
	 */
	void (*process)(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out);
	/* NULL: there are no nodes for threads. */
	void (*thread)(const struct incident *in, const void *ctx, uint32_t thread,
		       struct buf *out);
	/* Broken and cut walks have a node stack_tree_mark() above their frames. */
	bool marks;
	/* NULL: there are no nodes for frames, and samples belong to their threads. */
	void (*frame)(const struct incident *in, const void *ctx, uint32_t frame, struct buf *out);
	/* Turn such a text into what is in the tree; NULL: it stays as it is. */
	void (*escape)(struct buf *out, const char *text, size_t n);
	/* Change a text in place where a stack ends in it; returns whether it did. NULL: never. */
	bool (*leaf)(char *text, size_t n);
};

struct stack_tree_node {
	uint32_t caller;                     /* STACK_TREE_NONE: it has none */
	uint32_t text;
};

struct stack_tree {
	struct text_table texts;
	struct stack_tree_node *nodes;
	uint8_t *codes;                      /* enum code_kind of the first ncodes texts */
	uint32_t ncodes, codes_room;
	uint32_t *of_sample;             /* node of each sample; STACK_TREE_NONE: not in the tree */
	uint32_t nnodes, nsamples;           /* nsamples: those in the tree */
	uint32_t nlevels;              /* of root, incident, process and thread, above the frames */
};

/* streams: a bit for each stream to take. t is untouched on failure. 0 or ERR_MEMORY. */
int stack_tree_build(struct stack_tree *t, const struct incident *in, uint32_t streams,
		     const struct stack_tree_style *style, const void *ctx, struct err *err);
void stack_tree_free(struct stack_tree *t);
/* Once weights are summed: free of_sample; or all but the texts and their codes. */
void stack_tree_drop_samples(struct stack_tree *t);
void stack_tree_keep_texts(struct stack_tree *t);

static inline const char *stack_tree_text(const struct stack_tree *t, uint32_t text)
{
	return text_table_get(&t->texts, text);
}

/* The code of a frame's text; CODE_NONE for all other texts. */
static inline enum code_kind stack_tree_code(const struct stack_tree *t, uint32_t text)
{
	return text < t->ncodes ? (enum code_kind)t->codes[text] : CODE_NONE;
}

/* Whether there is a frame of managed code whose language is known. */
bool stack_tree_has_managed(const struct stack_tree *t);

/*
 * Turn a tree with a root and without processes into that of one function's callees, or of its
 * callers. The function is node 1; samples without it leave the tree. After a failure only
 * stack_tree_free() is allowed. 0 or ERR_MEMORY.
 */
int stack_tree_focus(struct stack_tree *t, const struct incident *in, uint32_t text, bool callers,
		     struct err *err);

/* The weight of the samples that end at each node; free() it; NULL without memory. */
typedef uint64_t stack_tree_weight(const struct incident *in, const struct incident_sample *s);
uint64_t *stack_tree_own(const struct stack_tree *t, const struct incident *in,
			 stack_tree_weight *weigh);

/* Add to each node's weight those of its callees. */
void stack_tree_add_up(const struct stack_tree *t, uint64_t *weights);

/* Whether a node is a frame or a mark, below the root, processes and threads. */
bool stack_tree_is_frame(const struct stack_tree *t, uint32_t node);

/* Whether no caller of a frame has its text, so that its inclusive weight counts. */
bool stack_tree_is_outermost(const struct stack_tree *t, uint32_t node);

/* The texts on the way from the root to a node; starts as {0}, free(texts) in the end. */
struct stack_tree_path {
	uint32_t *texts;
	uint32_t n, capacity;
};

/* skip: how many levels to leave out at the top; the node itself stays. 0 or ERR_MEMORY. */
int stack_tree_path(const struct stack_tree *t, uint32_t node, uint32_t skip,
		    struct stack_tree_path *path);

/* "BROKEN" or "[truncated]" for stacks of that quality; NULL for all others. */
const char *stack_tree_mark(enum stack_quality quality);
