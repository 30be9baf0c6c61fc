/*
 * Compares two incidents: joins their samples into one incident with one call tree, and gives every
 * node two weights. A format prints the tree: see write_diff in struct exporter.
 *
 * A sample weighs its weight in its stream's unit (CPU time in ns), so sampling rates may differ.
 * The base's weights are multiplied by `factor`, so the windows may differ in length. Names have no
 * process and thread numbers, and digits in a thread's name ("worker-12") become '#', so that the
 * threads of a pool are compared. One thread.
 */
#pragma once

#include "export/export_tree.h"

enum diff_normalize {
	DIFF_BY_DURATION,                    /* scale the base to the length of the test's window */
	DIFF_BY_WEIGHT,                      /* scale the base to the test's total: shares */
	DIFF_AS_RECORDED,
};

struct diff_side {
	const struct incident_head *head;    /* borrowed */
	const char *store;                   /* for notes; borrowed; set after diff_make() */
	uint64_t samples, weight;            /* of the stream, as recorded */
	uint64_t window_ns;
};

struct diff {
	enum stream stream;
	enum diff_normalize normalize;
	struct diff_side base, test;
	double factor;
	struct incident in;                  /* no events; both triggers are at head.trigger_ns */
	uint32_t nbase;                      /* its first samples; the others are the test's */
};

/*
 * base, test  already filtered; borrowed, their heads until diff_free()
 * d           untouched on failure
 * returns     0; ERR_NOT_FOUND when one has no samples of the stream; ERR_MEMORY
 */
int diff_make(struct diff *d, const struct incident *base, const struct incident *test,
	      enum stream stream, enum diff_normalize normalize, struct err *err);
void diff_free(struct diff *d);

/* The unit that weights are printed in: weight / per, "us of CPU time". */
struct diff_unit {
	double per;
	char text[40];
};

struct diff_unit diff_unit(const struct diff *d);

/*
 * Append what was compared as plain text, a fact a line, "Label: text\n": both incidents with their
 * windows, samples and losses, the factor, and both totals.
 */
void diff_notes_put(struct buf *out, const struct diff *d);

/* ---- the call tree, with two weights -------------------------------------------------------- */

struct diff_tree {
	struct stack_tree tree;
	double *base, *test;                 /* of each node itself; the base's times factor */
	double *all_base, *all_test;         /* of each node with its callees */
	double base_sum, test_sum;
};

/* t starts as {0}; opt->stream is that of the diff. 0 or ERR_MEMORY. */
int diff_tree_build(struct diff_tree *t, const struct diff *d, const struct export_options *opt,
		    const struct stack_tree_style *style, struct err *err);
void diff_tree_free(struct diff_tree *t);

/* A function's inclusive weights, which count each sample once, and its own. */
struct diff_function {
	uint32_t text;
	double base, test;
	double own_base, own_test;
};

/*
 * The functions of one process (its node), or of all (STACK_TREE_NONE), in the order of their
 * texts' numbers; free() the result. ERR_MEMORY.
 */
int diff_functions(const struct diff_tree *t, uint32_t process, struct diff_function **out,
		   uint32_t *n, struct err *err);
