/*
 * How fast a trace file becomes events with interned stacks, and in how much memory: the source
 * (both passes: decompress, merge, decode, bind) on its thread, the merge thread's work on another.
 *
 *	bench_etl_source [--json] FILE
 *
 * Seconds are of CPU time of both threads together, as one core would take. The first two rates are
 * of decoding, binding and interning; "sealed" is with the sealing of segments, which compresses
 * them. Resident memory is the greatest of the process.
 */
#include "base/os.h"
#include "model/segment.h"
#include "source/etl/file.h"
#include "source/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB 1000000.0

struct bench {
	struct frames *frames;
	struct processes *processes;
	struct queue *queue;
	struct source *source;
	struct segment_builder *builder;
	struct err err;
	int rc;
	_Atomic bool ended;
	uint64_t events, stacks, frames_seen, seal_ns, rss_bytes;
};

static void run_main(void *ctx)
{
	struct bench *b = ctx;

	b->rc = b->source->ops->run(b->source, &b->err);
	atomic_store(&b->ended, true);
}

static void seal(struct bench *b)
{
	uint64_t start = os_thread_cpu_ns(), cpu_ns, rss_bytes;
	struct segment *segment = NULL;

	segment_seal(b->builder, &segment, &b->err);
	segment_unref(segment);
	b->seal_ns += os_thread_cpu_ns() - start;
	os_self_usage(&cpu_ns, &rss_bytes);
	if (rss_bytes > b->rss_bytes)
		b->rss_bytes = rss_bytes;
	frames_sweep(b->frames, 0);
}

static void take(struct bench *b, const struct event *from)
{
	struct event e = *from;

	if (segment_is_full(b->builder, e.time_ns))
		seal(b);
	e.stack = STACK_NONE;
	if (e.nstack_frames)
		e.stack = segment_stack(b->builder, e.stack_frames, e.nstack_frames, NULL, NULL);
	segment_add(b->builder, &e);
	b->events++;
	b->stacks += e.nstack_frames > 0;
	b->frames_seen += e.nstack_frames;
}

static void take_all(struct bench *b)
{
	const struct event *e;
	bool ended;

	do {
		ended = atomic_load(&b->ended);
		while ((e = queue_peek(b->queue))) {
			take(b, e);
			queue_pop(b->queue);
		}
		if (!ended)
			os_sleep_ns(NS_PER_MS);
	} while (!ended);
	seal(b);
}

static int measure(struct bench *b, const char *path)
{
	static const struct needs none;
	struct source_config cfg = {.capture = {.file = path}};
	struct os_thread *thread = NULL;
	int rc = frames_new(&b->frames, &b->err);

	if (!rc)
		rc = processes_new(&b->processes, &b->err);
	if (!rc)
		rc = segment_builder_new(b->frames, b->processes, &b->builder, &b->err);
	b->queue = queue_new(QUEUE_BYTES);
	if (!rc && !b->queue)
		rc = err_memory(&b->err, "for this program");
	cfg.frames = b->frames;
	cfg.processes = b->processes;
	cfg.queue = b->queue;
	if (!rc)
		rc = etl_source.open(&cfg, &none, &b->source, &b->err);
	if (!rc)
		rc = os_thread_start("source", run_main, b, &thread, &b->err);
	if (!rc) {
		take_all(b);
		os_thread_join(thread);
		rc = b->rc;
	}
	return rc;
}

/* Add the record's bytes, as a payload holds them. */
static int count_bytes(void *ctx, const struct etw_record *record)
{
	*(uint64_t *)ctx += (record->nbytes + 7u) & ~7u;
	return 0;
}

/* What there is in it; not measured. */
static int count(const char *path, struct etl_counts *counts, uint64_t *nbytes, struct err *err)
{
	struct etl_file *file = NULL;
	int rc = etl_file_open(path, &file, err);

	if (!rc)
		rc = etl_file_run(file, count_bytes, nbytes, counts, err);
	etl_file_close(file);
	return rc;
}

int main(int argc, char **argv)
{
	bool as_json = argc == 3 && strcmp(argv[1], "--json") == 0;
	uint64_t start_ns, end_ns, rss_bytes, wall_ns, nbytes = 0;
	struct etl_counts counts = {0};
	struct bench b = {0};
	double seconds, sealing, mb;
	int rc;

	argv = os_args(argc, argv);
	if (argc != 2 && !as_json) {
		fprintf(stderr, "usage: bench_etl_source [--json] FILE\n");
		return 2;
	}
	os_self_usage(&start_ns, &rss_bytes);
	wall_ns = os_now_ns();
	rc = measure(&b, argv[argc - 1]);
	os_self_usage(&end_ns, &rss_bytes);
	wall_ns = os_now_ns() - wall_ns;
	if (!rc)
		rc = count(argv[argc - 1], &counts, &nbytes, &b.err);
	if (rc) {
		fprintf(stderr, "bench_etl_source: %s\n", b.err.text);
		return 1;
	}
	seconds = (double)(end_ns - start_ns) / 1e9;
	/* beside it, on the same CPUs: not part of reading */
	sealing = (double)b.seal_ns / 1e9;
	mb = (double)nbytes / MB;
	printf(as_json ? "{\"row\": \"etl source\", \"payload_mb_per_s\": %.0f, \"records_per_s\": "
			 "%.0f, "
			 "\"sealed_payload_mb_per_s\": %.0f, \"cpu_ms\": %.0f, \"seal_ms\": %.0f, "
			 "\"wall_ms\": %.0f, \"payload_mb\": %.1f, "
			 "\"records\": %" PRIu64 ", \"events\": %" PRIu64 ", \"stacks\": %" PRIu64
			 ", \"frames\": %" PRIu64 ", \"rss_kb\": %" PRIu64 "}\n"
		       : "etl source  payload mb per s %.0f  records per s %.0f  sealed payload mb "
			 "per s %.0f  cpu ms %.0f  seal ms %.0f  "
			 "wall ms %.0f  payload mb %.1f  records %" PRIu64 "  events %" PRIu64
			 "  stacks %" PRIu64 "  frames %" PRIu64 "  rss kb %" PRIu64 "\n",
	       mb / (seconds - sealing), (double)counts.nrecords / (seconds - sealing),
	       mb / seconds, seconds * 1e3, (double)b.seal_ns / 1e6, (double)wall_ns / 1e6, mb,
	       counts.nrecords, b.events, b.stacks, b.frames_seen, b.rss_bytes / 1024);
	return 0;
}
