/*
 * What the pipeline costs, without a kernel: a made stream goes through queue, interner, segments,
 * ring, store and every exporter.
 *
 *	bench_pipeline [--json] [--dir DIR] [--samples N] [--stacks N] [--frames N] [--threads N]
 *	               [--ring-mb N] [--random] [--no-exports] [--keep] [--store-only]
 *
 * One line of text per row. With --json the rows go to stdout as objects, one a line with units in
 * the keys, and the text to stderr. Times are the best of 3 unless the key says max or reps. Stores
 * and exports are written to DIR (the current directory) and removed again; what is measured is
 * therefore DIR's disk. --keep leaves the store of all samples as DIR/bench.db; --store-only makes
 * it and measures nothing.
 *
 * The stream, and how diverse it is beside real recordings: tests/support/bench_stream.h. That of
 * earlier versions is --random --stacks 20000 --frames 20000 --threads 200.
 */
#include "base/array.h"
#include "base/os.h"
#include "export/export.h"
#include "model/queue.h"
#include "model/ring.h"
#include "store/store.h"
#include "tests/support/bench_rows.h"
#include "tests/support/bench_stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPS = 3 };

#define SLOW_NS NS_PER_SEC /* an export that takes longer is not repeated */

/* ---- queue, interner, segments --------------------------------------------------------------- */

/* From the source thread to the merge thread and out again, here without the threads. */
static int bench_queue(struct world *w)
{
	uint64_t best_ns = UINT64_MAX;
	uint32_t rep, n = w->settings->samples;
	struct queue *q = queue_new(QUEUE_BYTES);
	struct event e;
	struct row row;

	if (!q)
		return ERR_MEMORY;
	for (rep = 0; rep < REPS; rep++) {
		uint64_t start_ns = os_now_ns(), took_ns;
		uint32_t i = 0;

		while (i < n) {
			uint32_t batch;

			for (batch = 0; batch < 1000 && i < n; batch++, i++) {
				world_sample(w, i, &e);
				queue_put(q, &e);
			}
			while (queue_peek(q))
				queue_pop(q);
		}
		took_ns = os_now_ns() - start_ns;
		if (took_ns < best_ns)
			best_ns = took_ns;
	}
	row_open(&row, w->settings->json, "queue");
	row_num(&row, "us_per_sample", (double)best_ns / 1e3 / n);
	row_num(&row, "lost", (double)queue_lost(q));
	row_close(&row);
	queue_free(q);
	return 0;
}

struct pass {
	uint64_t total_ns, seal_ns, seal_max_ns, samples;
	size_t encoded_bytes, memory_bytes;
	uint32_t nsegments;
};

static int seal(struct world *w, struct pass *p, struct segment **out, struct err *err)
{
	uint64_t start_ns = os_now_ns(), took_ns;
	int rc = segment_seal(w->builder, out, err);

	took_ns = os_now_ns() - start_ns;
	if (rc || !*out)
		return rc;
	p->seal_ns += took_ns;
	if (took_ns > p->seal_max_ns)
		p->seal_max_ns = took_ns;
	p->samples += (*out)->nsamples;
	p->encoded_bytes += (*out)->nbytes;
	p->memory_bytes += (*out)->memory_bytes;
	p->nsegments++;
	return 0;
}

/*
 * Samples from w->next on, as the merge thread takes them, until a segment is full or `most` are in
 * it; then it is sealed.
 */
static int next_segment(struct world *w, uint64_t most, struct pass *p, struct segment **out,
			struct err *err)
{
	uint64_t start_ns = os_now_ns();
	struct event e;
	int rc = 0;

	for (; !rc && most; most--, w->next++) {
		world_sample(w, w->next, &e);
		if (segment_is_full(w->builder, e.time_ns))
			break;
		e.stack = segment_stack(w->builder, e.stack_frames, e.nstack_frames,
					world_name_frame, w);
		rc = e.stack == STACK_NONE ? ERR_MEMORY : segment_add(w->builder, &e);
	}
	segment_set_period(w->builder, STREAM_CPU, BENCH_PERIOD_NS);
	if (rc)
		return err_set(err, ERR_MEMORY,
			       "a sample was refused: no memory or a table is full");
	rc = seal(w, p, out, err);
	p->total_ns += os_now_ns() - start_ns;
	return rc;
}

