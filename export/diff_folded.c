/*
 * Folded stacks with two columns, as difffolded.pl writes them: "stack base test". flamegraph.pl
 * makes a differential flame graph of it, as wide as the test.
 *
 * Columns are integers in diff_unit(), 0 where a side does not have the stack. A stack that rounds
 * to 0 on both sides has no line.
 */
#include "export/diff.h"
#include "export/folded.h"

#include <stdlib.h>

static uint64_t *rounded(const double *weights, uint32_t n, double per)
{
	uint64_t *counts = calloc((size_t)n + 1, sizeof(*counts));
	uint32_t i;

	for (i = 0; counts && i < n; i++)
		counts[i] = (uint64_t)(weights[i] / per + 0.5);
	return counts;
}

static int diff_folded_write(const struct diff *d, const struct diff_options *opt, struct out *out,
			     struct err *err)
{
	struct diff_tree t = {0};
	uint64_t *base = NULL, *test = NULL;
	int rc = diff_tree_build(&t, d, opt, &folded_style, err);

	if (!rc) {
		base = rounded(t.base, t.tree.nnodes, diff_unit(d).per);
		test = rounded(t.test, t.tree.nnodes, diff_unit(d).per);
		rc = base && test ? folded_write_tree(&t.tree, base, test, out, err)
				  : err_memory(err, "while folding stacks");
	}
	free(base);
	free(test);
	diff_tree_free(&t);
	return rc;
}

const struct diff_format diff_folded_format = {.name = "folded", .write = diff_folded_write};
