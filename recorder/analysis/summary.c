#include "analysis/summary.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- processes ----------------------------------------------------------------------------------- */

static uint32_t process_of(const struct incident *in, const struct incident_sample *s)
{
	return s->thread == THREAD_NONE ? UINT32_MAX : in->threads[s->thread].process;
}

static int by_number(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_processes(const void *a, const void *b)
{
	const struct summary_process *pa = a, *pb = b;
	int order = by_number(pb->samples, pa->samples);

	return order ? order : by_number(pa->process, pb->process);
}

static int add_processes(const struct incident *in, struct summary *out)
{
	uint32_t i, n = 0, slots = in->nprocesses + 1;

	out->processes = calloc(slots, sizeof(*out->processes));
	if (!out->processes)
		return ERR_MEMORY;
	for (i = 0; i < slots; i++)
		out->processes[i].process = i < in->nprocesses ? i : UINT32_MAX;
	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];
		uint32_t p = process_of(in, s);
		uint64_t units = incident_units(in, s);
		struct summary_process *to = &out->processes[p == UINT32_MAX ? in->nprocesses : p];

		if (s->stream == STREAM_OFF_CPU)
			continue;
		out->whole += units;
		to->samples += units;
		if (s->quality < QUALITIES)
			to->quality[s->quality] += units;
	}
	for (i = 0; i < slots; i++) {
		if (out->processes[i].samples)
			out->processes[n++] = out->processes[i];
	}
	qsort(out->processes, n, sizeof(*out->processes), compare_processes);
	out->nprocesses = n;
	return 0;
}

/* ---- names --------------------------------------------------------------------------------------- */

struct names {
	struct buf text;                     /* one after the other, each with its NUL */
	struct table table;                  /* of function numbers, by name */
	size_t *at;                          /* function -> where its name begins */
	uint32_t *of_frame;                  /* frame -> function */
	uint32_t n;
};

static bool same_text(const void *ctx, uint32_t value, const void *key)
{
	const struct names *names = ctx;

	return strcmp(names->text.data + names->at[value], key) == 0;
}

/* Frames of one name are one function: several call sites, or several copies of a file. */
static int name_frame(const struct incident *in, uint32_t frame, bool addresses,
		      struct names *names)
{
	size_t start = names->text.len;
	uint64_t hash;
	uint32_t found;

	incident_frame_text(in, frame, addresses, &names->text);
	buf_putc(&names->text, '\0');
	if (names->text.failed)
		return ERR_MEMORY;
	hash = hash_bytes(names->text.data + start, names->text.len - start);
	found = table_find(&names->table, hash, same_text, names, names->text.data + start);
	if (found != TABLE_NONE) {
		names->text.len = start;
		names->of_frame[frame] = found;
		return 0;
	}
	names->at[names->n] = start;
	names->of_frame[frame] = names->n;
	return table_add(&names->table, hash, names->n++);
}

static int name_frames(const struct incident *in, bool addresses, struct names *names)
{
	uint32_t i;
	int rc = 0;

	names->at = calloc((size_t)in->nframes + 1, sizeof(*names->at));
	names->of_frame = calloc((size_t)in->nframes + 1, sizeof(*names->of_frame));
	if (!names->at || !names->of_frame)
		return ERR_MEMORY;
	for (i = 0; !rc && i < in->nframes; i++)
		rc = name_frame(in, i, addresses, names);
	return rc;
}

static void names_free(struct names *names)
{
	buf_free(&names->text);
	table_free(&names->table);
	free(names->at);
	free(names->of_frame);
}

/* ---- stacks -------------------------------------------------------------------------------------- */

struct alike {
	const struct incident *in;
	const struct names *names;
	uint32_t *first;                     /* stack -> the first one that reads the same */
};

/* What a stack reads like; an incident has one copy of each text. */
struct reading {
	uint32_t caller, function, line;     /* caller: the first that reads the same */
	const char *file;
};

static struct reading read_stack(const struct alike *alike, uint32_t stack)
{
	const struct incident_stack *s = &alike->in->stacks[stack];
	const struct incident_frame *f = &alike->in->frames[s->frame];

	return (struct reading){
		.caller = s->parent == STACK_NONE ? STACK_NONE : alike->first[s->parent],
		.function = alike->names->of_frame[s->frame],
		.line = f->line,
		.file = f->file,
	};
}

static bool same_reading(const void *ctx, uint32_t value, const void *key)
{
	const struct reading a = read_stack(ctx, value), *b = key;

	return a.caller == b->caller && a.function == b->function && a.line == b->line &&
	       a.file == b->file;
}

/*
 * People read names: stacks that differ only in where a function calls the next are one stack,
 * unless they have source lines, which tell.
 */
