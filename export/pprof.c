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
 * The locations of a sample are leaf first. A location is an address with all that was inlined
 * there, its lines innermost first. Addresses are relative to the module.
 *
 * In a diff, the base's samples are negative and have the label that `pprof -diff_base` gives them;
 * viewers then show shares of the base.
 */
#include "export/diff.h"
#include "export/names.h"
#include "export/sums.h"

#include "base/bytes.h"
#include "base/text_table.h"
#include "base/varint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pprof {
	const struct incident *in;
	struct buf message;                  /* the profile without its strings */
	struct buf part, inner;              /* a message inside it, and one inside that */
	struct buf text, ids;                /* scratch */
	struct text_table strings;
	struct text_table functions;         /* struct function_key of each */
	struct text_table locations;         /* frames, leaf first, or a mark's name */
	uint32_t *function_of_frame;         /* ids; 0 = not written */
	uint32_t *mapping_of_module;
	uint32_t nmappings;
	double times;                        /* factor of values; < 0 for the base of a diff */
	int failed;
};

/* ---- protobuf -------------------------------------------------------------------------------- */

static void put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX_BYTES];

	buf_put(b, bytes, varint_put(bytes, v));
}

/* 0 is the default, and is left out. */
static void put_int(struct buf *b, unsigned field, uint64_t v)
{
	if (!v)
		return;
	put_varint(b, field << 3);
	put_varint(b, v);
}

static void put_bytes(struct buf *b, unsigned field, const void *bytes, size_t n)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, n);
	buf_put(b, bytes, n);
}

static void put_part(struct buf *b, unsigned field, const struct buf *part)
{
	if (part->failed)
		b->failed = part->failed;
	put_bytes(b, field, buf_text(part), part->len);
}

/* ---- strings --------------------------------------------------------------------------------- */

static uint32_t string_of(struct pprof *p, const char *text, size_t n)
{
	uint32_t number = text_table_add(&p->strings, text, n);

	if (number != TABLE_NONE)
		return number;
	p->failed = ERR_MEMORY;
	return 0;
}

static uint32_t text_of(struct pprof *p, const char *text)
{
	return string_of(p, text, strlen(text));
}

static uint32_t clean_text_of(struct pprof *p, const char *text)
{
	buf_reset(&p->text);
	name_put(&p->text, text);
	if (p->text.failed)
		p->failed = p->text.failed;
	return string_of(p, buf_text(&p->text), p->text.len);
}

/* ---- mappings, functions, locations ---------------------------------------------------------- */

/* The id of a function or a location, from 1 on; 0 without memory. *is_new: it must be written. */
static uint32_t id_of(struct pprof *p, struct text_table *t, const void *key, size_t n,
		      bool *is_new)
{
	uint32_t known = t->n, number = text_table_add(t, key, n);

	*is_new = number == known;
	if (number == TABLE_NONE)
		p->failed = ERR_MEMORY;
	return number + 1;
}

/* For a PDB the GUID as text has it, then the age; else the bytes. */
static uint32_t build_id_of(struct pprof *p, const struct incident_module *m)
{
	static const uint8_t guid[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	char text[BUILD_ID_MAX * 2 + 1];
	bool pdb = m->kind == OBJECT_PE && m->build_id_bytes == 20;
	size_t n = 0;
	unsigned i;

	if (!m->build_id_bytes)
		return 0;
	for (i = 0; i < (pdb ? 16u : m->build_id_bytes); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, pdb ? "%02X" : "%02x",
				      (unsigned)m->build_id[pdb ? guid[i] : i]);
	if (pdb)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%X",
				      (unsigned)le32(m->build_id + GUID_BYTES));
	return string_of(p, text, n);
}

static uint32_t mapping_of(struct pprof *p, uint32_t module)
{
	const struct incident_module *m = &p->in->modules[module];

	if (p->mapping_of_module[module])
		return p->mapping_of_module[module];
	p->mapping_of_module[module] = ++p->nmappings;
	buf_reset(&p->part);
	put_int(&p->part, 1, p->nmappings);
	put_int(&p->part, 5, clean_text_of(p, m->path && *m->path ? m->path :
					      m->name && *m->name ? m->name : "?"));
	put_int(&p->part, 6, build_id_of(p, m));
	put_int(&p->part, 7, 1);
	put_part(&p->message, 3, &p->part);
	return p->nmappings;
}

struct function_key {
	uint32_t name, system, file;         /* strings */
};

static uint32_t put_function(struct pprof *p, const char *name, size_t n, const char *system,
			     const char *file)
{
	struct function_key key = {
		.name = string_of(p, name, n),
		.system = system && *system ? clean_text_of(p, system) : 0,
		.file = file && *file ? clean_text_of(p, file) : 0,
	};
	bool is_new;
	uint32_t id = id_of(p, &p->functions, &key, sizeof(key), &is_new);

	if (!is_new)
		return id;
	buf_reset(&p->inner);
	put_int(&p->inner, 1, id);
	put_int(&p->inner, 2, key.name);
	put_int(&p->inner, 3, key.system);
	put_int(&p->inner, 4, key.file);
	put_part(&p->message, 5, &p->inner);
	return id;
}

