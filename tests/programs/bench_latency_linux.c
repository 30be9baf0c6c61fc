/*
 * Send SIGUSR2 to a recording process and wait for what it writes then; prints the milliseconds.
 *
 *	bench_latency_linux PID store FILE      until a new incident in the store FILE is complete
 *	bench_latency_linux PID files DIR NAME  until a new file NAME* is in DIR
 *
 * Looks every millisecond, for at most 30 s; exit 1 when nothing came. For tests/bench/run.sh.
 */
#include "base/os.h"
#include "store/store.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIVE_UP_NS (30 * NS_PER_SEC)

struct watch {
	const char *where, *prefix; /* prefix NULL: where is a store */
	struct store *store;
	uint64_t before;
};

static uint64_t files(const struct watch *w)
{
	DIR *dir = opendir(w->where);
	const struct dirent *entry;
	uint64_t n = 0;

	while (dir && (entry = readdir(dir)))
		n += strncmp(entry->d_name, w->prefix, strlen(w->prefix)) == 0;
	if (dir)
		closedir(dir);
	return n;
}

static uint64_t complete_id(const struct watch *w)
{
	struct incident_head head = {0};
	uint64_t id = 0;
	int64_t newest;

	if (!store_newest(w->store, &newest, NULL) && !store_head(w->store, newest, &head, NULL)) {
		if (head.state == INCIDENT_COMPLETE)
			id = (uint64_t)newest;
		incident_head_free(&head);
	}
	return id;
}

/* Grows when something new is there. */
static uint64_t look(const struct watch *w)
{
	return w->prefix ? files(w) : complete_id(w);
}

static int run(pid_t pid, struct watch *w, struct err *err)
{
	uint64_t start_ns;

	if (!w->prefix && store_open(w->where, STORE_READ, &w->store, err))
		return err->code;
	w->before = look(w);
	start_ns = os_now_ns();
	if (kill(pid, SIGUSR2))
		return err_os(err, "cannot signal process %d", (int)pid);
	while (look(w) <= w->before) {
		if (os_now_ns() - start_ns > GIVE_UP_NS)
			return err_set(err, ERR_NOT_FOUND, "nothing new in %s for 30 s", w->where);
		os_sleep_ns(NS_PER_MS);
	}
	printf("%.1f\n", (double)(os_now_ns() - start_ns) / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	bool of_store = argc == 4 && strcmp(argv[2], "store") == 0;
	bool of_files = argc == 5 && strcmp(argv[2], "files") == 0;
	int pid = argc > 1 ? atoi(argv[1]) : 0;
	struct watch w = {0};
	struct err err = {0};
	int rc;

	if (pid <= 1 || (!of_store && !of_files)) {
		fprintf(stderr, "usage: bench_latency_linux PID store FILE | PID files DIR NAME\n");
		return 2;
	}
	w.where = argv[3];
	w.prefix = of_files ? argv[4] : NULL;
	rc = run(pid, &w, &err);
	if (rc)
		fprintf(stderr, "bench_latency_linux: %s\n", err.text);
	store_close(w.store);
	return rc ? 1 : 0;
}
