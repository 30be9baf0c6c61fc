/*
 * Two incidents compared: the samples of both as one incident with one call tree, and two weights for
 * everything in it. A format prints the tree; a new one is one file and one line in diff_formats[].
 *
 * What a sample weighs is its weight in its stream's unit, CPU time in ns, so that rates of sampling
 * may differ. The base's weights are multiplied by `factor`, so that windows may differ in length.
 * Names are without process and thread numbers; a number in the name of a thread ("worker-12") becomes
 * '#', or the threads of a pool would not be compared. exports-and-store.md, section 2.11. One thread.
 */
#ifndef EXPORT_DIFF_H
#define EXPORT_DIFF_H

#include "export/export_tree.h"

enum diff_normalize {
	DIFF_BY_DURATION,                    /* as if the base's window were as long as the test's */
	DIFF_BY_WEIGHT,                      /* as if both had the same weight in all: shares */
	DIFF_AS_RECORDED,
};

struct diff_side {
	const struct incident_head *head;    /* borrowed */
	const char *store;                   /* borrowed; NULL = of no importance; set it after diff_make() */
	uint64_t samples, weight;            /* of the stream, as recorded */
	uint64_t window_ns;
};

struct diff {
	enum stream stream;
	enum diff_normalize normalize;
	struct diff_side base, test;
	double factor;
	struct incident in;                  /* no events; triggers at one time, head.trigger_ns */
	uint32_t nbase;                      /* its first samples are the base's, the others the test's */
};

/*
 * base, test  what is to be compared of them; borrowed, heads until diff_free()
 * d           untouched on failure
 * returns     0; ERR_NOT_FOUND when one has no samples of the stream; ERR_MEMORY
 */
int diff_make(struct diff *d, const struct incident *base, const struct incident *test,
	      enum stream stream, enum diff_normalize normalize, struct err *err);
void diff_free(struct diff *d);

/* What a weight is printed in: weight / per, "us of CPU time". */
struct diff_unit {
	double per;
	const char *text;
};

struct diff_unit diff_unit(const struct diff *d);

/*
 * Append what was compared, one fact a line "Label: text", each ending in LF: both incidents with their
 * windows, samples and losses, the factor, and what came of it in all. Plain text.
 */
void diff_notes_put(struct buf *out, const struct diff *d);

/* ---- the call tree, with two weights -------------------------------------------------------- */

struct diff_tree {
	struct stack_tree tree;
	double *base, *test;                 /* of the samples that end at a node; the base's times factor */
	double *all_base, *all_test;         /* with those of its callees */
	double base_sum, test_sum;
};

struct diff_options {
	bool annotate, addresses;            /* as in struct export_options */
};

/* t starts as {0}. 0 or ERR_MEMORY. */
int diff_tree_build(struct diff_tree *t, const struct diff *d, const struct diff_options *opt,
		    const struct stack_tree_style *style, struct err *err);
void diff_tree_free(struct diff_tree *t);

/* A function's inclusive weights, each stack once however often the function is in it; and its own. */
struct diff_function {
	uint32_t text;
	double base, test;
	double own_base, own_test;
};

/*
 * Of one process (its node), or of all (STACK_TREE_NONE); in the order of their texts' numbers; free() the
 * result. ERR_MEMORY.
 */
int diff_functions(const struct diff_tree *t, uint32_t process, struct diff_function **out,
		   uint32_t *n, struct err *err);

/* ---- formats -------------------------------------------------------------------------------- */

struct diff_format {
	const char *name;                    /* that of an exporter, whose suffix it has */
	int (*write)(const struct diff *d, const struct diff_options *opt, struct out *out,
		     struct err *err);
};

/* Ending in NULL. */
extern const struct diff_format *const diff_formats[];

/* NULL when there is none for what this exporter writes. */
const struct diff_format *diff_format_of(const struct exporter *e);

#endif