static uint32_t function_of(struct pprof *p, uint32_t frame)
{
	const struct incident_frame *f = &p->in->frames[frame];
	uint32_t *id = &p->function_of_frame[frame];
	struct buf name = {0};

	if (*id)
		return *id;
	incident_frame_text(p->in, frame, false, &name);
	if (name.failed)
		p->failed = name.failed;
	*id = put_function(p, buf_text(&name), name.len, f->raw_name ? f->raw_name : f->function,
			   f->file);
	buf_free(&name);
	return *id;
}

static void put_line(struct pprof *p, uint32_t function, uint32_t line)
{
	buf_reset(&p->inner);
	put_int(&p->inner, 1, function);
	put_int(&p->inner, 2, line);
	put_part(&p->part, 4, &p->inner);
}

/* frames[n - 1] with the n - 1 functions that were inlined into it. */
static uint32_t location_of(struct pprof *p, const uint32_t *frames, uint32_t n)
{
	bool is_new;
	uint32_t id = id_of(p, &p->locations, frames, n * sizeof(*frames), &is_new), mapping, i;

	if (!is_new)
		return id;
	mapping = mapping_of(p, p->in->frames[frames[n - 1]].module);
	for (i = 0; i < n; i++)
		function_of(p, frames[i]);
	buf_reset(&p->part);
	put_int(&p->part, 1, id);
	put_int(&p->part, 2, mapping);
	put_int(&p->part, 3, frame_address(p->in, frames[n - 1]));
	for (i = 0; i < n; i++)
		put_line(p, function_of(p, frames[i]), p->in->frames[frames[i]].line);
	put_part(&p->message, 4, &p->part);
	return id;
}

/*
 * A location that is not code: a mark, or "[no stack]". Frames take 4 bytes each and no such name
 * has a multiple of 4, so neither is taken for the other.
 */
static uint32_t mark_location(struct pprof *p, const char *name)
{
	bool is_new;
	uint32_t id = id_of(p, &p->locations, name, strlen(name), &is_new), function;

	if (!is_new)
		return id;
	function = put_function(p, name, strlen(name), NULL, NULL);
	buf_reset(&p->part);
	put_int(&p->part, 1, id);
	put_line(p, function, 0);
	put_part(&p->message, 4, &p->part);
	return id;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void put_locations(struct pprof *p, const struct sum *s, const struct path *path)
{
	uint32_t i, first = 0;

	buf_reset(&p->ids);
	for (i = 0; i < path->n; i++) {
		if (i + 1 < path->n && (p->in->frames[path->frames[i]].flags & FRAME_INLINED))
			continue;
		put_varint(&p->ids, location_of(p, path->frames + first, i + 1 - first));
		first = i + 1;
	}
	if (s->mark)
		put_varint(&p->ids, mark_location(p, s->mark));
	else if (!path->n)
		put_varint(&p->ids, mark_location(p, "[no stack]"));
}

static void put_label(struct pprof *p, const char *key, const char *text, uint64_t number)
{
	buf_reset(&p->inner);
	put_int(&p->inner, 1, text_of(p, key));
	if (text)
		put_int(&p->inner, 2, clean_text_of(p, text));
	put_int(&p->inner, 3, number);
	put_part(&p->part, 3, &p->inner);
}

/* Negative values are two's complement, ten bytes as a varint. */
static uint64_t scale_value(const struct pprof *p, uint64_t v)
{
	if (p->times < 0)
		return 0 - (uint64_t)((double)v * -p->times + 0.5);
	return v;
}

static void put_sample(struct pprof *p, const struct export_options *opt, const struct sum *s,
		       const struct path *path)
{
	struct buf values = {0};
	struct home home;
	struct who who;
	unsigned key;

	who_of(p->in, s->thread, &who);
	home_read(who.home, &home);
	put_locations(p, s, path);
	buf_reset(&p->part);
	put_part(&p->part, 1, &p->ids);
	put_varint(&values, scale_value(p, s->count));
	put_varint(&values, scale_value(p, s->time_ns));
	put_part(&p->part, 2, &values);
	if (p->times < 0)
		put_label(p, "pprof::base", "true", 0);
	put_label(p, "process", who.process, 0);
	put_label(p, "thread", who.thread, 0);
	if (p->in->nparts && s->thread != THREAD_NONE)
		put_label(p, "incident",
			  p->in->parts[p->in->processes[p->in->threads[s->thread].process].part],
			  0);
	for (key = 0; key < HOME_KEYS; key++)
		if (*home.of[key])
			put_label(p, home_key_text(key), home.of[key], 0);
	if (opt->ids) {
		put_label(p, "pid", NULL, who.pid);
		put_label(p, "tid", NULL, who.tid);
	}
	put_part(&p->message, 2, &p->part);
	buf_free(&values);
}

static int put_samples(struct pprof *p, const struct incident *in,
		       const struct export_options *opt, struct err *err)
{
	struct sums sums = {0};
	struct path path = {0};
	uint32_t i;
	int rc = sums_make(&sums, in, opt, SUMS_BY_THREAD, err);

	for (i = 0; i < sums.n && !rc && !p->failed; i++) {
		p->failed = path_make(&path, p->in, sums.items[i].stack);
		if (!p->failed)
			put_sample(p, opt, &sums.items[i], &path);
	}
	path_free(&path);
	sums_free(&sums);
	return rc;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void put_value_type(struct pprof *p, unsigned field, const char *type, const char *unit)
{
	buf_reset(&p->part);
	put_int(&p->part, 1, text_of(p, type));
	put_int(&p->part, 2, text_of(p, unit));
	put_part(&p->message, field, &p->part);
}

/* The count first, the metric last: one viewer always shows the last. */
static void put_head(struct pprof *p, enum stream stream)
{
	static const char *const units[METRIC_UNITS] = {"nanoseconds", "bytes", "count"};
	const struct stream_metric *m = &stream_metrics[stream];
	const struct incident_head *h = &p->in->head;
	uint64_t before_ns = h->trigger_ns - h->t0_ns;

	text_of(p, "");
	put_value_type(p, 1, "samples", "count");
	put_value_type(p, 1, m->pprof, units[m->unit]);
	put_value_type(p, 11, m->pprof, units[m->unit]);
	put_int(&p->message, 12, h->period_ns[stream]);
	put_int(&p->message, 14, text_of(p, m->pprof));
	put_int(&p->message, 9,
		h->trigger_wall_ns > before_ns ? h->trigger_wall_ns - before_ns : 0);
	put_int(&p->message, 10, h->t1_ns - h->t0_ns);
}

static void put_comments(struct pprof *p, const struct buf *notes)
{
	const char *at, *end;

	if (notes->failed)
		p->failed = notes->failed;
	for (at = buf_text(notes); (end = strchr(at, '\n')) != NULL; at = end + 1)
		put_int(&p->message, 13, string_of(p, at, (size_t)(end - at)));
}

static void put_strings(struct pprof *p)
{
	uint32_t i;

	for (i = 0; i < p->strings.n; i++)
		put_bytes(&p->message, 6, text_table_get(&p->strings, i), p->strings.items[i].len);
}

/* Readers take mapping 1 for the main binary: make it that of the process with most samples. */
static void put_main_mapping(struct pprof *p)
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
			mapping_of(p, i);
			break;
		}
	}
	if (!counts)
		p->failed = ERR_MEMORY;
	free(counts);
}

