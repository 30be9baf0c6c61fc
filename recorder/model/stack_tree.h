/*
 * The samples of an incident as one tree of calls: what every table, graph and export adds up.
 *
 * A style says what the nodes are called: a root, processes and threads if they are wanted, below
 * them the frames of each stack. What has the same text below the same caller is one node: two
 * addresses of one function, or two threads of one name when ids are left out. Texts and nodes have
 * dense numbers from 0, callers before callees, the same for the same incident on every host.
 * Nothing is here that no sample of the tree uses.
 *
 * Recursion: a function may stand in a stack several times. These are PerfView's rules, and every
 * view keeps them; export/report/data.js has them again for the page:
 *
 *  - Inclusive weight counts a sample once, at the outermost call: stack_tree_is_outermost().
 *  - The callers and the callees of a function are those of its deepest call, stack_tree_focus():
 *    in A>B>C>B>D the caller of B is C, and its callee is D.
 *  - A view of callers and callees together (only the page has one) gives 1/N of a sample to each
 *    of the N calls in its stack: in A>B>C>B>D, A and C call B with a half each, B calls C and D.
 *
 * One thread.
 */
#ifndef MODEL_STACK_TREE_H
#define MODEL_STACK_TREE_H

#include "model/incident.h"

#define STACK_TREE_NONE UINT32_MAX

/* ctx is the caller's. The functions append to out, and never nothing. */
struct stack_tree_style {
	/* Text 0, of node 0, above all others, where samples of no known thread end too. NULL:
	 * there
	   is no such node, processes have no caller, and a thread that is not known is named too. */
	const char *root;
	/* Below the root; NULL, and then no thread either: there are no nodes for them. */
	void (*process)(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out);
	/* Below the process; NULL: none. */
	void (*thread)(const struct incident *in, const void *ctx, uint32_t thread,
		       struct buf *out);
	/* Broken and cut walks show as a node, stack_tree_mark(), above their frames. */
	bool marks;
	void (*frame)(const struct incident *in, const void *ctx, uint32_t frame, struct buf *out);
	/* Turn such a text into what stands in a file; NULL: it stands there as it is. */
	void (*escape)(struct buf *out, const char *text, size_t n);
	/* Change a text where a stack ends in it, and say whether it did; NULL: no difference. */
	bool (*leaf)(char *text, size_t n);
};

struct stack_tree_text {
	uint32_t at, len;                    /* in tree.bytes; a NUL follows */
};

struct stack_tree_node {
	uint32_t caller;                     /* STACK_TREE_NONE: it has none */
	uint32_t text;
};

struct stack_tree {
	struct stack_tree_text *texts;
	struct stack_tree_node *nodes;
	uint32_t *of_sample;             /* node of each sample; STACK_TREE_NONE: not in the tree */
	uint32_t ntexts, nnodes, nsamples;   /* nsamples: those in the tree */
	uint32_t nlevels;                    /* of root, process and thread, above the frames */
	struct buf bytes;
};

/* streams: a bit for each whose samples are wanted. t is untouched on failure. 0 or ERR_MEMORY. */
int stack_tree_build(struct stack_tree *t, const struct incident *in, uint32_t streams,
		     const struct stack_tree_style *style, const void *ctx, struct err *err);
void stack_tree_free(struct stack_tree *t);

static inline const char *stack_tree_text(const struct stack_tree *t, uint32_t text)
{
	return t->bytes.data + t->texts[text].at;
}

/*
 * Make it the tree of what one function called, or of who called it (callers). Below the root,
 * which the tree must have, the function is node 1; samples without it leave the tree. Only a tree
 * without processes has a focus. After a failure only stack_tree_free() is allowed. 0 or
 * ERR_MEMORY.
 */
int stack_tree_focus(struct stack_tree *t, const struct incident *in, uint32_t text, bool callers,
		     struct err *err);

/* What the samples that end at each node weigh; free() it; NULL without memory. */
typedef uint64_t stack_tree_weight(const struct incident *in, const struct incident_sample *s);
uint64_t *stack_tree_own(const struct stack_tree *t, const struct incident *in,
			 stack_tree_weight *weigh);

/* Add to each node's weight those of its callees. */
void stack_tree_add_up(const struct stack_tree *t, uint64_t *weights);

/* Whether a node is a frame or a mark, below the root, processes and threads. */
bool stack_tree_is_frame(const struct stack_tree *t, uint32_t node);

/* Whether a frame has no caller of its text: then its function's samples count here. */
bool stack_tree_is_outermost(const struct stack_tree *t, uint32_t node);

/* The texts from the frame that was called first to a node, which may be none; starts as {0}. */
struct stack_tree_path {
	uint32_t *texts;
	uint32_t n, capacity;
};

/* skip: how many levels to leave out at the top; the last one there is stays. 0 or ERR_MEMORY. */
int stack_tree_path(const struct stack_tree *t, uint32_t node, uint32_t skip,
		    struct stack_tree_path *path);

/* "BROKEN" or "[truncated]" for stacks of that quality; NULL for all others. */
const char *stack_tree_mark(enum stack_quality quality);

#endif
