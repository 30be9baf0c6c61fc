/*
 * Folded stacks: one line a stack, root first, "a;b;c 42". Read by flamegraph.pl, speedscope,
 * inferno and others, which cut a line at its last blank.
 *
 * In a diff a line has two columns, as difffolded.pl writes them: "stack base test"; flamegraph.pl
 * makes a differential flame graph of it, as wide as the test. Columns are integers in diff_unit(),
 * 0 where a side does not have the stack. A stack that rounds to 0 on both sides has no line.
 *
 * 42 counts samples, or microseconds of CPU time where the sampling rate changed within the
 * incident.
 *
 * Lines are sorted bytewise, but never held in memory: each node's children are sorted by what
 * follows their common prefix in the file, which is "text;" where more frames come and "text 42"
 * where the line ends. Walking the tree in that order gives sorted lines. Texts are sorted once;
 * only where one text is the beginning of another are they compared again.
 */
#include "export/diff.h"
#include "export/livestacks.h"
#include "export/names.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

static void put_process(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	size_t start = out->len;

	export_tree_plain.process(in, ctx, thread, out);
	name_no_semicolons(out, start);
	name_no_comment(out, start);
}

static void put_thread(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	const struct export_options *opt = ctx;
	size_t start = out->len;
	struct who who;

	who_of(in, thread, &who);
	name_put(out, who.thread);
	if (opt->ids)
		buf_printf(out, "-%" PRIu32, who.tid);
	name_no_semicolons(out, start);
}

static void put_frame(const struct incident *in, const void *ctx, uint32_t frame,
		      struct buf *out)
{
	const struct export_options *opt = ctx;
	uint32_t flags = in->frames[frame].flags;
	size_t start = out->len;

	incident_frame_text(in, frame, opt->addresses, out);
	name_no_semicolons(out, start);
	if (!opt->annotate)
		return;
	if (flags & FRAME_KERNEL)
		buf_puts(out, "_[k]");
	else if (flags & FRAME_INLINED)
		buf_puts(out, "_[i]");
	else if (flags & FRAME_JIT)
		buf_puts(out, "_[j]");
}

/* Where the blank before a number at the end of text is; 0 when it does not end in one. */
static size_t number_at_end(const char *text, size_t n)
{
	size_t at = n;

	while (at && ((text[at - 1] >= '0' && text[at - 1] <= '9') || text[at - 1] == '.'))
		at--;
	return at && at < n && text[at - 1] == ' ' && text[at] != '.' ? at - 1 : 0;
}

/* Readers would take the 12 of a leaf "foo 12" for the first of two columns of counts. */
static bool leaf(char *text, size_t n)
{
	size_t blank = number_at_end(text, n);

	if (blank)
		text[blank] = '_';
	return blank != 0;
}

/* Names have no ';', and leaves do not end in a number. */
static const struct stack_tree_style folded_style = {
	.process = put_process,
	.thread = put_thread,
	.frame = put_frame,
	.leaf = leaf,
	.marks = true,
};

/* ---- counting -------------------------------------------------------------------------------- */

#define COUNT_MAX_BYTES 20

/*
 * A branch is what may follow a caller's prefix in the file: node * 2 for an inner frame, + 1 for a
 * leaf that ends the line. A tree has millions.
 */
#define BRANCH_NONE UINT32_MAX

struct folded {
	const struct stack_tree *tree;
	uint32_t *families;                  /* of each text */
	const uint64_t *counts;              /* weight of the samples that end at a node */
	const uint64_t *second;              /* of a second column; NULL = there is none */
	uint32_t *first;                     /* first[caller + 1]: its branches; one more */
	uint32_t *branches;
	struct sorting *sorting;             /* those of the caller at hand */
	uint32_t sorting_cap;
	struct level *levels;                /* of the node at hand and its callers */
	uint32_t levels_cap, depth;
	struct buf prefix;
};

struct sorting {
	const struct folded *f;
	uint32_t family;                     /* of its text */
	uint32_t branch;
};

/* The branches of a caller that are still to be written. */
struct level {
	uint32_t next, end;
	size_t prefix_bytes;                 /* "a;b;c;", up to it */
};

static bool has_count(const struct folded *f, uint32_t node)
{
	return f->counts[node] || (f->second && f->second[node]);
}

/* ---- sorting --------------------------------------------------------------------------------- */

struct ranked {
	const char *text;
	uint32_t len, number;
};

static int compare_texts(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;
	int order = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);

	return order ? order : a->len < b->len ? -1 : a->len > b->len;
}

/*
 * Number the texts in their order; a text and those that begin with it share a number. Of two texts
 * with different numbers neither is the beginning of the other, so their numbers order the lines.
 */
