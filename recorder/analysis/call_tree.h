/*
 * An incident's samples as a tree of calls: all processes, their threads, and what they called.
 *
 * Costs are weights of the samples: nanoseconds of the CPU stream (every sample weighs its period, so
 * shares hold when the rate changed). Nodes are ordered: callees of a node by inclusive cost, then by
 * name. `when` says when a node was on the stack: its inclusive cost in 32 equal parts of the window.
 */
#ifndef CALL_TREE_H
#define CALL_TREE_H

#include "model/incident.h"

#define CALL_WHEN 32u
#define CALL_NONE UINT32_MAX

struct call_node {
	uint32_t parent;                     /* CALL_NONE: the root, node 0 */
	uint32_t first_child, next;          /* callees, the most expensive first; CALL_NONE */
	uint32_t name;                       /* into names */
	uint64_t inclusive, exclusive;       /* weight */
	uint64_t samples;                    /* exclusive */
	uint64_t first_ns, last_ns;          /* first and last sample in it */
	uint32_t folded;                     /* nodes that were too small, and folded into it */
	uint64_t when[CALL_WHEN];
};

struct call_tree {
	struct call_node *nodes;             /* parents before children */
	uint32_t nnodes;
	char **names;
	uint32_t nnames;
	uint64_t t0_ns, t1_ns;
};

struct call_options {
	enum stream stream;                  /* whose samples */
	double fold_pct;                     /* smaller nodes are folded into their callers; 0 = none */
	const char *focus;                   /* a function: only what it called; NULL = everything */
	bool callers;                        /* of the focus: who called it instead */
	bool processes;                      /* with nodes for processes and threads */
	bool addresses;                      /* in place of missing names */
};

/*
 * With a focus the node below the root is that function, with its inclusive cost: each sample once,
 * at the outermost call.
 *
 * returns  0; ERR_NOT_FOUND when no frame is called like the focus, or several are; ERR_MEMORY
 */
int call_tree_new(const struct incident *in, const struct call_options *o, struct call_tree *out,
		  struct err *err);
void call_tree_free(struct call_tree *t);

/* Functions over the whole tree: inclusive cost counts a stack once however often it is in it. */
struct call_function {
	uint32_t name;
	uint64_t inclusive, exclusive, samples, first_ns, last_ns;
	uint32_t folded;
	uint64_t when[CALL_WHEN];
};

/* Most expensive by itself first (by_inclusive: in all); free() the result. ERR_MEMORY. */
int call_functions(const struct call_tree *t, bool by_inclusive, struct call_function **out,
		   uint32_t *n, struct err *err);

/* CALL_WHEN characters: '_' nothing, '.' under 1 %, 'o' under 10 %, '1' to '9' tenths, of one CPU. */
void call_when_text(const struct call_tree *t, const uint64_t when[CALL_WHEN],
		    char out[CALL_WHEN + 1]);

#endif
