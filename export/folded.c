/*
 * Folded stacks: one line a stack, root first, "a;b;c 42". Read by flamegraph.pl, speedscope,
 * inferno and others; grammar and reasons in exports-and-store.md, section 2.1.
 *
 * 42 are samples, or microseconds of CPU time where the rate of sampling changed within the incident.
 *
 * Lines are sorted bytewise without ever being held in memory: the children of each node of the
 * call tree are sorted by what follows the common prefix in the file, which is "text;" where more
 * frames come and "text 42" where the line ends. Walking the tree in that order gives sorted lines.
 */
#include "export/livestacks.h"
#include "export/names.h"
#include "export/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

static void no_semicolons(struct buf *out, size_t start)
{
	char *at;

	if (out->failed)
		return;
	for (at = out->data + start; at < out->data + out->len; at++) {
		if (*at == ';')
			*at = ':';
	}
}

static void put_process(const struct incident *in, const struct export_options *opt,
			uint32_t thread, struct buf *out)
{
	size_t start = out->len;
	struct who who;

	who_of(in, thread, &who);
	name_put(out, who.process);
	if (opt->ids)
		buf_printf(out, " (%" PRIu32 ")", who.pid);
	no_semicolons(out, start);
	/* A line that begins so is a comment to readers. */
	if (!out->failed && strncmp(out->data + start, "# ", 2) == 0)
		out->data[start + 1] = '_';
}

static void put_thread(const struct incident *in, const struct export_options *opt,
		       uint32_t thread, struct buf *out)
{
	size_t start = out->len;
	struct who who;

	who_of(in, thread, &who);
	name_put(out, who.thread);
	if (opt->ids)
		buf_printf(out, "-%" PRIu32, who.tid);
	no_semicolons(out, start);
}

static void put_frame(const struct incident *in, const struct export_options *opt, uint32_t frame,
		      struct buf *out)
{
	uint32_t flags = in->frames[frame].flags;
	size_t start = out->len;

	incident_frame_text(in, frame, opt->addresses, out);
	no_semicolons(out, start);
	if (!opt->annotate)
		return;
	if (flags & FRAME_KERNEL)
		buf_puts(out, "_[k]");
	else if (flags & FRAME_INLINED)
		buf_puts(out, "_[i]");
	else if (flags & FRAME_JIT)
		buf_puts(out, "_[j]");
}

/* Where the last blank of text stands when a number follows it to the end; else 0. */
static size_t number_at_end(const char *text, size_t n)
{
	size_t at = n;

	while (at && ((text[at - 1] >= '0' && text[at - 1] <= '9') || text[at - 1] == '.'))
		at--;
	return at && at < n && text[at - 1] == ' ' && text[at] != '.' ? at - 1 : 0;
}

/* A leaf "foo 12" would read as the first of two columns of counts. */
static bool leaf(char *text, size_t n)
{
	size_t blank = number_at_end(text, n);

	if (blank)
		text[blank] = '_';
	return blank != 0;
}

static const struct tree_style style = {
	.process = put_process,
	.thread = put_thread,
	.frame = put_frame,
	.leaf = leaf,
};

/* ---- counting -------------------------------------------------------------------------------- */

/* What follows a caller's prefix in the file: the end of a line, or a frame with more to come. */
struct branch {
	const char *text;
	uint32_t len, ntail;
	uint32_t node;                       /* the node below; TREE_NONE = a line ends here */
	char tail[NUMBER_MAX + 3];           /* ";", or " 42\n" */
};

struct folded {
	struct tree tree;
	uint64_t *counts;                    /* weight of the samples that end at a node */
	uint32_t *first;                     /* first[caller + 1]: its branches; one more */
	uint32_t *next;                      /* the same, moving on during the walk */
	struct branch *branches;
	struct buf prefix;
};

static int count_samples(struct folded *f, const struct incident *in)
{
	uint32_t i;

	f->counts = calloc((size_t)f->tree.nnodes + 1, sizeof(*f->counts));
	for (i = 0; f->counts && i < in->nsamples; i++) {
		if (f->tree.of_sample[i] != TREE_NONE)
			f->counts[f->tree.of_sample[i]] += export_weight(in, &in->samples[i]);
	}
	return f->counts ? 0 : ERR_MEMORY;
}

/* ---- sorting --------------------------------------------------------------------------------- */

static unsigned char byte_at(const struct branch *b, uint32_t i)
{
	return (unsigned char)(i < b->len ? b->text[i] : b->tail[i - b->len]);
}

