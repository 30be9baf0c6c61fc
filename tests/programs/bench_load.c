/*
 * What reading an incident back from a store costs, in CPU time: that of the process, its threads
 * included, the least of several times.
 *
 *	bench_load STORE ID [REPS [FORMAT]]
 *
 * With a format each repetition also exports in it, to nowhere. To compare two builds, let theirs
 * run by turns: the machine's caches and clock are then the same for both.
 */
#include "base/os.h"
#include "export/export.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct least {
	uint64_t load_cpu_ns, load_ns, export_cpu_ns;
	uint32_t nsamples;
};

static void keep_least(uint64_t *least, uint64_t now, uint64_t before)
{
	if (now - before < *least)
		*least = now - before;
}

static int export(const struct incident *in, const struct exporter *x, struct err *err)
{
	const struct export_options options = {
		.annotate = true, .ids = true, .file_name = "bench.out"};
	struct out *out = NULL;
	int rc = out_open("/dev/null", true, &out, err);

	if (rc)
		return rc;
	rc = x->write(in, &options, out, err);
	if (!rc)
		return out_close(out, err);
	out_abandon(out);
	return rc;
}

static int once(const char *path, int64_t id, const struct exporter *x, struct least *least,
		struct err *err)
{
	uint64_t start_ns = os_now_ns(), before_ns, loaded_ns, exported_ns, rss_bytes;
	struct incident in = {0};
	struct store *s = NULL;
	int rc;

	os_self_usage(&before_ns, &rss_bytes);
	rc = store_open(path, STORE_READ, &s, err);
	if (!rc)
		rc = store_load(s, id, &in, err);
	os_self_usage(&loaded_ns, &rss_bytes);
	keep_least(&least->load_cpu_ns, loaded_ns, before_ns);
	keep_least(&least->load_ns, os_now_ns(), start_ns);
	store_close(s);
	os_self_usage(&loaded_ns, &rss_bytes);
	if (!rc && x)
		rc = export(&in, x, err);
	os_self_usage(&exported_ns, &rss_bytes);
	keep_least(&least->export_cpu_ns, exported_ns, loaded_ns);
	least->nsamples = in.nsamples;
	incident_free(&in);
	return rc;
}

int main(int argc, char **argv)
{
	const struct exporter *x = argc > 4 ? exporter_by_name(argv[4]) : NULL;
	struct least least = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0};
	int reps = argc > 3 ? atoi(argv[3]) : 10, rc = 0;
	struct err err = {0};

	if (argc < 3 || reps < 1 || (argc > 4 && !x)) {
		fprintf(stderr, "usage: bench_load STORE ID [REPS [FORMAT]]\n");
		return 2;
	}
	while (!rc && reps--)
		rc = once(argv[1], atoll(argv[2]), x, &least, &err);
	if (rc) {
		fprintf(stderr, "bench_load: %s\n", err.text);
		return 1;
	}
	printf("samples %" PRIu32 "  load cpu ms %.1f  wall ms %.1f", least.nsamples,
	       (double)least.load_cpu_ns / 1e6, (double)least.load_ns / 1e6);
	if (x)
		printf("  export %s cpu ms %.1f", x->name, (double)least.export_cpu_ns / 1e6);
	printf("\n");
	return 0;
}