/* All samples, from the first on. */
static int make_segments(struct world *w, struct pass *p, struct err *err)
{
	int rc = 0;

	while (w->nsegments)
		segment_unref(w->segments[--w->nsegments]);
	w->next = 0;
	while (!rc && w->next < w->settings->samples) {
		rc = next_segment(w, w->settings->samples - w->next, p, &w->segments[w->nsegments],
				  err);
		w->nsegments += !rc;
	}
	return rc;
}

/* settings->samples samples; the segments of the last repetition are kept. */
static int bench_segments(struct world *w, struct err *err)
{
	const struct settings *s = w->settings;
	struct pass best = {.total_ns = UINT64_MAX};
	struct frames_use frames;
	struct processes_use processes;
	struct row row;
	double n = s->samples;
	int rep, rc = 0;

	/* One more than counted: the first meets every frame for the first time and names it. */
	for (rep = 0; !rc && rep <= REPS; rep++) {
		struct pass p = {0};

		rc = make_segments(w, &p, err);
		if (rep && p.total_ns < best.total_ns)
			best = p;
	}
	if (rc)
		return rc;
	frames_use(w->frames, &frames);
	processes_use(w->processes, &processes);
	row_open(&row, s->json, "segments");
	row_num(&row, "us_per_sample", (double)best.total_ns / 1e3 / n);
	row_num(&row, "intern_add_us_per_sample", (double)(best.total_ns - best.seal_ns) / 1e3 / n);
	row_num(&row, "seal_us_per_sample", (double)best.seal_ns / 1e3 / n);
	row_num(&row, "seal_us", (double)best.seal_ns / 1e3 / best.nsegments);
	row_num(&row, "seal_max_us", (double)best.seal_max_ns / 1e3);
	row_close(&row);
	row_open(&row, s->json, "density");
	row_num(&row, "encoded_bytes_per_sample", (double)best.encoded_bytes / n);
	row_most(&row, "ring_bytes_per_sample", (double)best.memory_bytes / n, 16);
	row_num(&row, "history_s_per_mb",
		1048576 / ((double)best.memory_bytes / n) / (BENCH_CPUS * BENCH_FREQ_HZ));
	row_num(&row, "samples_per_segment", n / best.nsegments);
	row_num(&row, "frames", frames.frames);
	row_num(&row, "tables_bytes", (double)(frames.bytes + processes.bytes));
	row_close(&row);
	return 0;
}

/* ---- ring ------------------------------------------------------------------------------------ */

static int fill_ring(struct world *w, struct ring *ring, struct err *err)
{
	struct ring_use use = {0};
	uint32_t i;
	int rc = 0;

	for (i = 0; i < w->nsegments; i++) {
		segment_ref(w->segments[i]);
		ring_put(ring, w->segments[i]);
	}
	while (!rc && !use.evicted_segments) {
		struct segment *s = NULL;
		struct pass p = {0};

		rc = next_segment(w, SEGMENT_MAX_SAMPLES, &p, &s, err);
		if (!rc)
			ring_put(ring, s);
		ring_use(ring, &use);
	}
	return rc;
}

static int freeze(struct ring *ring, uint64_t t0_ns, uint64_t t1_ns, double *best_us,
		  double *max_us, struct err *err)
{
	int rep, rc = 0;

	*best_us = INFINITY;
	*max_us = 0;
	for (rep = 0; !rc && rep < 100; rep++) {
		struct frozen frozen = {0};
		uint64_t start_ns = os_now_ns();
		double us;

		rc = ring_freeze(ring, t0_ns, t1_ns, &frozen, err);
		us = (double)(os_now_ns() - start_ns) / 1e3;
		frozen_free(&frozen);
		*best_us = us < *best_us ? us : *best_us;
		*max_us = us > *max_us ? us : *max_us;
	}
	return rc;
}

