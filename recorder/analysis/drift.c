#include "analysis/drift.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_CPUS 0.02
#define SIGMAS 3.0

static int no_memory(struct err *err)
{
	return err_memory(err, "while comparing windows");
}

/* The number of a name, with its sums; UINT32_MAX without memory. */
static uint32_t name_number(struct drift *d, enum drift_kind kind, const char *text, size_t n,
			    struct buf *name)
{
	uint32_t before = d->names.n, number;

	buf_reset(name);
	buf_putc(name, (char)('0' + kind));
	buf_put(name, text, n);
	if (name->failed)
		return UINT32_MAX;
	number = text_table_add(&d->names, name->data, name->len);
	if (number == TABLE_NONE ||
	    ARRAY_ROOM(d->sums, d->sums_cap, (d->names.n) * DRIFT_WINDOWS_MAX))
		return UINT32_MAX;
	if (d->names.n > before)
		memset(d->sums + (size_t)number * DRIFT_WINDOWS_MAX, 0,
		       DRIFT_WINDOWS_MAX * sizeof(*d->sums));
	return number;
}

/* Numbers of names by process and by frame, UINT32_MAX - 1 = not asked for yet. */
struct adding {
	struct drift *d;
	const struct incident *in;
	uint32_t *processes, *frames, *inclusive;
	uint32_t *seen;                      /* of each name: the stack that it was counted in */
	uint32_t seen_cap;
	double *own;                         /* of each stack: the seconds of its samples */
	struct buf name, text;
	double seconds;
};

#define NOT_YET (UINT32_MAX - 1)

static int add_to(struct adding *a, uint32_t number, double cpu_s)
{
	if (number == UINT32_MAX)
		return ERR_MEMORY;
	a->d->sums[(size_t)number * DRIFT_WINDOWS_MAX + a->d->nwindows] += cpu_s / a->seconds;
	return 0;
}

static uint32_t frame_number(struct adding *a, uint32_t *numbers, enum drift_kind kind,
			     uint32_t frame)
{
	if (numbers[frame] == NOT_YET) {
		buf_reset(&a->text);
		incident_frame_text(a->in, frame, false, &a->text);
		numbers[frame] = name_number(a->d, kind, buf_text(&a->text), a->text.len,
					     &a->name);
	}
	return numbers[frame];
}

static int add_sample(struct adding *a, const struct incident_sample *s)
{
	const struct incident *in = a->in;
	uint32_t process = in->threads[s->thread].process;
	char label[PROCESS_LABEL_BYTES];
	const char *name;

	if (a->processes[process] == NOT_YET) {
		name = incident_process_label(in, process, label);
		a->processes[process] =
			name_number(a->d, DRIFT_PROGRAM, name, strlen(name), &a->name);
	}
	if (s->stack != STACK_NONE)
		a->own[s->stack] += (double)s->weight / 1e9;
	return add_to(a, a->processes[process], (double)s->weight / 1e9);
}

/* A stack's time to each function in it, once however often it stands there. */
static int add_inclusive(struct adding *a, uint32_t stack)
{
	uint32_t at, number, had = a->seen_cap;
	int rc = 0;

	for (at = stack; at != STACK_NONE && !rc; at = a->in->stacks[at].parent) {
		number = frame_number(a, a->inclusive, DRIFT_INCLUSIVE, a->in->stacks[at].frame);
		if (number == UINT32_MAX || ARRAY_ROOM(a->seen, a->seen_cap, number + 1))
			return ERR_MEMORY;
		for (; had < a->seen_cap; had++)
			a->seen[had] = STACK_NONE;
		if (a->seen[number] == stack)
			continue;
		a->seen[number] = stack;
		rc = add_to(a, number, a->own[stack]);
	}
	return rc;
}

static int add_stacks(struct adding *a)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < a->in->nstacks && !rc; i++) {
		if (!(a->own[i] > 0))
			continue;
		rc = add_to(a, frame_number(a, a->frames, DRIFT_FUNCTION, a->in->stacks[i].frame),
			    a->own[i]);
		if (!rc && a->d->inclusive)
			rc = add_inclusive(a, i);
	}
	return rc;
}

static uint32_t *not_yet(uint32_t n)
{
	uint32_t *all = malloc((n + 1u) * sizeof(*all)), i;

	for (i = 0; all && i < n; i++)
		all[i] = NOT_YET;
	return all;
}