/* No branch of a caller begins another, so a difference comes before either ends. */
static int compare(const void *left, const void *right)
{
	const struct branch *a = left, *b = right;
	uint32_t common = a->len < b->len ? a->len : b->len;
	uint32_t i;
	int order = memcmp(a->text, b->text, common);

	if (order)
		return order;
	for (i = common; i < a->len + a->ntail && i < b->len + b->ntail; i++) {
		if (byte_at(a, i) != byte_at(b, i))
			return byte_at(a, i) < byte_at(b, i) ? -1 : 1;
	}
	return 0;
}

static void branch_add(struct folded *f, uint32_t node, uint64_t count)
{
	const struct tree_node *n = &f->tree.nodes[node];
	struct branch *b = &f->branches[f->next[n->caller + 1]++];

	b->text = tree_text(&f->tree, n->text);
	b->len = f->tree.texts[n->text].len;
	b->node = count ? TREE_NONE : node;
	b->ntail = 0;
	b->tail[b->ntail++] = count ? ' ' : ';';
	if (count) {
		b->ntail += (uint32_t)number_put(b->tail + 1, count);
		b->tail[b->ntail++] = '\n';
	}
}

/* Give each caller its stretch of branches: counted, laid out, filled, sorted. */
static int lay_out(struct folded *f)
{
	uint32_t nnodes = f->tree.nnodes, i;
	bool *inner = calloc((size_t)nnodes + 1, sizeof(*inner));

	f->first = calloc((size_t)nnodes + 2, sizeof(*f->first));
	f->next = calloc((size_t)nnodes + 2, sizeof(*f->next));
	f->branches = malloc(((size_t)nnodes * 2 + 1) * sizeof(*f->branches));
	if (!inner || !f->first || !f->next || !f->branches) {
		free(inner);
		return ERR_MEMORY;
	}
	for (i = nnodes; i-- > 0;) {         /* callees first: they have higher numbers */
		uint32_t caller = f->tree.nodes[i].caller;

		f->first[caller + 2] += (uint32_t)(f->counts[i] != 0) + (uint32_t)inner[i];
		if (caller != TREE_NONE)
			inner[caller] = true;
	}
	for (i = 0; i <= nnodes; i++)
		f->first[i + 1] += f->first[i];
	memcpy(f->next, f->first, ((size_t)nnodes + 2) * sizeof(*f->next));
	for (i = 0; i < nnodes; i++) {
		if (f->counts[i])
			branch_add(f, i, f->counts[i]);
		if (inner[i])
			branch_add(f, i, 0);
	}
	memcpy(f->next, f->first, ((size_t)nnodes + 2) * sizeof(*f->next));
	for (i = 0; i <= nnodes; i++)
		qsort(f->branches + f->first[i], f->first[i + 1] - f->first[i],
		      sizeof(*f->branches), compare);
	free(inner);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_line(struct folded *f, const struct branch *b, struct out *out)
{
	out_put(out, buf_text(&f->prefix), f->prefix.len);
	out_put(out, b->text, b->len);
	out_put(out, b->tail, b->ntail);
}

/* Depth first, without recursion: a stack from a file may have any depth. */
static int write_lines(struct folded *f, struct out *out)
{
	uint32_t node = TREE_NONE;           /* its slot is node + 1: 0 for the root */
	const struct branch *b;

	buf_reset(&f->prefix);
	while (!f->prefix.failed && !out_failed(out)) {
		if (f->next[node + 1] < f->first[node + 2]) {
			b = &f->branches[f->next[node + 1]++];
			if (b->node == TREE_NONE) {
				write_line(f, b, out);
				continue;
			}
			buf_put(&f->prefix, b->text, b->len);
			buf_put(&f->prefix, b->tail, b->ntail);
			node = b->node;
			continue;
		}
		if (node == TREE_NONE)
			break;
		f->prefix.len -= f->tree.texts[f->tree.nodes[node].text].len + 1;
		node = f->tree.nodes[node].caller;
	}
	return f->prefix.failed;
}

static int folded_write(const struct incident *in, const struct export_options *opt,
			struct out *out, struct err *err)
{
	struct folded f = {0};
	int rc;

	if (opt->offsets)
		return livestacks_write_folded(in, opt, out, err);
	rc = tree_build(&f.tree, in, opt, &style, err);
	if (!rc) {
		rc = count_samples(&f, in);
		if (!rc)
			rc = lay_out(&f);
		if (!rc)
			rc = write_lines(&f, out);
		if (rc)
			err_set(err, (enum err_code)rc, "out of memory while folding stacks");
	}
	tree_free(&f.tree);
	free(f.counts);
	free(f.first);
	free(f.next);
	free(f.branches);
	buf_free(&f.prefix);
	return rc;
}

const struct exporter folded_exporter = {
	.name = "folded",
	.suffix = ".folded",
	.summary = "a line per stack, for flame graphs",
	.usual = true,
	.write = folded_write,
};
