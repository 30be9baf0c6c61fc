#include "export/sums.h"

#include "export/names.h"

#include "model/stack_tree.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* Who took them as numbers: there may be two processes of one name and number. */
static void put_process(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	(void)ctx;
	buf_put_uint(out, thread == THREAD_NONE ? UINT32_MAX : in->threads[thread].process);
}

static void put_thread(const struct incident *in, const void *ctx, uint32_t thread,
		       struct buf *out)
{
	(void)in;
	(void)ctx;
	buf_put_uint(out, thread);
}

/* The sum of a node, a new one of this sample's kind when the node has none yet. */
static struct sum *sum_of(struct sums *s, uint32_t *of_node, const struct incident *in,
			  const struct incident_sample *sample, enum sums_by by)
{
	if (*of_node == STACK_TREE_NONE) {
		*of_node = s->n;
		s->items[s->n++] = (struct sum){
			.process = sample->thread == THREAD_NONE ?
				   UINT32_MAX : in->threads[sample->thread].process,
			.thread = by == SUMS_BY_THREAD ? sample->thread : THREAD_NONE,
			.stack = sample->stack,
			.mark = stack_tree_mark((enum stack_quality)sample->quality),
		};
	}
	return &s->items[*of_node];
}

static int sum_all(struct sums *s, const struct stack_tree *tree, const struct incident *in,
		   enum sums_by by)
{
	uint32_t *of_node = array_of_none(tree->nnodes), i;

	s->items = calloc((size_t)tree->nnodes + 1, sizeof(*s->items));
	for (i = 0; of_node && s->items && i < in->nsamples; i++) {
		const struct incident_sample *sample = &in->samples[i];
		struct sum *to;

		if (tree->of_sample[i] == STACK_TREE_NONE)
			continue;
		to = sum_of(s, &of_node[tree->of_sample[i]], in, sample, by);
		to->count++;
		to->weight += export_weight(in, sample);
		to->time_ns += sample->weight;
	}
	free(of_node);
	return of_node && s->items ? 0 : ERR_MEMORY;
}

int sums_make(struct sums *s, const struct incident *in, const struct export_options *opt,
	      enum sums_by by, struct err *err)
{
	const struct stack_tree_style style = {
		.process = put_process, .thread = by == SUMS_BY_THREAD ? put_thread : NULL,
		.marks = true,
	};
	struct stack_tree tree = {0};
	int rc = stack_tree_build(&tree, in, 1u << opt->stream, &style, NULL, err);

	if (!rc && sum_all(s, &tree, in, by))
		rc = err_memory(err, "while summing stacks");
	stack_tree_free(&tree);
	return rc;
}

void sums_free(struct sums *s)
{
	free(s->items);
	memset(s, 0, sizeof(*s));
}

/* ---- sorting --------------------------------------------------------------------------------- */

/* qsort() has no context, so what is compared goes with it. */
struct sortable {
	struct sum sum;
	const struct incident *in;
	uint32_t number;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_stacks(const struct incident *in, uint32_t a, uint32_t b)
{
	int order = 0;

	while (!order && a != b && a != STACK_NONE && b != STACK_NONE) {
		order = compare_u64(frame_address(in, in->stacks[a].frame),
				    frame_address(in, in->stacks[b].frame));
		a = in->stacks[a].parent;
		b = in->stacks[b].parent;
	}
	if (order || a == b)
		return order;
	return a == STACK_NONE ? -1 : b == STACK_NONE ? 1 : 0;
}

static uint32_t pid_of(const struct incident *in, const struct sum *s)
{
	return s->process == UINT32_MAX ? 0 : in->processes[s->process].pid;
}

static int compare(const void *left, const void *right)
{
	const struct sortable *a = left, *b = right;
	int order = compare_u64(b->sum.weight, a->sum.weight);

	if (!order)
		order = compare_u64(pid_of(a->in, &a->sum), pid_of(b->in, &b->sum));
	if (!order)
		order = compare_stacks(a->in, a->sum.stack, b->sum.stack);
	return order ? order : compare_u64(a->number, b->number);
}

int sums_sort(struct sums *s, const struct incident *in, struct err *err)
{
	struct sortable *items = malloc(((size_t)s->n + 1) * sizeof(*items));
	uint32_t i;

	if (!items)
		return err_memory(err, "while sorting stacks");
	for (i = 0; i < s->n; i++)
		items[i] = (struct sortable){.sum = s->items[i], .in = in, .number = i};
	qsort(items, s->n, sizeof(*items), compare);
	for (i = 0; i < s->n; i++)
		s->items[i] = items[i].sum;
	free(items);
	return 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

int path_make(struct path *p, const struct incident *in, uint32_t stack)
{
	for (p->n = 0; stack != STACK_NONE; stack = in->stacks[stack].parent) {
		if (ARRAY_ROOM(p->frames, p->capacity, p->n + 1))
			return ERR_MEMORY;
		p->frames[p->n++] = in->stacks[stack].frame;
	}
	return 0;
}

void path_free(struct path *p)
{
	free(p->frames);
	memset(p, 0, sizeof(*p));
}