int drift_add(struct drift *d, const struct incident *in, uint64_t t0_ns, uint64_t t1_ns,
	      struct err *err)
{
	struct adding a = {.d = d, .in = in, .seconds = (double)(t1_ns - t0_ns) / 1e9};
	bool has_idle = incident_has_idle(in);
	uint32_t i;
	int rc = 0;

	if (d->nwindows == DRIFT_WINDOWS_MAX)
		return err_set(err, ERR_LIMIT, "%u windows are the most that are compared",
			       DRIFT_WINDOWS_MAX);
	a.processes = not_yet(in->nprocesses);
	a.frames = not_yet(in->nframes);
	a.inclusive = not_yet(in->nframes);
	a.own = calloc((size_t)in->nstacks + 1, sizeof(*a.own));
	if (!a.processes || !a.frames || !a.inclusive || !a.own)
		rc = ERR_MEMORY;
	for (i = 0; !rc && i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == STREAM_CPU && s->thread != THREAD_NONE && s->time_ns >= t0_ns &&
		    s->time_ns <= t1_ns &&
		    (!has_idle || in->processes[in->threads[s->thread].process].pid))
			rc = add_sample(&a, s);
	}
	if (!rc)
		rc = add_stacks(&a);
	d->seconds[d->nwindows++] = a.seconds;
	if (in->cpu_period_ns)
		d->period_s = (double)in->cpu_period_ns / 1e9;
	free(a.processes);
	free(a.frames);
	free(a.inclusive);
	free(a.seen);
	free(a.own);
	buf_free(&a.name);
	buf_free(&a.text);
	return rc ? no_memory(err) : 0;
}

/* Sampling alone makes n samples vary by the root of n; of none, by one. */
static double sampling_variance(const struct drift *d, double cpus, double seconds)
{
	double period_s = d->period_s > 0 ? d->period_s : 0.01;
	double samples = fmax(cpus * seconds / period_s, 1);

	return samples * period_s * period_s / (seconds * seconds);
}

/* Of the windows from first to end: returns their mean; *variance between them. */
static double mean_of(const double *sums, uint32_t first, uint32_t end, double *variance)
{
	double mean = 0;
	uint32_t n = end - first, i;

	*variance = 0;
	for (i = first; i < end; i++)
		mean += sums[i] / n;
	for (i = first; i < end && n > 1; i++)
		*variance += (sums[i] - mean) * (sums[i] - mean) / (n - 1);
	return mean;
}

/* false: it stays within the spread. */
static bool judge(const struct drift *d, uint32_t number, struct drift_row *out)
{
	const double *sums = d->sums + (size_t)number * DRIFT_WINDOWS_MAX;
	const char *name = text_table_get(&d->names, number);
	uint32_t njudged = d->njudged ? d->njudged : 1;
	double variance, now_variance, noise;

	*out = (struct drift_row){.name = name + 1, .kind = (enum drift_kind)(*name - '0')};
	out->now = mean_of(sums, 0, njudged, &now_variance);
	out->mean = mean_of(sums, njudged, d->nwindows, &variance);
	out->now_sd = sqrt(now_variance);
	out->sd = sqrt(variance);
	noise = sampling_variance(d, out->mean, d->seconds[njudged]) +
		sampling_variance(d, out->now, d->seconds[0]);
	return fabs(out->now - out->mean) >= LEAST_CPUS &&
	       fabs(out->now - out->mean) > SIGMAS * sqrt(variance + now_variance + noise);
}

/* By thousandths of a CPU, so that a program comes before the function that takes all of it. */
static int by_change(const void *a, const void *b)
{
	const struct drift_row *x = a, *y = b;
	double dx = round((x->now - x->mean) * 1000), dy = round((y->now - y->mean) * 1000);

	if ((dx > 0) != (dy > 0))
		return dx > 0 ? -1 : 1;
	if (dx != dy)
		return (fabs(dx) < fabs(dy)) - (fabs(dx) > fabs(dy));
	return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind)
				  : strcmp(x->name, y->name);
}

