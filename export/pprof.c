/*
 * pprof's profile.proto, gzipped. The message, with the field numbers of pprof's profile.proto:
 *
 *	1 sample_type {1 type, 2 unit}                    strings are indices into string_table
 *	2 sample {1 location_id, 2 value (both packed), 3 label {1 key, 2 str, 3 num}}
 *	3 mapping {1 id, 5 filename, 6 build_id, 7 has_functions, 9 has_line_numbers,
 *	           10 has_inline_frames}
 *	4 location {1 id, 2 mapping_id, 3 address, 4 line {1 function_id, 2 line}}
 *	5 function {1 id, 2 name, 3 system_name, 4 filename}
 *	6 string_table   9 time_nanos   10 duration_nanos   11 period_type   12 period   13 comment
 *	14 default_sample_type
 *
 * The locations of a sample are leaf first.
 *
 * In a diff, the base's samples are negative and have the label that `pprof -diff_base` gives them;
 * viewers then show shares of the base.
 */
#include "export/diff.h"
#include "export/names.h"
#include "export/profile.h"

#include "base/varint.h"

#include <stdlib.h>
#include <string.h>

static void more_of_mapping(struct profile *p, const struct incident_module *m)
{
	proto_put_int(&p->part, 6, profile_build_id(p, m));
	proto_put_int(&p->part, 7, 1);
}

static void more_of_location(struct profile *p, uint32_t frame)
{
	(void)p;
	(void)frame;
}

static const struct profile_fields fields = {
	.mappings = 3, .locations = 4, .functions = 5, .strings = 6,
	.mapping_id = 1, .mapping_file = 5,
	.location_id = 1, .location_mapping = 2, .location_address = 3, .location_line = 4,
	.function_id = 1, .function_name = 2, .function_system = 3, .function_file = 4,
	.more_of_mapping = more_of_mapping, .more_of_location = more_of_location,
};

/* ---- samples --------------------------------------------------------------------------------- */

static void put_label(struct profile *p, const char *key, const char *text, uint64_t number)
{
	buf_reset(&p->inner);
	proto_put_int(&p->inner, 1, profile_text(p, key));
	if (text)
		proto_put_int(&p->inner, 2, profile_clean_text(p, text));
	proto_put_int(&p->inner, 3, number);
	proto_put_part(&p->part, 3, &p->inner);
}

static void make_labels(struct profile *p, const struct export_options *opt, uint32_t thread)
{
	const struct incident *in = p->in;
	struct home home;
	struct who who;
	unsigned key;

	who_of(in, thread, &who);
	home_read(who.home, &home);
	put_label(p, "process", who.process, 0);
	put_label(p, "thread", who.thread, 0);
	if (in->nparts && thread != THREAD_NONE)
		put_label(p, "incident",
			  in->parts[in->processes[in->threads[thread].process].part], 0);
	for (key = 0; key < HOME_KEYS; key++)
		if (*home.of[key])
			put_label(p, home_key_text(key), home.of[key], 0);
	if (opt->ids) {
		put_label(p, "pid", NULL, who.pid);
		put_label(p, "tid", NULL, who.tid);
	}
}

struct putting {
	struct profile *p;
	const struct export_options *opt;
	double times;                        /* factor of values; < 0 for the base of a diff */
	struct path path;                    /* of the sample at hand, and: */
	struct buf ids;
	struct buf labels;                   /* of all threads, as they were put the first time */
	struct labels_of {
		uint32_t from, n;            /* n 0: not put yet */
	} *of;                               /* the last one is THREAD_NONE's */
};

static void put_labels(struct putting *to, uint32_t thread)
{
	struct profile *p = to->p;
	struct labels_of *l = &to->of[thread == THREAD_NONE ? p->in->nthreads : thread];
	size_t start = p->part.len;

	if (l->n) {
		buf_put(&p->part, to->labels.data + l->from, l->n);
		return;
	}
	make_labels(p, to->opt, thread);
	if (p->part.failed)
		return;
	l->from = (uint32_t)to->labels.len;
	l->n = (uint32_t)(p->part.len - start);
	buf_put(&to->labels, p->part.data + start, l->n);
	if (to->labels.failed)
		p->failed = to->labels.failed;
}

/* Negative values are two's complement, ten bytes as a varint. */
static uint64_t scale_value(double times, uint64_t v)
{
	return times < 0 ? 0 - (uint64_t)((double)v * -times + 0.5) : v;
}

static void put_sample(struct putting *to, const struct sum *s)
{
	char bytes[2 * VARINT_MAX_BYTES + 1];
	struct buf values = {.data = bytes, .cap = sizeof(bytes)};
	struct profile *p = to->p;

	buf_reset(&to->ids);
	profile_put_locations(p, s, &to->path, &to->ids);
	buf_reset(&p->part);
	proto_put_part(&p->part, 1, &to->ids);
	if (!to->opt->part)
		proto_put_varint(&values, scale_value(to->times, s->count));
	proto_put_varint(&values, scale_value(to->times, s->time_ns));
	proto_put_part(&p->part, 2, &values);
	if (to->times < 0)
		put_label(p, "pprof::base", "true", 0);
	if (!to->opt->part)
		put_labels(to, s->thread);
	proto_put_part(&p->tables, 2, &p->part);
}

static int put_samples(struct profile *p, const struct incident *in,
		       const struct export_options *opt, double times, struct out *out,
		       struct err *err)
{
	struct putting to = {.p = p, .opt = opt, .times = times};
	struct sums sums = {0};
	uint32_t i, last;
	int rc = sums_make(&sums, in, opt, opt->part ? SUMS_BY_PROCESS : SUMS_BY_THREAD, err);