static int make_families(struct folded *f)
{
	uint32_t n = f->tree->texts.n, family = 0, i;
	struct ranked *items = malloc(((size_t)n + 1) * sizeof(*items));
	const struct ranked *head = items;

	f->families = malloc(((size_t)n + 1) * sizeof(*f->families));
	if (!items || !f->families) {
		free(items);
		return ERR_MEMORY;
	}
	for (i = 0; i < n; i++)
		items[i] = (struct ranked){stack_tree_text(f->tree, i),
					   f->tree->texts.items[i].len, i};
	qsort(items, n, sizeof(*items), compare_texts);
	for (i = 0; i < n; i++) {
		if (items[i].len < head->len || memcmp(items[i].text, head->text, head->len) != 0) {
			head = &items[i];
			family++;
		}
		f->families[items[i].number] = family;
	}
	free(items);
	return 0;
}

/* What follows a branch's text: ";", " 42\n" or " 42 43\n". Returns its bytes. */
static uint32_t tail_of(const struct folded *f, uint32_t b, struct buf *to)
{
	buf_puts(to, b & 1 ? " " : ";");
	if (b & 1) {
		buf_put_uint(to, f->counts[b / 2]);
		if (f->second) {
			buf_putc(to, ' ');
			buf_put_uint(to, f->second[b / 2]);
		}
		buf_putc(to, '\n');
	}
	return (uint32_t)to->len;
}

/* No branch of a caller is the beginning of another: they differ before either ends. */
static int compare_bytes(const struct folded *f, uint32_t a, uint32_t b)
{
	const struct text_table_item *ta = &f->tree->texts.items[f->tree->nodes[a / 2].text];
	const struct text_table_item *tb = &f->tree->texts.items[f->tree->nodes[b / 2].text];
	char bytes[2][2 * COUNT_MAX_BYTES + 8];
	struct buf tails[2] = {{.data = bytes[0], .cap = sizeof(bytes[0])},
			       {.data = bytes[1], .cap = sizeof(bytes[1])}};
	uint32_t na = ta->len + tail_of(f, a, &tails[0]), nb = tb->len + tail_of(f, b, &tails[1]);
	uint32_t i = ta->len < tb->len ? ta->len : tb->len;
	int order = memcmp(ta->text, tb->text, i);

	if (order)
		return order;
	for (; i < na && i < nb; i++) {
		char ca = i < ta->len ? ta->text[i] : bytes[0][i - ta->len];
		char cb = i < tb->len ? tb->text[i] : bytes[1][i - tb->len];

		if (ca != cb)
			return (unsigned char)ca < (unsigned char)cb ? -1 : 1;
	}
	return 0;
}

static int compare_branches(const void *left, const void *right)
{
	const struct sorting *a = left, *b = right;

	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	return compare_bytes(a->f, a->branch, b->branch);
}

static int sort_branches(struct folded *f, uint32_t *branches, uint32_t n)
{
	uint32_t i;

	if (ARRAY_ROOM(f->sorting, f->sorting_cap, n))
		return ERR_MEMORY;
	for (i = 0; i < n; i++)
		f->sorting[i] = (struct sorting){
			f, f->families[f->tree->nodes[branches[i] / 2].text], branches[i]};
	qsort(f->sorting, n, sizeof(*f->sorting), compare_branches);
	for (i = 0; i < n; i++)
		branches[i] = f->sorting[i].branch;
	return 0;
}

/*
 * Give each caller its stretch of branches: count, lay out, fill, sort. Callees come first, because
 * they have higher numbers: whether a node has branches is known before its caller's are made.
 */
