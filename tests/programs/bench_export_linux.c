/*
 * What `recorder export` costs as a whole, store to file: one row a format; and `recorder show`.
 *
 *	bench_export_linux [--json] RECORDER STORE DIR [FORMAT...]
 *
 * Exports incident 1 of STORE into DIR (removed again) in every format, or in those named; "show"
 * is among them. cpu_ms is user and system time, max_rss_mb the most memory that was resident; both
 * are the kernel's account of the process (wait4(2)). The best of 3, of 1 when it takes over a
 * second. The first row is a file without samples: what loading alone costs. bench_pipeline --keep
 * leaves such a store.
 */
#include "base/os.h"
#include "export/export.h"
#include "tests/support/bench_rows.h"
#include "tests/support/bench_run_linux.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { REPS = 3 };

#define SLOW_MS 2000.0                       /* once is enough */

struct bench {
	bool json;
	char *recorder, *store, *dir;
};

/* file: what the command writes, removed again. */
static int bench_command(const struct bench *b, const char *name, char *const *args,
			 const char *file, struct err *err)
{
	struct bench_cost best = {0}, cost = {0};
	struct stat wrote;
	double file_mb;
	struct row row;
	int rep, rc = 0;

	for (rep = 0; !rc && rep < REPS && (!rep || best.wall_ms < SLOW_MS); rep++) {
		rc = bench_run(args, &cost, err);
		if (!rc && (!rep || cost.cpu_ms < best.cpu_ms))
			best = cost;
	}
	file_mb = stat(file, &wrote) ? 0 : (double)wrote.st_size / 1e6;
	os_remove(file, NULL);
	if (rc)
		return rc;
	row_open(&row, b->json, name);
	row_num(&row, "cpu_ms", best.cpu_ms);
	row_num(&row, "wall_ms", best.wall_ms);
	row_num(&row, "max_rss_mb", best.rss_mb);
	row_num(&row, "file_mb", file_mb);
	row_num(&row, "reps", rep);
	row_close(&row);
	return 0;
}

static int bench_format(const struct bench *b, const char *name, const char *format,
			struct err *err)
{
	char path[600], format_text[64];
	char export[] = "export", store[] = "--store", id[] = "--id", one[] = "1",
	     as[] = "--format", output[] = "-o", force[] = "--force";
	char *args[] = {b->recorder, export, store,  b->store, as,    format_text,
			id,	     one,    output, path,     force, NULL};

	snprintf(path, sizeof(path), "%s/bench.out", b->dir);
	snprintf(format_text, sizeof(format_text), "%s", format);
	return bench_command(b, name, args, path, err);
}

static int bench_show(const struct bench *b, struct err *err)
{
	char show[] = "show", store[] = "--store", one[] = "1";
	char *args[] = {b->recorder, show, one, store, b->store, NULL};

	return bench_command(b, "show", args, "", err);
}

static bool wanted(const char *format, char **names, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (strcmp(names[i], format) == 0)
			return true;
	}
	return n == 0;
}

int main(int argc, char **argv)
{
	struct bench b = {0};
	struct err err = {0};
	char name[64];
	size_t i;
	int rc;

	if (argc > 1 && strcmp(argv[1], "--json") == 0) {
		b.json = true;
		argc--;
		argv++;
	}
	if (argc < 4) {
		fprintf(stderr,
			"usage: bench_export_linux [--json] RECORDER STORE DIR [FORMAT...]\n");
		return 2;
	}
	b.recorder = argv[1];
	b.store = argv[2];
	b.dir = argv[3];
	rc = bench_format(&b, "load for an export", "counters-csv", &err);
	if (!rc && wanted("show", argv + 4, argc - 4))
		rc = bench_show(&b, &err);
	for (i = 0; !rc && exporters[i]; i++) {
		if (!wanted(exporters[i]->name, argv + 4, argc - 4))
			continue;
		snprintf(name, sizeof(name), "write %s", exporters[i]->name);
		rc = bench_format(&b, name, exporters[i]->name, &err);
	}
	if (rc)
		fprintf(stderr, "bench_export_linux: %s\n", err.text);
	return rc ? 1 : 0;
}
