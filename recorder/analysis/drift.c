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
static uint32_t name_number(struct drift *d, char kind, const char *text, size_t n,
			    struct buf *name)
{
	uint32_t before = d->names.n, number;

	buf_reset(name);
	buf_putc(name, kind);
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
	uint32_t *processes, *frames;
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

static int add_sample(struct adding *a, const struct incident_sample *s)
{
	const struct incident *in = a->in;
	uint32_t process = in->threads[s->thread].process, frame;
	char label[PROCESS_LABEL_BYTES];
	const char *name;
	int rc;

	if (a->processes[process] == NOT_YET) {
		name = incident_process_label(in, process, label);
		a->processes[process] = name_number(a->d, 'p', name, strlen(name), &a->name);
	}
	rc = add_to(a, a->processes[process], (double)s->weight / 1e9);
	if (rc || s->stack == STACK_NONE)
		return rc;
	frame = in->stacks[s->stack].frame;
	if (a->frames[frame] == NOT_YET) {
		buf_reset(&a->text);
		incident_frame_text(in, frame, false, &a->text);
		a->frames[frame] = name_number(a->d, 'f', buf_text(&a->text), a->text.len,
					       &a->name);
	}
	return add_to(a, a->frames[frame], (double)s->weight / 1e9);
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
	uint32_t i;
	int rc = 0;

	if (d->nwindows == DRIFT_WINDOWS_MAX)
		return err_set(err, ERR_LIMIT, "%u windows are the most that are compared",
			       DRIFT_WINDOWS_MAX);
	a.processes = not_yet(in->nprocesses);
	a.frames = not_yet(in->nframes);
	if (!a.processes || !a.frames)
		rc = ERR_MEMORY;
	for (i = 0; !rc && i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == STREAM_CPU && s->thread != THREAD_NONE && s->time_ns >= t0_ns &&
		    s->time_ns <= t1_ns && in->processes[in->threads[s->thread].process].pid)
			rc = add_sample(&a, s);
	}
	d->seconds[d->nwindows++] = a.seconds;
	if (in->cpu_period_ns)
		d->period_s = (double)in->cpu_period_ns / 1e9;
	free(a.processes);
	free(a.frames);
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

/* false: it stays within the spread. */
static bool judge(const struct drift *d, uint32_t number, struct drift_row *out)
{
	const double *sums = d->sums + (size_t)number * DRIFT_WINDOWS_MAX;
	double mean = 0, variance = 0, noise;
	uint32_t n = d->nwindows - 1, i;

	for (i = 1; i <= n; i++)
		mean += sums[i] / n;
	for (i = 1; i <= n && n > 1; i++)
		variance += (sums[i] - mean) * (sums[i] - mean) / (n - 1);
	noise = sampling_variance(d, mean, d->seconds[1]) +
		sampling_variance(d, sums[0], d->seconds[0]);
	out->name = text_table_get(&d->names, number) + 1;
	out->function = *text_table_get(&d->names, number) == 'f';
	out->now = sums[0];
	out->mean = mean;
	out->sd = sqrt(variance);
	return fabs(out->now - mean) >= LEAST_CPUS &&
	       fabs(out->now - mean) > SIGMAS * sqrt(variance + noise);
}

static int by_change(const void *a, const void *b)
{
	const struct drift_row *x = a, *y = b;
	double dx = x->now - x->mean, dy = y->now - y->mean;

	if ((dx > 0) != (dy > 0))
		return dx > 0 ? -1 : 1;
	return fabs(dx) != fabs(dy) ? (fabs(dx) < fabs(dy)) - (fabs(dx) > fabs(dy))
				    : strcmp(x->name, y->name);
}

int drift_finish(struct drift *d, struct err *err)
{
	uint32_t i;

	d->rows = calloc(d->names.n + 1u, sizeof(*d->rows));
	if (!d->rows)
		return no_memory(err);
	for (i = 0; d->nwindows > 1 && i < d->names.n; i++)
		d->nrows += judge(d, i, &d->rows[d->nrows]);
	if (d->nrows)
		qsort(d->rows, d->nrows, sizeof(*d->rows), by_change);
	return 0;
}

void drift_free(struct drift *d)
{
	text_table_free(&d->names);
	free(d->sums);
	free(d->rows);
	memset(d, 0, sizeof(*d));
}