int drift_finish(struct drift *d, struct err *err)
{
	uint32_t i;

	d->rows = calloc(d->names.n + 1u, sizeof(*d->rows));
	if (!d->rows)
		return no_memory(err);
	for (i = 0; d->nwindows > (d->njudged ? d->njudged : 1) && i < d->names.n; i++)
		d->nrows += judge(d, i, &d->rows[d->nrows]);
	if (d->nrows)
		qsort(d->rows, d->nrows, sizeof(*d->rows), by_change);
	return 0;
}

/* ---- since when ------------------------------------------------------------------------------ */

enum { PARTS = 120 };                        /* of a window */
/* Samples spread evenly differ less 99 times of 100 (Kolmogorov-Smirnov): 1.63 squared. */
#define CHANCE 2.66

/* Of each process, or each stack: whether its samples are the row's. */
static bool *find_own(const struct drift_row *row, const struct incident *in)
{
	bool program = row->kind == DRIFT_PROGRAM;
	uint32_t n = program ? in->nprocesses : in->nstacks, i;
	bool *own = calloc(n + 1u, sizeof(*own));
	char label[PROCESS_LABEL_BYTES];
	struct buf text = {0};

	for (i = 0; own && i < n; i++) {
		buf_reset(&text);
		if (!program)
			incident_frame_text(in, in->stacks[i].frame, false, &text);
		own[i] = strcmp(program ? incident_process_label(in, i, label) : buf_text(&text),
				row->name) == 0;
	}
	buf_free(&text);
	return own;
}

static bool is_own(const struct drift_row *row, const struct incident *in, const bool *own,
		   const struct incident_sample *s)
{
	if (s->stream != STREAM_CPU || s->thread == THREAD_NONE)
		return false;
	return row->kind == DRIFT_PROGRAM ? own[in->threads[s->thread].process]
					  : s->stack != STACK_NONE && own[s->stack];
}

/* first_ns: of each part, the time of its first sample; 0 = it has none. */
static void sum_parts(const struct drift_row *row, const struct incident *in, const bool *own,
		      uint64_t t0_ns, uint64_t t1_ns, double parts[PARTS], uint64_t first_ns[PARTS])
{
	uint32_t i, part;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->time_ns < t0_ns || s->time_ns >= t1_ns || !is_own(row, in, own, s))
			continue;
		part = (uint32_t)((s->time_ns - t0_ns) * PARTS / (t1_ns - t0_ns));
		parts[part] += (double)s->weight / 1e9;
		if (!first_ns[part] || s->time_ns < first_ns[part])
			first_ns[part] = s->time_ns;
	}
}

int drift_onset(const struct drift_row *row, const struct incident *in, uint64_t t0_ns,
		uint64_t t1_ns, uint64_t *since_ns, double *cpus, struct err *err)
{
	double parts[PARTS] = {0}, all = 0, before = 0, most = 0, at_before = 0, sum = 0;
	double part_s = (double)(t1_ns - t0_ns) / 1e9 / PARTS, early, late;
	uint64_t first_ns[PARTS] = {0};
	bool *own = find_own(row, in);
	uint32_t at = 0, i;

	*since_ns = t0_ns;
	*cpus = row->now;
	if (!own)
		return no_memory(err);
	if (t1_ns > t0_ns)
		sum_parts(row, in, own, t0_ns, t1_ns, parts, first_ns);
	free(own);
	for (i = 0; i < PARTS; i++)
		all += parts[i];
	for (i = 0; i + 1 < PARTS; i++) {
		before += parts[i];
		sum += parts[i] - all / PARTS;
		if ((row->now > row->mean ? -sum : sum) > most) {
			most = row->now > row->mean ? -sum : sum;
			at = i + 1;
			at_before = before;
		}
	}
	if (!at || most * most < CHANCE * all * (double)in->cpu_period_ns / 1e9)
		return 0;
	early = at_before / (at * part_s);
	late = (all - at_before) / ((PARTS - at) * part_s);
	if (fmin(early, late) * 2 > fmax(early, late))
		return 0;
	*since_ns = row->now > row->mean && first_ns[at] ? first_ns[at]
							 : t0_ns + (t1_ns - t0_ns) * at / PARTS;
	*cpus = late;
	return 0;
}

void drift_free(struct drift *d)
{
	text_table_free(&d->names);
	free(d->sums);
	free(d->rows);
	memset(d, 0, sizeof(*d));
}