static int find_alike(struct alike *alike)
{
	struct table table = {0};
	uint32_t i, found;
	int rc = 0;

	for (i = 0; !rc && i < alike->in->nstacks; i++) {
		struct reading key = read_stack(alike, i);
		uint64_t hash = hash_pair(hash_pair(key.caller, key.function), key.line);

		found = table_find(&table, hash, same_reading, alike, &key);
		alike->first[i] = found == TABLE_NONE ? i : found;
		if (found == TABLE_NONE)
			rc = table_add(&table, hash, i);
	}
	table_free(&table);
	return rc;
}

static int compare_places(const void *a, const void *b)
{
	const struct summary_stack *sa = a, *sb = b;
	int order = by_number(sa->process, sb->process);

	return order ? order : by_number(sa->stack, sb->stack);
}

static int compare_stacks(const void *a, const void *b)
{
	const struct summary_stack *sa = a, *sb = b;
	int order = by_number(sb->samples, sa->samples);

	return order ? order : compare_places(a, b);
}

static int count_stacks(const struct incident *in, const uint32_t *first, struct summary *out)
{
	struct summary_stack *all = calloc((size_t)in->nsamples + 1, sizeof(*all));
	uint32_t i, n = 0, used = 0;

	if (!all)
		return ERR_MEMORY;
	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == STREAM_OFF_CPU)
			continue;
		if (s->stack == STACK_NONE)
			out->without_stack++;
		else
			all[n++] = (struct summary_stack){process_of(in, s), first[s->stack],
							  incident_units(in, s)};
	}
	qsort(all, n, sizeof(*all), compare_places);
	for (i = 0; i < n; i++) {
		if (used && compare_places(&all[used - 1], &all[i]) == 0)
			all[used - 1].samples += all[i].samples;
		else
			all[used++] = all[i];
	}
	qsort(all, used, sizeof(*all), compare_stacks);
	out->stacks = all;
	out->nstacks = used;
	return 0;
}

static int add_stacks(const struct incident *in, const struct names *names, struct summary *out)
{
	struct alike alike = {in, names, calloc((size_t)in->nstacks + 1, sizeof(*alike.first))};
	int rc = alike.first ? find_alike(&alike) : ERR_MEMORY;

	if (!rc)
		rc = count_stacks(in, alike.first, out);
	free(alike.first);
	return rc;
}

/* ---- functions ----------------------------------------------------------------------------------- */

static int compare_self(const void *a, const void *b)
{
	const struct summary_function *fa = a, *fb = b;
	int order = by_number(fb->self, fa->self);

	if (!order)
		order = by_number(fb->inclusive, fa->inclusive);
	return order ? order : strcmp(fa->name, fb->name);
}

static int compare_inclusive(const void *a, const void *b)
{
	const struct summary_function *fa = a, *fb = b;
	int order = by_number(fb->inclusive, fa->inclusive);

	return order ? order : compare_self(a, b);
}

/* Walk each different stack once, from leaf to root; seen[f] says in which one f was met last. */
static void count_functions(const struct incident *in, const struct names *names,
			    struct summary *out, uint32_t *seen)
{
	uint32_t i, node;

	for (i = 0; i < out->nstacks; i++) {
		const struct summary_stack *s = &out->stacks[i];

		out->functions[names->of_frame[in->stacks[s->stack].frame]].self += s->samples;
		for (node = s->stack; node != STACK_NONE; node = in->stacks[node].parent) {
			uint32_t f = names->of_frame[in->stacks[node].frame];

			if (seen[f] == i + 1)
				continue;
			seen[f] = i + 1;
			out->functions[f].inclusive += s->samples;
		}
	}
}

/* Takes the names' text. */
static int add_functions(const struct incident *in, struct names *names, struct summary *out)
{
	uint32_t *seen = calloc((size_t)names->n + 1, sizeof(*seen)), i, n = 0;

	out->functions = calloc((size_t)names->n + 1, sizeof(*out->functions));
	if (!out->functions || !seen) {
		free(seen);
		return ERR_MEMORY;
	}
	count_functions(in, names, out, seen);
	free(seen);
	out->text = names->text.data;
	names->text.data = NULL;
	for (i = 0; i < names->n; i++) {
		if (!out->functions[i].inclusive)
			continue;
		out->functions[n] = out->functions[i];
		out->functions[n++].name = out->text + names->at[i];
	}
	qsort(out->functions, n, sizeof(*out->functions), compare_self);
	out->nfunctions = n;
	return 0;
}

/* ---- counters ------------------------------------------------------------------------------------ */

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

int summary_make(const struct incident *in, bool addresses, struct summary *out, struct err *err)
{
	struct names names = {0};
	struct summary s = {0};
	int rc = add_processes(in, &s);

	if (!rc)
		rc = name_frames(in, addresses, &names);
	if (!rc)
		rc = add_stacks(in, &names, &s);
	if (!rc)
		rc = add_functions(in, &names, &s);
	names_free(&names);
	if (rc) {
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
	free(s->text);
	memset(s, 0, sizeof(*s));
}
