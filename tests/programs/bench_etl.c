/*
 * How fast the file layer alone gives a trace's records, and in how much memory.
 *
 *	bench_etl FILE                one line: MB/s of expanded payload, records/s; best of 3
 *	bench_etl --json FILE         the same as one object
 *	bench_etl repeat FROM TO MB   make a longer trace of one: at least so much payload
 *
 * Seconds are of CPU time, as the machine may have other things to do. Resident memory is the
 * greatest that was seen after a pass.
 */
#include "base/os.h"
#include "source/etl/file.h"
#include "tests/support/etl_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPS = 3 };

#define SLOW_NS (4 * NS_PER_SEC)             /* what takes longer is not repeated */
#define MB 1000000.0

struct sums {
	uint64_t touched, nbytes;
};

/* Touch what every user would. */
static int touch(void *ctx, const struct etw_record *record)
{
	struct sums *sums = ctx;

	sums->touched += (uint64_t)record->ticks + record->guid.bytes[0];
	sums->nbytes += (record->nbytes + 7u) & ~7u;         /* as a payload holds them */
	return 0;
}

struct result {
	double open_ms, mb_per_s, records_per_s, payload_mb;
	uint64_t nrecords, rss_bytes, ndamaged;
};

static int measure(const char *path, struct result *out, struct err *err)
{
	struct etl_file *file = NULL;
	uint64_t start = os_now_ns(), best_ns = UINT64_MAX, ns = 0, cpu_ns, rss_bytes;
	struct etl_counts counts;
	struct sums sums = {0};
	int rc;

	rc = etl_file_open(path, &file, err);
	out->open_ms = (double)(os_now_ns() - start) / NS_PER_MS;
	for (int i = 0; i < REPS && !rc && ns < SLOW_NS; i++) {
		sums.nbytes = 0;
		os_self_usage(&start, &rss_bytes);
		rc = etl_file_run(file, touch, &sums, &counts, err);
		os_self_usage(&cpu_ns, &rss_bytes);
		ns = cpu_ns - start;
		best_ns = ns < best_ns ? ns : best_ns;
		out->rss_bytes = rss_bytes > out->rss_bytes ? rss_bytes : out->rss_bytes;
	}
	etl_file_close(file);
	if (rc)
		return rc;
	out->payload_mb = (double)sums.nbytes / MB;
	out->mb_per_s = out->payload_mb * NS_PER_SEC / (double)best_ns;
	out->records_per_s = (double)counts.nrecords * NS_PER_SEC / (double)best_ns;
	out->nrecords = counts.nrecords;
	out->ndamaged = counts.ndamaged;
	return 0;
}

static void print(const struct result *r, bool as_json)
{
	if (as_json)
		printf("{\"row\": \"etl walk\", \"payload_mb_per_s\": %.0f, \"records_per_s\": "
		       "%.0f, "
		       "\"payload_mb\": %.1f, \"records\": %" PRIu64 ", \"damaged\": %" PRIu64
		       ", \"open_ms\": %.2f, \"rss_kb\": %" PRIu64 "}\n",
		       r->mb_per_s, r->records_per_s, r->payload_mb, r->nrecords, r->ndamaged,
		       r->open_ms, r->rss_bytes / 1024);
	else
		printf("%-22s  payload mb per s %.0f  records per s %.0f  payload mb %.1f  records "
		       "%" PRIu64 "  damaged %" PRIu64 "  open ms %.2f  rss kb %" PRIu64 "\n",
		       "etl walk", r->mb_per_s, r->records_per_s, r->payload_mb, r->nrecords,
		       r->ndamaged, r->open_ms, r->rss_bytes / 1024);
}

int main(int argc, char **argv)
{
	bool as_json = argc == 3 && strcmp(argv[1], "--json") == 0;
	struct result result = {0};
	struct err err;
	int rc;

	argv = os_args(argc, argv);
	if (argc == 5 && strcmp(argv[1], "repeat") == 0) {
		rc = etl_repeat(argv[2], argv[3], strtoull(argv[4], NULL, 10) * (uint64_t)MB, &err);
	} else if (argc == 2 || as_json) {
		rc = measure(argv[argc - 1], &result, &err);
		if (!rc)
			print(&result, as_json);
	} else {
		fprintf(stderr, "usage: bench_etl [--json] FILE | bench_etl repeat FROM TO MB\n");
		return 2;
	}
	if (rc)
		fprintf(stderr, "bench_etl: %s\n", err.text);
	return rc ? 1 : 0;
}