static int bench_ring(struct world *w, struct err *err)
{
	uint64_t cpu_ns, before_bytes, after_bytes;
	double all_us, all_max_us, part_us, part_max_us;
	struct ring *ring = NULL;
	struct ring_use use;
	struct row row;
	uint32_t i;
	size_t already_bytes = 0;
	int rc = ring_new((size_t)w->settings->ring_mb << 20, &ring, err);

	os_self_usage(&cpu_ns, &before_bytes);
	for (i = 0; i < w->nsegments; i++)
		already_bytes += w->segments[i]->memory_bytes;
	if (!rc)
		rc = fill_ring(w, ring, err);
	if (rc)
		goto out;
	os_self_usage(&cpu_ns, &after_bytes);
	ring_use(ring, &use);
	rc = freeze(ring, 0, UINT64_MAX, &all_us, &all_max_us, err);
	if (!rc)
		rc = freeze(ring, use.newest_ns - 120 * NS_PER_SEC, use.newest_ns, &part_us,
			    &part_max_us, err);
	if (rc)
		goto out;
	row_open(&row, w->settings->json, "ring");
	row_num(&row, "ring_mb", w->settings->ring_mb);
	row_num(&row, "segments", use.segments);
	row_num(&row, "samples", (double)use.samples);
	row_num(&row, "history_s", (double)(use.newest_ns - use.oldest_ns) / 1e9);
	row_num(&row, "freeze_all_us", all_us);
	row_most(&row, "freeze_all_max_us", all_max_us, 1000);
	row_num(&row, "freeze_120s_us", part_us);
	row_num(&row, "freeze_120s_max_us", part_max_us);
	row_close(&row);
	row_open(&row, w->settings->json, "memory");
	row_num(&row, "rss_kb", (double)after_bytes / 1024);
	row_num(&row, "ring_kb", (double)use.bytes / 1024);
	row_num(&row, "rss_growth_per_ring_byte_ratio",
		((double)after_bytes - (double)before_bytes) / (double)(use.bytes - already_bytes));
	row_close(&row);
out:
	ring_free(ring);
	return rc;
}

/* ---- store ----------------------------------------------------------------------------------- */

static void remove_store(const char *path)
{
	static const char *const beside[] = {"", "-wal", "-shm", ".lock", ".reserve"};
	char name[600];
	size_t i;

	for (i = 0; i < COUNT_OF(beside); i++) {
		snprintf(name, sizeof(name), "%s%s", path, beside[i]);
		os_remove(name, NULL);
	}
}

struct stored {
	uint64_t put_ns, finish_ns, cpu_ns, bytes, samples;
	int64_t id;
};

static uint64_t spent_ns(const struct stored *s)
{
	return s->put_ns + s->finish_ns;
}

/*
 * What DIR's disk alone takes to keep what was appended: best and worst of 10. An incident waits
 * for it twice, for the log's head and for the commit; its other transactions do not.
 */
static int sync_after(struct os_file *file, size_t bytes, double *best_ms, double *worst_ms,
		      struct err *err)
{
	char *some = calloc(1, bytes);
	int rep, rc = some ? 0 : ERR_MEMORY;

	*best_ms = INFINITY;
	*worst_ms = 0;
	for (rep = 0; !rc && rep < 10; rep++) {
		uint64_t start_ns;
		double ms;

		rc = os_write(file, some, bytes, err);
		start_ns = os_now_ns();
		if (!rc)
			rc = os_sync(file, err);
		ms = (double)(os_now_ns() - start_ns) / 1e6;
		*best_ms = ms < *best_ms ? ms : *best_ms;
		*worst_ms = ms > *worst_ms ? ms : *worst_ms;
	}
	free(some);
	return rc;
}

