/*
 * What `recorder export` costs as a whole, store to file: one row a format.
 *
 *	bench_export_linux [--json] RECORDER STORE DIR [FORMAT...]
 *
 * Exports incident 1 of STORE into DIR (removed again) in every format, or in those named. cpu_ms
 * is user and system time, max_rss_mb the most memory that was resident; both are the kernel's
 * account of the process (wait4(2)). The best of 3, of 1 when it takes over 2 s. The first row is a
 * file without samples: what loading alone costs. bench_pipeline --keep leaves such a store.
 */
#include "base/os.h"
#include "export/export.h"
#include "tests/support/bench_rows.h"

#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPS = 3 };

#define SLOW_NS (2 * NS_PER_SEC)

struct bench {
	bool json;
	char *recorder, *store, *dir;
};

struct cost {
	double wall_ns, cpu_ms, rss_mb, file_mb;
};

static double ms_of(const struct timeval *t)
{
	return (double)t->tv_sec * 1e3 + (double)t->tv_usec / 1e3;
}

static int run(char *const *args, struct cost *out, struct err *err)
{
	extern char **environ;
	uint64_t start_ns = os_now_ns();
	struct rusage use;
	pid_t pid;
	int status;

	/* Not fork(): the child would begin with what is resident here. */
	if (posix_spawn(&pid, args[0], NULL, NULL, args, environ))
		return err_set(err, ERR_NOT_FOUND, "cannot start %s", args[0]);
	if (wait4(pid, &status, 0, &use) != pid)
		return err_os(err, "cannot wait for %s", args[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(err, ERR_IO, "%s %s %s failed", args[0], args[1], args[5]);
	out->wall_ns = (double)(os_now_ns() - start_ns);
	out->cpu_ms = ms_of(&use.ru_utime) + ms_of(&use.ru_stime);
	out->rss_mb = (double)use.ru_maxrss / 1024;
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
	struct cost best = {0}, cost = {0};
	struct stat file;
	struct row row;
	int rep, rc = 0;

	snprintf(path, sizeof(path), "%s/bench.out", b->dir);
	snprintf(format_text, sizeof(format_text), "%s", format);
	for (rep = 0; !rc && rep < REPS && (!rep || best.wall_ns < (double)SLOW_NS); rep++) {
		rc = run(args, &cost, err);
		if (!rc && (!rep || cost.cpu_ms < best.cpu_ms))
			best = cost;
	}
	best.file_mb = stat(path, &file) ? 0 : (double)file.st_size / 1e6;
	os_remove(path, NULL);
	if (rc)
		return rc;
	row_open(&row, b->json, name);
	row_num(&row, "cpu_ms", best.cpu_ms);
	row_num(&row, "wall_ms", best.wall_ns / 1e6);
	row_num(&row, "max_rss_mb", best.rss_mb);
	row_num(&row, "file_mb", best.file_mb);
	row_num(&row, "reps", rep);
	row_close(&row);
	return 0;
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