	to.of = calloc((size_t)in->nthreads + 1, sizeof(*to.of));
	if (!rc && !to.of)
		rc = err_memory(err, "while writing a profile");
	for (i = sums_first(&sums, opt->part, &last); i < last && !rc && !p->failed; i++) {
		p->failed = path_make(&to.path, p->in, sums.items[i].stack);
		if (!p->failed)
			put_sample(&to, &sums.items[i]);
		out_drain(out, &p->tables, false);
	}
	path_free(&to.path);
	buf_free(&to.ids);
	buf_free(&to.labels);
	free(to.of);
	sums_free(&sums);
	return rc;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void put_value_type(struct profile *p, unsigned field, const char *type, const char *unit)
{
	buf_reset(&p->part);
	proto_put_int(&p->part, 1, profile_text(p, type));
	proto_put_int(&p->part, 2, profile_text(p, unit));
	proto_put_part(&p->tables, field, &p->part);
}

/* The count first, the metric last: one viewer always shows the last. */
static void put_head(struct profile *p, const struct export_options *opt)
{
	const struct stream_metric *m = &stream_metrics[opt->stream];
	const struct incident_head *h = &p->in->head;
	uint64_t before_ns = h->trigger_ns - h->t0_ns;

	if (!opt->part)
		put_value_type(p, 1, "samples", "count");
	put_value_type(p, 1, m->pprof, profile_units[m->unit]);
	put_value_type(p, 11, m->pprof, profile_units[m->unit]);
	proto_put_int(&p->tables, 12, h->period_ns[opt->stream]);
	proto_put_int(&p->tables, 14, profile_text(p, m->pprof));
	proto_put_int(&p->tables, 9,
		      h->trigger_wall_ns > before_ns ? h->trigger_wall_ns - before_ns : 0);
	proto_put_int(&p->tables, 10, h->t1_ns - h->t0_ns);
}

static void put_comments(struct profile *p, const struct buf *notes)
{
	const char *at, *end;

	if (notes->failed)
		p->failed = notes->failed;
	for (at = buf_text(notes); (end = strchr(at, '\n')) != NULL; at = end + 1)
		proto_put_int(&p->tables, 13, profile_string(p, at, (size_t)(end - at)));
}

/* Readers take mapping 1 for the main binary: make it that of the process with most samples. */
static void put_main_mapping(struct profile *p)
{
	uint64_t *counts = calloc((size_t)p->in->nprocesses + 1, sizeof(*counts));
	uint32_t i, best = 0;

	for (i = 0; counts && i < p->in->nsamples; i++) {
		if (p->in->samples[i].thread != THREAD_NONE)
			counts[p->in->threads[p->in->samples[i].thread].process]++;
	}
	for (i = 1; counts && i < p->in->nprocesses; i++)
		best = counts[i] > counts[best] ? i : best;
	for (i = 0; counts && counts[best] && i < p->in->nmodules; i++) {
		const char *module = p->in->modules[i].name, *process = p->in->processes[best].name;
		size_t n = strlen(process);

		if (n && module && strncmp(module, process, n) == 0 &&
		    (!module[n] || strcmp(module + n, ".exe") == 0)) {
			profile_mapping(p, i);
			break;
		}
	}
	if (!counts)
		p->failed = ERR_MEMORY;
	free(counts);
}

/* Write one incident, or both sides of a diff. */
static int put_sides(struct profile *p, const struct diff *d, const struct export_options *opt,
		     struct out *out, struct err *err)
{
	struct incident base = d->in, test = d->in;
	int rc;

	base.nsamples = d->nbase;
	test.samples += d->nbase;
	test.nsamples -= d->nbase;
	rc = put_samples(p, &base, opt, -d->factor, out, err);
	return rc ? rc : put_samples(p, &test, opt, 1, out, err);
}

static int make_profile(struct profile *p, const struct diff *d, const struct export_options *opt,
			struct out *out, struct err *err)
{
	struct buf notes = {0};
	int rc;

	if (d)
		diff_notes_put(&notes, d);
	else
		notes_put(&notes, p->in);
	put_head(p, opt);
	put_comments(p, &notes);
	buf_free(&notes);
	put_main_mapping(p);
	rc = d ? put_sides(p, d, opt, out, err) : put_samples(p, p->in, opt, 1, out, err);
	if (rc)
		return rc;
	profile_put_strings(p);
	if (p->failed)
		return err_memory(err, "while writing a profile");
	return buf_check(&p->tables, "the profile", err);
}

static int write_profile(const struct incident *in, const struct diff *d,
			 const struct export_options *opt, struct out *out, struct err *err)
{
	struct profile p;
	int rc = profile_begin(&p, in, &fields, err);

	if (!rc)
		rc = out_pack(out, err);
	if (!rc)
		rc = make_profile(&p, d, opt, out, err);
	if (!rc)
		out_drain(out, &p.tables, true);
	profile_free(&p);
	return rc;
}

static int pprof_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err)
{
	return write_profile(in, NULL, opt, out, err);
}

static int diff_pprof_write(const struct diff *d, const struct export_options *opt, struct out *out,
			    struct err *err)
{
	return write_profile(&d->in, d, opt, out, err);
}

const struct exporter pprof_exporter = {
	.name = "pprof",
	.suffix = ".pb.gz",
	.summary = "pprof and what reads its profiles",
	.binary = true,
	.usual = true,
	.sets = true,
	.write = pprof_write,
	.write_diff = diff_pprof_write,
};