static int bench_disk(const struct settings *s, struct err *err)
{
	struct os_file *file = NULL;
	double best_ms, worst_ms, large_ms, large_worst_ms;
	struct row row;
	char path[600];
	int rc;

	snprintf(path, sizeof(path), "%s/bench.sync", s->dir);
	rc = os_open(path, OS_REPLACE, &file, err);
	if (rc)
		return rc;
	rc = sync_after(file, 4096, &best_ms, &worst_ms, err);
	if (!rc)
		rc = sync_after(file, (size_t)1 << 20, &large_ms, &large_worst_ms, err);
	os_close(file);
	os_remove(path, NULL);
	if (rc)
		return rc;
	row_open(&row, s->json, "disk");
	row_num(&row, "sync_4_kb_ms", best_ms);
	row_num(&row, "sync_4_kb_max_ms", worst_ms);
	row_num(&row, "sync_1_mb_ms", large_ms);
	row_num(&row, "sync_1_mb_max_ms", large_worst_ms);
	row_close(&row);
	return 0;
}

/* Into a store of its own, so that nothing of it is there yet. The store stays. */
static int write_incident(struct world *w, const char *path, uint32_t first, struct stored *out,
			  struct err *err)
{
	static char rule[] = "manual", reason[] = "bench", host[] = "bench", version[] = "bench";
	struct incident_head h = {
		.rule = rule,
		.reason = reason,
		.host = host,
		.host_text = host,
		.recorder_version = version,
		.value = NAN,
		.limit = NAN,
		.trigger_wall_ns = os_wall_ns(),
		.t0_ns = w->segments[first]->t0_ns,
		.t1_ns = w->segments[w->nsegments - 1]->t1_ns,
	};
	struct os_file_info file = {0};
	struct store *s = NULL;
	uint64_t start_ns, cpu_start_ns, rss_bytes;
	uint32_t i;
	int rc;

	h.trigger_ns = h.t1_ns;
	h.asked_pre_ns = h.t1_ns - h.t0_ns;
	remove_store(path);
	rc = store_open(path, STORE_RECORD, &s, err);
	if (rc)
		return rc;
	store_set_floor(s, 0);
	os_self_usage(&cpu_start_ns, &rss_bytes);
	start_ns = os_now_ns();
	rc = store_begin(s, &h, err);
	for (i = first; !rc && i < w->nsegments; i++) {
		w->segments[i]->store_id = 0;
		rc = store_put_segment(s, h.id, w->segments[i], err);
	}
	out->put_ns = os_now_ns() - start_ns;
	if (!rc)
		rc = store_finish(s, &h, w->segments + first, w->nsegments - first, err);
	out->finish_ns = os_now_ns() - start_ns - out->put_ns;
	os_self_usage(&out->cpu_ns, &rss_bytes);
	out->cpu_ns -= cpu_start_ns;
	out->samples = h.samples;
	out->id = h.id;
	/* its log goes into it: up to 16 MB that are nobody's for long */
	store_close(s);
	if (!rc)
		rc = os_path_info(path, &file, err);
	out->bytes = file.size_bytes;
	return rc;
}

static int write_best(struct world *w, const char *path, uint32_t first, struct stored *best,
		      struct err *err)
{
	int rep, rc = 0;

	for (rep = 0; !rc && rep < REPS; rep++) {
		struct stored one = {0};

		rc = write_incident(w, path, first, &one, err);
		if (!rep || spent_ns(&one) < spent_ns(best))
			*best = one;
	}
	return rc;
}

/* The last seconds of the stream: whole segments, as an incident has them. */
static int bench_window(struct world *w, const char *path, uint32_t window_s, struct err *err)
{
	uint64_t end_ns = w->segments[w->nsegments - 1]->t1_ns;
	uint32_t first = w->nsegments - 1;
	struct stored best = {0};
	struct row row;
	char name[40];
	int rc;

	while (first && w->segments[first]->t0_ns > end_ns - window_s * NS_PER_SEC)
		first--;
	rc = write_best(w, path, first, &best, err);
	remove_store(path);
	if (rc)
		return rc;
	snprintf(name, sizeof(name), "store %u s", window_s);
	row_open(&row, w->settings->json, name);
	row_num(&row, "window_s", window_s);
	row_num(&row, "samples", (double)best.samples);
	if (window_s == 60)
		row_most(&row, "durable_ms", (double)spent_ns(&best) / 1e6, 150);
	else
		row_num(&row, "durable_ms", (double)spent_ns(&best) / 1e6);
	row_num(&row, "put_ms", (double)best.put_ns / 1e6);
	row_num(&row, "finish_ms", (double)best.finish_ns / 1e6);
	row_num(&row, "cpu_ms", (double)best.cpu_ns / 1e6);
	row_close(&row);
	return 0;
}