/* Write one incident, or both sides of a diff. */
static int put_sides(struct pprof *p, const struct diff *d, const struct export_options *opt,
		     struct err *err)
{
	struct incident base = d->in, test = d->in;
	int rc;

	base.nsamples = d->nbase;
	test.samples += d->nbase;
	test.nsamples -= d->nbase;
	p->times = -d->factor;
	rc = put_samples(p, &base, opt, err);
	p->times = 1;
	return rc ? rc : put_samples(p, &test, opt, err);
}

static int make_profile(struct pprof *p, const struct diff *d, const struct export_options *opt,
			struct err *err)
{
	struct buf notes = {0};
	int rc;

	p->function_of_frame = calloc((size_t)p->in->nframes + 1, sizeof(*p->function_of_frame));
	p->mapping_of_module = calloc((size_t)p->in->nmodules + 1, sizeof(*p->mapping_of_module));
	if (!p->function_of_frame || !p->mapping_of_module)
		return err_memory(err, "while writing a profile");
	if (d)
		diff_notes_put(&notes, d);
	else
		notes_put(&notes, p->in);
	put_head(p, opt->stream);
	put_comments(p, &notes);
	buf_free(&notes);
	put_main_mapping(p);
	rc = d ? put_sides(p, d, opt, err) : put_samples(p, p->in, opt, err);
	if (rc)
		return rc;
	put_strings(p);
	if (p->failed)
		return err_memory(err, "while writing a profile");
	return buf_check(&p->message, "the profile", err);
}

static int write_profile(const struct incident *in, const struct diff *d,
			 const struct export_options *opt, struct out *out, struct err *err)
{
	struct pprof p = {.in = in};
	int rc = make_profile(&p, d, opt, err);

	if (!rc)
		rc = out_pack(out, err);
	if (!rc)
		out_put(out, p.message.data, p.message.len);
	buf_free(&p.message);
	buf_free(&p.part);
	buf_free(&p.inner);
	buf_free(&p.text);
	buf_free(&p.ids);
	text_table_free(&p.strings);
	text_table_free(&p.functions);
	text_table_free(&p.locations);
	free(p.function_of_frame);
	free(p.mapping_of_module);
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
