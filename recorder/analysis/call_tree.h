/*
 * An incident's call tree with costs and times, as `report` prints it. The tree is that of
 * model/stack_tree.h, whose header has the rules for functions that call themselves.
 *
 * A cost is the weight of samples, in nanoseconds for CPU time. A sample weighs its period, so
 * shares hold when the rate changed. `when` shows when a node was on the stack: its inclusive cost
 * in 32 equal parts of the window. Of a set of incidents, `which` shows in which of them it was.
 * Both are shown in tenths, so they are float.
 */
#pragma once

#include "model/stack_tree.h"

#define CALL_WHEN 32u
#define CALL_WHICH 32u                       /* more incidents share a column */
#define CALL_NONE STACK_TREE_NONE

struct call_cost {
	double inclusive, exclusive;         /* weights; call_around() splits them */
	uint64_t samples;                    /* that end in it */
	uint64_t first_ns, last_ns;          /* first and last sample in it */
	uint32_t folded;                     /* small nodes that were folded into it */
	float *columns;                      /* CALL_WHEN of when, then nwhich of which */
};

/* Callees are ordered by inclusive cost, then by name. A node without cost is in no list. */
struct call_node {
	uint32_t parent;                     /* CALL_NONE: the root, node 0 */
	uint32_t first_child, next;          /* callees, the most expensive first; CALL_NONE */
	const char *name;
	struct call_cost cost;
};

struct call_tree {
	struct call_node *nodes;             /* parents before children */
	uint32_t nnodes;
	struct stack_tree stacks;            /* of the same nodes */
	bool has_managed;                    /* stack_tree_has_managed() */
	uint64_t t0_ns, t1_ns;
	bool is_time;                        /* costs are ns; else bytes or counts */
	uint32_t nparts;                     /* of a set of incidents; else 0 */
	uint32_t nwhich;                     /* columns of which: nparts, or CALL_WHICH */
	uint32_t ncolumns;                   /* CALL_WHEN + nwhich */
	float *columns, *function_columns;   /* those of nodes; of texts, by call_functions() */
};

struct call_options {
	enum stream stream;                  /* whose samples */
	double fold_pct;                     /* fold smaller nodes into their callers; 0 = none */
	const char *focus;                   /* a function: only its callees; NULL = everything */
	bool callers;                        /* of the focus: its callers instead */
	bool processes;                      /* add processes and threads; not with a focus */
	enum home_key by;          /* of processes: add these and processes; HOME_NONE = do not */
	bool no_frames;                      /* leave out what is below the threads */
	bool by_name;                        /* for the next two only: nodes have no columns */
	bool addresses;                      /* in place of missing names */
};

/*
 * With a focus, the node below the root is that function, with its inclusive cost.
 *
 * returns  0; ERR_NOT_FOUND when the focus names no function of the samples, or several; ERR_MEMORY
 */
int call_tree_new(const struct incident *in, const struct call_options *o, struct call_tree *out,
		  struct err *err);
void call_tree_free(struct call_tree *t);
/*
 * How well a function's name fits what was asked: 3 the same, 2 without its module and parameters,
 * 1 contains it, 0 not. The one that fits best is meant.
 */
unsigned call_name_fit(const char *name, const char *asked);

/* What a function costs in the whole tree. The root counts as a function. */
struct call_function {
	const char *name;
	uint32_t text;                       /* its number in the tree */
	struct call_cost cost;
};

/*
 * By exclusive cost, or by_inclusive, the most expensive first; free() the result. ERR_MEMORY.
 * Their columns are the tree's.
 */
int call_functions(struct call_tree *t, const struct incident *in, bool by_inclusive,
		   struct call_function **out, uint32_t *n, struct err *err);

/*
 * A function with its callers and callees, as PerfView's view of that name has it. A sample with N
 * calls of the function counts as 1/N at each of them, so the callers' inclusive costs add up to
 * the function's, and so do its exclusive cost and the callees' inclusive ones.
 */
struct call_around {
	struct call_function focus;
	struct call_function *callers, *callees;     /* the most expensive first */
	uint32_t ncallers, ncallees;
	float *columns;                      /* of all */
};

/* focus: as in call_options. t: of everything, without processes. Errors as call_tree_new(). */
int call_around(const struct call_tree *t, const struct incident *in, const char *focus,
		struct call_around *out, struct err *err);
void call_around_free(struct call_around *a);

/*
 * A share as one of PerfView's letters: '_' nothing, '.' under 0.1 %, 'o' under 1 %, '0' to '9'
 * tenths, 'A' to 'Y' those from 100 % on, '*' 350 % and more.
 */
char call_share_letter(double share);
/*
 * In such letters: shares of one CPU, of a set the mean of its incidents; of bytes and counts,
 * shares of the row's largest part, which is an A.
 */
void call_when_text(const struct call_tree *t, const float when[CALL_WHEN],
		    char out[CALL_WHEN + 1]);

/*
 * Of a set: such a letter for each incident, which says its share of a row's cost; '9' also where
 * the others have none of it. "" where it is no set.
 */
void call_which_text(const float *which, uint32_t n, char out[CALL_WHICH + 1]);
