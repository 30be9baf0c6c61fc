#include "export/sums.h"

#include "export/names.h"

#include "model/stack_tree.h"

#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

static bool same_sum(const void *ctx, uint32_t value, const void *key)
{
	const struct sum *a = &((const struct sums *)ctx)->items[value];
	const struct sum *b = key;

	return a->stack == b->stack && a->thread == b->thread && a->process == b->process &&
	       a->mark == b->mark;
}

struct summing {
	struct table table;
	uint32_t *recent;                    /* for each stack the sum it was last added to */
};

/* The number of the sum with this key, which may be new; UINT32_MAX without memory. */
static uint32_t find_sum(struct sums *s, struct summing *t, const struct sum *key)
{
	uint32_t *recent = key->stack == STACK_NONE ? NULL : &t->recent[key->stack];
	uint64_t hash;
	uint32_t found;

	if (recent && *recent != UINT32_MAX && same_sum(s, *recent, key))
		return *recent;
	hash = hash_pair(hash_pair(key->process, key->thread),
			 (uint64_t)key->stack << 8 | (key->mark ? (uint8_t)*key->mark : 0));
	found = table_find(&t->table, hash, same_sum, s, key);
	if (found == TABLE_NONE) {
		if (ARRAY_NEXT(s->items, s->n))
			return UINT32_MAX;
		found = s->n;
		s->items[found] = *key;
		if (table_add(&t->table, hash, found))
			return UINT32_MAX;
		s->n++;
	}
	if (recent)
		*recent = found;
	return found;
}

static int sum_all(struct sums *s, struct summing *t, const struct incident *in,
		   const struct export_options *opt, enum sums_by by)
{
	uint32_t i, at;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *sample = &in->samples[i];
		struct sum key = {
			.process = UINT32_MAX,
			.thread = by == SUMS_BY_THREAD ? sample->thread : THREAD_NONE,
			.stack = sample->stack,
			.mark = stack_tree_mark((enum stack_quality)sample->quality),
		};

		if (!export_takes(opt, sample))
			continue;
		if (sample->thread != THREAD_NONE)
			key.process = in->threads[sample->thread].process;
		if (opt->part && !export_part_has(opt->part, key.process))
			continue;
		at = find_sum(s, t, &key);
		if (at == UINT32_MAX)
			return ERR_MEMORY;
		s->items[at].count++;
		s->items[at].weight += export_weight(in, sample);
		s->items[at].time_ns += sample->weight;
	}
	return 0;
}

int sums_make(struct sums *s, const struct incident *in, const struct export_options *opt,
	      enum sums_by by, struct err *err)
{
	struct summing t = {.recent = array_of_none(in->nstacks)};
	int rc = t.recent ? sum_all(s, &t, in, opt, by) : ERR_MEMORY;

	table_free(&t.table);
	free(t.recent);
	return rc ? err_memory(err, "while summing stacks") : 0;
}

uint32_t sums_first(const struct sums *s, struct export_part *part, uint32_t *last)
{
	*last = s->n;
	if (!part)
		return 0;
	part->more = s->n > part->from && s->n - part->from > part->max;
	if (part->more)
		*last = part->from + part->max;
	return part->from;
}

void sums_free(struct sums *s)
{
	free(s->items);
	memset(s, 0, sizeof(*s));
}

/* ---- sorting --------------------------------------------------------------------------------- */

/* qsort() has no context, so each item carries it. */
struct sortable {
	struct sum sum;
	const struct incident *in;
	uint32_t number;
};

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

uint32_t sum_pid(const struct incident *in, const struct sum *s)
{
	return s->process == UINT32_MAX ? 0 : in->processes[s->process].pid;
}

const char *sum_process_name(const struct incident *in, const struct sum *s, const char *otherwise)
{
	const char *name = s->process == UINT32_MAX ? "" : in->processes[s->process].name;

	return *name ? name : otherwise;
}

static int compare_sums(const void *left, const void *right)
{
	const struct sortable *a = left, *b = right;
	int order = compare_u64(b->sum.weight, a->sum.weight);

	if (!order)
		order = compare_u64(sum_pid(a->in, &a->sum), sum_pid(b->in, &b->sum));
	if (!order)
		order = compare_stacks(a->in, a->sum.stack, b->sum.stack);
	return order ? order : compare_u64(a->number, b->number);
}

/* The heaviest first; of equals the lower pid, then the lower addresses, compared from the leaf. */
static int sort_sums(struct sums *s, const struct incident *in, struct err *err)
{
	struct sortable *items = malloc(((size_t)s->n + 1) * sizeof(*items));
	uint32_t i;

	if (!items)
		return err_memory(err, "while sorting stacks");
	for (i = 0; i < s->n; i++)
		items[i] = (struct sortable){.sum = s->items[i], .in = in, .number = i};
	qsort(items, s->n, sizeof(*items), compare_sums);
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

/* ---- writing --------------------------------------------------------------------------------- */

/* How many of the sorted sums are to be written. */
static uint32_t count_shown(const struct sums *s, const struct export_options *opt, bool all)
{
	uint64_t least = !all && opt->min_weight ? opt->min_weight : 1;
	uint32_t most = !all && opt->top && opt->top < s->n ? opt->top : s->n, n = 0;

	while (n < most && s->items[n].weight >= least)
		n++;
	return n;
}

int sums_write(const struct incident *in, const struct export_options *opt, bool heaviest_first,
	       sum_put *put, struct out *out, struct err *err)
{
	struct sums sums = {0};
	struct path path = {0};
	struct buf text = {0};
	uint32_t n = 0, i;
	int rc = sums_make(&sums, in, opt, SUMS_BY_PROCESS, err);

	if (!rc)
		rc = sort_sums(&sums, in, err);
	if (!rc)
		n = count_shown(&sums, opt, !heaviest_first);
	for (i = 0; i < n && !rc && !out_failed(out); i++) {
		const struct sum *s = &sums.items[heaviest_first ? i : n - 1 - i];

		if (path_make(&path, in, s->stack))
			text.failed = ERR_MEMORY;
		put(in, opt, s, &path, &text);
		rc = buf_check(&text, "the text of a stack", err);
		out_drain(out, &text, false);
	}
	out_drain(out, &text, true);
	buf_free(&text);
	path_free(&path);
	sums_free(&sums);
	return rc;
}
