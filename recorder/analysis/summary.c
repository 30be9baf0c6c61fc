#include "analysis/summary.h"

#include "base/ahead.h"
#include "base/array.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fewer samples are not worth starting a thread; of more, two trees at once take much memory. */
#define AHEAD_MIN_SAMPLES 10000u
#define AHEAD_MAX_SAMPLES 4000000u

/* ---- processes ------------------------------------------------------------------------------- */

static int compare_processes(const void *a, const void *b)
{
	const struct summary_process *pa = a, *pb = b;
	int order = compare_u64(pb->samples, pa->samples);

	return order ? order : compare_u64(pa->process, pb->process);
}

/* A bit for each stream that is counted. */
static unsigned counted(const struct incident *in)
{
	uint32_t i;

	for (i = 0; i < in->nsamples; i++)
		if (in->samples[i].stream == STREAM_CPU)
			return 1u << STREAM_CPU;
	return 1u << STREAM_ALLOC | 1u << STREAM_EVENT;
}

/* Code that was made at run time and nobody names. */
static bool is_unnamed(const struct incident *in, uint32_t frame)
{
	return !in->frames[frame].function && incident_frame_code(in, frame) == CODE_GENERATED;
}

/* A bit for each kind of code in a stack, and CODE_KINDS: is_unnamed(). NULL without memory. */
static uint16_t *codes_of_stacks(const struct incident *in)
{
	uint16_t *codes = malloc(((size_t)in->nstacks + 1) * sizeof(*codes));
	uint32_t i;

	for (i = 0; codes && i < in->nstacks; i++) {
		const struct incident_stack *s = &in->stacks[i];

		codes[i] = (uint16_t)((s->parent == STACK_NONE ? 0 : codes[s->parent]) |
				      1u << incident_frame_code(in, s->frame) |
				      (is_unnamed(in, s->frame) ? 1u << CODE_KINDS : 0));
	}
	return codes;
}

static int add_processes(const struct incident *in, unsigned streams, struct summary *out)
{
	uint32_t i, n = 0, slots = in->nprocesses + 1;

	uint16_t *codes = codes_of_stacks(in);
	unsigned kind;

	out->processes = calloc(slots, sizeof(*out->processes));
	if (!out->processes || !codes) {
		free(codes);
		return ERR_MEMORY;
	}
	for (i = 0; i < slots; i++)
		out->processes[i].process = i < in->nprocesses ? i : UINT32_MAX;
	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];
		uint32_t p = incident_process_of(in, s->thread);
		uint64_t units = incident_units(in, s);
		struct summary_process *to = &out->processes[p == UINT32_MAX ? in->nprocesses : p];

		if (!(streams >> s->stream & 1))
			continue;
		out->whole += units;
		to->samples += units;
		if (s->quality < QUALITIES)
			to->quality[s->quality] += units;
		for (kind = 0; kind < CODE_KINDS && s->stack != STACK_NONE; kind++)
			to->code[kind] += codes[s->stack] >> kind & 1 ? units : 0;
		if (s->stack != STACK_NONE && codes[s->stack] >> CODE_KINDS & 1)
			to->unnamed += units;
	}
	free(codes);
	for (i = 0; i < slots; i++) {
		if (out->processes[i].samples)
			out->processes[n++] = out->processes[i];
	}
	qsort(out->processes, n, sizeof(*out->processes), compare_processes);
	out->nprocesses = n;
	return 0;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void put_frame(const struct incident *in, const void *ctx, uint32_t frame, struct buf *out)
{
	const bool *addresses = ctx;

	incident_frame_text(in, frame, *addresses, out);
}

static int compare_self(const void *a, const void *b)
{
	const struct summary_function *fa = a, *fb = b;
	int order = compare_u64(fb->self, fa->self);

	if (!order)
		order = compare_u64(fb->inclusive, fa->inclusive);
	return order ? order : strcmp(fa->name, fb->name);
}

static int compare_inclusive(const void *a, const void *b)
{
	const struct summary_function *fa = a, *fb = b;
	int order = compare_u64(fb->inclusive, fa->inclusive);

	return order ? order : compare_self(a, b);
}

static void count_functions(const struct stack_tree *t, uint64_t *weights, struct summary *out)
{
	uint32_t i, n = 0;

	for (i = 0; i < t->texts.n; i++)
		out->functions[i].name = stack_tree_text(t, i);
	for (i = 1; i < t->nnodes; i++)              /* not the root */
		out->functions[t->nodes[i].text].self += weights[i];
	stack_tree_add_up(t, weights);
	for (i = 1; i < t->nnodes; i++) {
		if (stack_tree_is_outermost(t, i))
			out->functions[t->nodes[i].text].inclusive += weights[i];
	}
	for (i = 0; i < t->texts.n; i++) {
		if (out->functions[i].inclusive)
			out->functions[n++] = out->functions[i];
	}
	if (n)
		qsort(out->functions, n, sizeof(*out->functions), compare_self);
	out->nfunctions = n;
}

static int add_functions(const struct incident *in, unsigned streams, bool addresses,
			 struct summary *out)
{
	const struct stack_tree_style style = {.root = "", .frame = put_frame};
	int rc = stack_tree_build(&out->tree, in, streams, &style, &addresses, NULL);
	uint64_t *weights = rc ? NULL : stack_tree_own(&out->tree, in, incident_units);