static int lay_out(struct folded *f)
{
	uint32_t nnodes = f->tree->nnodes, i, n = 0;
	uint32_t *first = f->first = calloc((size_t)nnodes + 2, sizeof(*first));

	if (!first || nnodes > UINT32_MAX / 2)
		return ERR_MEMORY;
	for (i = nnodes; i-- > 0;)
		first[f->tree->nodes[i].caller + 1] += (uint32_t)has_count(f, i) + !!first[i + 1];
	for (i = 0; i <= nnodes + 1; i++)
		first[i] = n += first[i];    /* its end, until it is filled */
	f->branches = malloc(((size_t)n + 1) * sizeof(*f->branches));
	if (!f->branches)
		return ERR_MEMORY;
	for (i = nnodes; i-- > 0;) {
		uint32_t *next = &first[f->tree->nodes[i].caller + 1];

		if (has_count(f, i))
			f->branches[--*next] = i * 2 + 1;
		if (first[i + 1] < first[i + 2])
			f->branches[--*next] = i * 2;
	}
	for (i = 0; i <= nnodes; i++)
		if (first[i + 1] - first[i] > 1 &&
		    sort_branches(f, f->branches + first[i], first[i + 1] - first[i]))
			return ERR_MEMORY;
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* "text;" of a caller. */
static void put_caller(struct buf *prefix, const struct stack_tree *t, uint32_t text)
{
	uint32_t len = t->texts.items[text].len;
	char *to = buf_reserve(prefix, (size_t)len + 1);

	if (!to)
		return;
	memcpy(to, stack_tree_text(t, text), len);
	to[len] = ';';
	buf_advance(prefix, (size_t)len + 1);
}

/* The line of a node, whose callers stand in the prefix. */
static void write_line(struct folded *f, uint32_t b, struct out *out)
{
	size_t start = f->prefix.len;

	export_tree_put(&f->prefix, f->tree, f->tree->nodes[b / 2].text);
	tail_of(f, b, &f->prefix);
	if (!f->prefix.failed)
		out_put(out, f->prefix.data, f->prefix.len);
	f->prefix.len = start;
}

/* Begin with the branches of a node, or of the root: slot 0, else node + 1. */
static int go_down(struct folded *f, uint32_t slot)
{
	if (ARRAY_ROOM(f->levels, f->levels_cap, f->depth + 1))
		return ERR_MEMORY;
	f->levels[f->depth++] =
		(struct level){f->first[slot], f->first[slot + 1], f->prefix.len};
	return 0;
}

/* Depth first, but without recursion: a stack from a file may have any depth. */
static int write_lines(struct folded *f, struct out *out)
{
	int rc = go_down(f, 0);

	while (!rc && f->depth && !out_failed(out)) {
		struct level *at = &f->levels[f->depth - 1];
		uint32_t b = at->next < at->end ? f->branches[at->next++] : BRANCH_NONE;

		f->prefix.len = at->prefix_bytes;
		if (b == BRANCH_NONE) {
			f->depth--;
		} else if (b & 1) {
			write_line(f, b, out);
		} else {
			put_caller(&f->prefix, f->tree, f->tree->nodes[b / 2].text);
			rc = go_down(f, b / 2 + 1);
		}
		if (f->prefix.failed)
			rc = ERR_MEMORY;
	}
	return rc;
}

/*
 * Write the lines of a tree of this style, sorted bytewise: "a;b;c 42" for each node with a count
 * of its own. With a second column, "a;b;c 42 43" for each node that has a count in either.
 */
static int write_tree(const struct stack_tree *tree, const uint64_t *counts, const uint64_t *second,
		      struct out *out, struct err *err)
{
	struct folded f = {.tree = tree, .counts = counts, .second = second};
	int rc = make_families(&f);

	if (!rc)
		rc = lay_out(&f);
	if (!rc)
		rc = write_lines(&f, out);
	if (rc)
		err_memory(err, "while folding stacks");
	free(f.families);
	free(f.first);
	free(f.sorting);
	free(f.branches);
	free(f.levels);
	buf_free(&f.prefix);
	return rc;
}

static int folded_write(const struct incident *in, const struct export_options *opt,
			struct out *out, struct err *err)
{
	struct stack_tree tree = {0};
	uint64_t *counts = NULL;
	int rc;

	if (opt->offsets)
		return livestacks_write_folded(in, opt, out, err);
	rc = export_tree_build(&tree, in, opt, &folded_style, err);
	if (!rc) {
		counts = export_tree_own(&tree, in);
		stack_tree_drop_samples(&tree);
		rc = counts ? write_tree(&tree, counts, NULL, out, err)
			    : err_memory(err, "while folding stacks");
	}
	stack_tree_free(&tree);
	free(counts);
	return rc;
}

/* ---- diff ------------------------------------------------------------------------------------ */

static uint64_t *rounded(const double *weights, uint32_t n, double per)
{
	uint64_t *counts = calloc((size_t)n + 1, sizeof(*counts));
	uint32_t i;

	for (i = 0; counts && i < n; i++)
		counts[i] = (uint64_t)(weights[i] / per + 0.5);
	return counts;
}

static int diff_folded_write(const struct diff *d, const struct export_options *opt,
			     struct out *out, struct err *err)
{
	struct diff_tree t = {0};
	uint64_t *base = NULL, *test = NULL;
	int rc = diff_tree_build(&t, d, opt, &folded_style, err);

	if (!rc) {
		base = rounded(t.base, t.tree.nnodes, diff_unit(d).per);
		test = rounded(t.test, t.tree.nnodes, diff_unit(d).per);
		rc = base && test ? write_tree(&t.tree, base, test, out, err)
				  : err_memory(err, "while folding stacks");
	}
	free(base);
	free(test);
	diff_tree_free(&t);
	return rc;
}

const struct exporter folded_exporter = {
	.name = "folded",
	.suffix = ".folded",
	.summary = "a line per stack, for flame graphs",
	.usual = true,
	.sets = true,
	.write = folded_write,
	.write_diff = diff_folded_write,
};