static int load(const char *path, int64_t id, struct incident *in, uint64_t *best_ns,
		struct err *err)
{
	int rep, rc = 0;

	*best_ns = UINT64_MAX;
	for (rep = 0; !rc && rep < REPS; rep++) {
		struct store *s = NULL;
		uint64_t start_ns = os_now_ns(), took_ns;

		incident_free(in);
		*in = (struct incident){0};
		rc = store_open(path, STORE_READ, &s, err);
		if (!rc)
			rc = store_load(s, id, in, err);
		took_ns = os_now_ns() - start_ns;
		*best_ns = took_ns < *best_ns ? took_ns : *best_ns;
		store_close(s);
	}
	return rc;
}

static int bench_store(struct world *w, const char *path, struct incident *in, struct err *err)
{
	uint64_t load_ns, cpu_ns, rss_bytes;
	struct stored best = {0};
	struct row row;
	double millions;
	int rc = write_best(w, path, 0, &best, err);

	if (!rc)
		rc = load(path, best.id, in, &load_ns, err);
	if (rc)
		return rc;
	os_self_usage(&cpu_ns, &rss_bytes);
	millions = (double)best.samples / 1e6;
	row_open(&row, w->settings->json, "store all");
	row_num(&row, "samples", (double)best.samples);
	row_num(&row, "put_ms", (double)best.put_ns / 1e6);
	row_num(&row, "finish_ms", (double)best.finish_ns / 1e6);
	row_most(&row, "write_ms_per_million", (double)spent_ns(&best) / 1e6 / millions, 1000);
	row_num(&row, "store_bytes", (double)best.bytes);
	row_most(&row, "store_bytes_per_sample", (double)best.bytes / (double)best.samples, 8);
	row_num(&row, "load_ms", (double)load_ns / 1e6);
	row_most(&row, "load_ms_per_million", (double)load_ns / 1e6 / millions, 300);
	row_num(&row, "rss_kb", (double)rss_bytes / 1024);
	row_close(&row);
	return 0;
}

/* ---- exports --------------------------------------------------------------------------------- */