	out->functions = calloc((size_t)out->tree.texts.n + 1, sizeof(*out->functions));
	if (weights && out->functions)
		count_functions(&out->tree, weights, out);
	else
		rc = ERR_MEMORY;
	free(weights);
	stack_tree_keep_texts(&out->tree);
	return rc;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static int compare_stacks(const void *a, const void *b)
{
	const struct summary_stack *sa = a, *sb = b;
	int order = compare_u64(sb->samples, sa->samples);

	if (!order)
		order = compare_u64(sa->process, sb->process);
	return order ? order : compare_u64(sa->stack, sb->stack);
}

/* Not by name and pid: two processes may have both. */
static void put_process_index(const struct incident *in, const void *ctx, uint32_t thread,
			      struct buf *out)
{
	(void)ctx;
	buf_put_uint(out, in->threads[thread].process);
}

/* Call sites of one function, and copies of one file, differ only by their source lines. */
static void put_frame_with_line(const struct incident *in, const void *ctx, uint32_t frame,
				struct buf *out)
{
	const struct incident_frame *f = &in->frames[frame];

	put_frame(in, ctx, frame, out);
	if (f->file || f->line)
		buf_printf(out, "\n%s\n%" PRIu32, f->file ? f->file : "", f->line);
}

static void count_stacks(const struct incident *in, const struct stack_tree *t, struct summary *out)
{
	uint32_t i, n = 0;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];
		struct summary_stack *to;

		if (t->of_sample[i] == STACK_TREE_NONE)
			continue;
		if (s->stack == STACK_NONE) {
			out->without_stack++;
			continue;
		}
		to = &out->stacks[t->of_sample[i]];
		to->process = incident_process_of(in, s->thread);
		to->stack = !to->samples || s->stack < to->stack ? s->stack : to->stack;
		to->samples += incident_units(in, s);
	}
	for (i = 0; i < t->nnodes; i++) {
		if (out->stacks[i].samples)
			out->stacks[n++] = out->stacks[i];
	}
	if (n)
		qsort(out->stacks, n, sizeof(*out->stacks), compare_stacks);
	out->nstacks = n;
}

static int add_stacks(const struct incident *in, unsigned streams, bool addresses,
		      struct summary *out)
{
	const struct stack_tree_style style = {
		.root = "", .process = put_process_index, .frame = put_frame_with_line,
	};
	struct stack_tree tree = {0};
	int rc = stack_tree_build(&tree, in, streams, &style, &addresses, NULL);

	out->stacks = calloc((size_t)tree.nnodes + 1, sizeof(*out->stacks));
	if (!out->stacks)
		rc = ERR_MEMORY;
	if (!rc)
		count_stacks(in, &tree, out);
	stack_tree_free(&tree);
	return rc;
}

/* ---- counters -------------------------------------------------------------------------------- */

static int compare_counters(const void *a, const void *b)
{
	const struct summary_counter *ca = a, *cb = b;

	return strcmp(ca->name, cb->name);
}

static void add_reading(struct summary_counter *c, const struct incident *in,
			const struct incident_event *e)
{
	if (!c->values || e->value < c->min)
		c->min = e->value;
	if (!c->values || e->value > c->max)
		c->max = e->value;
	c->values++;
	c->mean += (e->value - c->mean) / (double)c->values;
	if (e->time_ns <= in->head.trigger_ns)
		c->at_trigger = e->value;
}

int summary_counters(const struct incident *in, struct summary_counter **out, uint32_t *n,
		     struct err *err)
{
	struct summary_counter *all = NULL;
	uint32_t i, k, used = 0;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (e->kind != EVENT_COUNTER || (e->flags & EVENT_FLAG_ABSENT))
			continue;
		for (k = 0; k < used && strcmp(all[k].name, e->name) != 0; k++)
			;
		if (k == used && ARRAY_NEXT(all, used)) {
			free(all);
			return err_memory(err, "for its counters");
		}
		if (k == used)
			all[used++] = (struct summary_counter){.name = e->name, .at_trigger = NAN};
		add_reading(&all[k], in, e);
	}
	if (used)
		qsort(all, used, sizeof(*all), compare_counters);
	*out = all;
	*n = used;
	return 0;
}

void summary_by_inclusive(struct summary *s)
{
	qsort(s->functions, s->nfunctions, sizeof(*s->functions), compare_inclusive);
}

/* Functions and stacks are two trees of the same samples: another thread makes that of stacks. */
struct adding {
	struct ahead_job job;
	const struct incident *in;
	unsigned streams;
	bool addresses;
	struct summary *out;
	int rc;
};

static void run_add_stacks(struct ahead_job *job)
{
	struct adding *a = (struct adding *)job;

	a->rc = add_stacks(a->in, a->streams, a->addresses, a->out);
}

int summary_make(const struct incident *in, bool addresses, struct summary *out, struct err *err)
{
	struct summary s = {0};
	struct adding stacks = {{.run = run_add_stacks}, in, counted(in), addresses, &s, 0};
	struct ahead ahead = {0};
	int rc;

	if (in->nsamples >= AHEAD_MIN_SAMPLES && in->nsamples <= AHEAD_MAX_SAMPLES)
		ahead_begin(&ahead, "stacks");
	ahead_give(&ahead, &stacks.job);
	rc = add_processes(in, stacks.streams, &s);
	if (!rc)
		rc = add_functions(in, stacks.streams, addresses, &s);
	ahead_end(&ahead);
	if (rc || stacks.rc) {
		summary_free(&s);
		return err_memory(err, "while adding up an incident");
	}
	*out = s;
	return 0;
}

void summary_free(struct summary *s)
{
	free(s->processes);
	free(s->functions);
	free(s->stacks);
	stack_tree_free(&s->tree);
	memset(s, 0, sizeof(*s));
}
