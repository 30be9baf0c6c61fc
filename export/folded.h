/*
 * Folded stacks: names and sorted lines, for the format itself and for that of a diff. Any thread.
 */
#ifndef EXPORT_FOLDED_H
#define EXPORT_FOLDED_H

#include "export/export_tree.h"

/* Names without ';', and leaves that do not end in a number. */
extern const struct stack_tree_style folded_style;

/*
 * The lines of a tree of this style, sorted bytewise: "a;b;c 42" for each node with a count of its own,
 * or "a;b;c 42 43" with a second column; then for each that has one in either.
 *
 * counts, second  one for each node; second NULL = one column
 * returns         0 or ERR_MEMORY
 */
int folded_write_tree(const struct stack_tree *tree, const uint64_t *counts, const uint64_t *second,
		      struct out *out, struct err *err);

#endif
