/*
 * Folded stacks: names and sorted lines, for the format and for its diff. Any thread.
 */
#pragma once

#include "export/export_tree.h"

/* Names have no ';', and leaves do not end in a number. */
extern const struct stack_tree_style folded_style;

/*
 * Write the lines of a tree of this style, sorted bytewise: "a;b;c 42" for each node with a count
 * of its own. With a second column, "a;b;c 42 43" for each node that has a count in either.
 *
 * counts, second  one for each node; second NULL = one column
 * returns         0 or ERR_MEMORY
 */
int folded_write_tree(const struct stack_tree *tree, const uint64_t *counts, const uint64_t *second,
		      struct out *out, struct err *err);