static int bench_export(const struct settings *s, const struct exporter *x,
			const struct incident *in, struct err *err)
{
	const struct export_options options = {
		.annotate = true, .ids = true, .file_name = "bench.out"};
	uint64_t best_ns = UINT64_MAX, bytes = 0;
	struct row row;
	char path[600], name[64];
	int reps = 0, rc = 0;

	snprintf(path, sizeof(path), "%s/bench.out", s->dir);
	while (!rc && reps < REPS && (!reps || best_ns < SLOW_NS)) {
		uint64_t start_ns = os_now_ns(), took_ns;
		struct out *out = NULL;

		rc = out_open(path, true, &out, err);
		if (rc)
			break;
		rc = x->write(in, &options, out, err);
		bytes = out_bytes(out);
		if (rc)
			out_abandon(out);
		else
			rc = out_close(out, err);
		took_ns = os_now_ns() - start_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
		reps++;
	}
	os_remove(path, NULL);
	if (rc)
		return rc;
	snprintf(name, sizeof(name), "export %s", x->name);
	row_open(&row, s->json, name);
	if (strcmp(x->name, "folded") == 0)
		row_most(&row, "ms_per_million", (double)best_ns / (double)in->nsamples, 500);
	else
		row_num(&row, "ms_per_million", (double)best_ns / (double)in->nsamples);
	row_num(&row, "bytes_per_sample", (double)bytes / in->nsamples);
	row_num(&row, "reps", reps);
	row_close(&row);
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void print_stream(const struct world *w)
{
	uint32_t nstacks = w->nprocesses * w->stacks_each, i;
	uint64_t steps = 0;
	struct row row;

	for (i = 0; i < w->settings->samples; i++)
		steps += w->stacks[w->stack_of[i]].n;
	row_open(&row, w->settings->json, "stream");
	row_num(&row, "samples", w->settings->samples);
	row_num(&row, "threads", w->nprocesses * BENCH_THREADS_PER_PROCESS);
	row_num(&row, "stacks", nstacks);
	row_num(&row, "frames_per_stack", (double)steps / w->settings->samples);
	row_num(&row, "cpus", BENCH_CPUS);
	row_num(&row, "freq_hz", BENCH_FREQ_HZ);
	row_close(&row);
}

static int just_store(struct world *w, const char *path, struct err *err)
{
	struct pass pass = {0};
	struct stored stored = {0};
	int rc = make_segments(w, &pass, err);

	return rc ? rc : write_incident(w, path, 0, &stored, err);
}

static int bench(struct world *w, const struct settings *s, struct err *err)
{
	struct incident in = {0};
	char path[512];
	size_t i;
	int rc = world_make(w, s, err);

	snprintf(path, sizeof(path), "%s/bench.db", s->dir);
	if (rc || s->store_only)
		return rc ? rc : just_store(w, path, err);
	print_stream(w);
	rc = bench_queue(w);
	if (rc)
		return err_memory(err, "for this program");
	rc = bench_segments(w, err);
	if (!rc)
		rc = bench_ring(w, err);
	if (!rc)
		rc = bench_disk(s, err);
	if (!rc)
		rc = bench_window(w, path, 60, err);
	if (!rc)
		rc = bench_window(w, path, 600, err);
	if (!rc)
		rc = bench_store(w, path, &in, err);
	for (i = 0; !rc && !s->no_exports && exporters[i]; i++)
		rc = bench_export(s, exporters[i], &in, err);
	incident_free(&in);
	if (!s->keep)
		remove_store(path);
	return rc;
}

static bool number(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	*out = (uint32_t)v;
	return *text && !*end && v >= least && v <= most;
}

static bool parse(int argc, char **argv, struct settings *s)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
		bool good;

		if (strcmp(name, "--json") == 0) {
			s->json = true;
			continue;
		}
		if (strcmp(name, "--no-exports") == 0) {
			s->no_exports = true;
			continue;
		}
		if (strcmp(name, "--random") == 0) {
			s->random = true;
			continue;
		}
		if (strcmp(name, "--keep") == 0) {
			s->keep = true;
			continue;
		}
		if (strcmp(name, "--store-only") == 0) {
			s->store_only = true;
			continue;
		}
		if (strcmp(name, "--dir") == 0)
			good = (s->dir = value)[0] && strlen(value) < 400;
		else if (strcmp(name, "--samples") == 0)
			good = number(value, 20000, 20000000, &s->samples);
		else if (strcmp(name, "--stacks") == 0)
			good = number(value, 1, 1000000, &s->stacks);
		else if (strcmp(name, "--frames") == 0)
			good = number(value, 100, 500000, &s->frames);
		else if (strcmp(name, "--threads") == 0)
			good = number(value, 1, 1000, &s->threads);
		else if (strcmp(name, "--ring-mb") == 0)
			good = number(value, 1, 1024, &s->ring_mb);
		else
			good = false;
		if (!good)
			return false;
		i++;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct settings settings = {.dir = ".",
				    .samples = 1000000,
				    .stacks = 60000,
				    .frames = 40000,
				    .threads = 400,
				    .ring_mb = 64};
	struct world world = {0};
	struct err err = {0};
	int rc;

	if (!parse(argc, argv, &settings)) {
		fprintf(stderr,
			"usage: bench_pipeline [--json] [--dir DIR] [--samples N] [--stacks N] "
			"[--frames N] [--threads N] [--ring-mb N] [--random] [--no-exports] "
			"[--keep] [--store-only]\n");
		return 2;
	}
	rc = bench(&world, &settings, &err);
	if (rc)
		fprintf(stderr, "bench_pipeline: %s\n", err.text);
	world_free(&world);
	return rc ? 1 : 0;
}
