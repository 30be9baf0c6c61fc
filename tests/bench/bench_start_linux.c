/*
 * bench_start [--json] [--dir DIR] RECORDER: how soon it records among 1,000 processes that sleep,
 * with 50 mappings each.
 *
 * They are made first and ended afterwards; if this program ends, they do. `recorder collect`
 * starts RUNS times, and records when it says so on stderr. Beside its CPU time until then stands
 * what this program needs, on one thread, to read the same of /proc: of each process stat, cgroup,
 * executable mappings, the link to its program and the names of several threads. later_cpu_ms is
 * what it uses in the second after that, in which it reads kallsyms, too: kallsyms_cpu_ms here.
 * Median of the runs, and the spread from the least to the most. Text to stdout, with --json to
 * stderr and an object to stdout.
 */
#include "base/os.h"
#include "source/host/maps.h"
#include "source/host/proc_pid_linux.h"
#include "tests/support/bench_rows.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 1000, MAPPINGS = 50, RUNS = 5 };

#define LATER_NS NS_PER_SEC

static pid_t pids[PROCESSES];
static double wall_ms[RUNS], cpu_ms[RUNS], later_ms[RUNS], proc_ms[RUNS], beyond_ms[RUNS];
static double kallsyms_ms[RUNS];

/* /proc/PATH. returns  its lines */
static unsigned read_file(const char *path)
{
	struct buf text = {0};
	char full[100];
	unsigned lines = 0;
	const char *at;

	snprintf(full, sizeof(full), "/proc/%s", path);
	os_load(full, (size_t)64 << 20, &text, NULL);
	for (at = buf_text(&text); (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	buf_free(&text);
	return lines;
}

static bool read_thread(void *ctx, uint32_t tid)
{
	char path[60];

	snprintf(path, sizeof(path), "%u/task/%u/comm", *(uint32_t *)ctx, tid);
	read_file(path);
	return true;
}

static bool read_mapping(void *ctx, const struct maps_line *l)
{
	(void)ctx;
	(void)l;
	return true;
}

static bool read_process(void *ctx, uint32_t pid)
{
	char path[60], target[4096];
	struct proc_stat stat;
	uint64_t start_ns;

	(void)ctx;
	if (!proc_pid_stat(pid, &stat, &start_ns) || !proc_pid_exe(pid, target, sizeof(target)))
		return true;                 /* it is of the kernel */
	snprintf(path, sizeof(path), "%u/cgroup", pid);
	read_file(path);
	proc_pid_code(pid, SIZE_MAX, read_mapping, NULL);
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	if (stat.threads > 1)
		proc_each(path, read_thread, &pid);
	return true;
}

static void read_proc(unsigned run)
{
	uint64_t start_ns = os_thread_cpu_ns(), between_ns;

	proc_each("/proc", read_process, NULL);
	between_ns = os_thread_cpu_ns();
	read_file("kallsyms");
	proc_ms[run] = (double)(between_ns - start_ns) / 1e6;
	kallsyms_ms[run] = (double)(os_thread_cpu_ns() - between_ns) / 1e6;
}

/* Pages of this program, which no neighbour has the same rights as, up to 50 mappings in all. */
static void be_one(void)
{
	unsigned have = read_file("self/maps"), i;
	int fd = open("/proc/self/exe", O_RDONLY);
	char *at;

	at = mmap(NULL, MAPPINGS * 8192u, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		  -1, 0);
	for (i = 0; at != MAP_FAILED && have + 2 * i + 1 < MAPPINGS; i++)
		mmap(at + i * 8192, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC,
		     MAP_PRIVATE | MAP_FIXED, fd, 4096 * (off_t)(i % 8));
	close(fd);
}

static bool make_processes(void)
{
	const pid_t parent = getpid();
	char byte;
	int fds[2];
	unsigned i;

	if (pipe(fds))
		return false;
	for (i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			return false;
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_one();
		if (getppid() != parent || write(fds[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	for (i = 0; i < PROCESSES && read(fds[0], &byte, 1) == 1; i++)
		;
	close(fds[0]);
	return i == PROCESSES;
}

static void end_processes(void)
{
	unsigned i;

	for (i = 0; i < PROCESSES && pids[i] > 0; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

/* Of all its threads, also of those that have ended. */
static double cpu_of(pid_t pid)
{
	struct timespec t = {0};
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) == 0)
		clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool start_once(const char *recorder, const char *dir, unsigned run)
{
	uint64_t start_ns = os_now_ns();
	bool begun = false;
	char line[1024], store[600];
	int fds[2];
	FILE *f;
	pid_t pid;

	snprintf(store, sizeof(store), "%s/start.db", dir);
	if (pipe(fds) || (pid = fork()) < 0)
		return false;
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		execl(recorder, recorder, "collect", "--store", store, "--max-cpu-percent", "0",
		      NULL);
		_exit(127);
	}
	close(fds[1]);
	f = fdopen(fds[0], "r");
	while (f && !begun && fgets(line, sizeof(line), f))
		begun = strstr(line, "Z recording ") != NULL;
	wall_ms[run] = (double)(os_now_ns() - start_ns) / 1e6;
	cpu_ms[run] = cpu_of(pid);
	os_sleep_ns(LATER_NS);
	later_ms[run] = cpu_of(pid) - cpu_ms[run];
	read_proc(run);
	beyond_ms[run] = cpu_ms[run] - proc_ms[run];
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (f)
		fclose(f);
	return begun;
}

static int bench(const char *recorder, const char *dir, bool json, struct err *err)
{
	bool ok = make_processes();
	struct row r;
	unsigned i;

	for (i = 0; ok && i < RUNS; i++)
		ok = start_once(recorder, dir, i);
	end_processes();
	if (!ok)
		return err_set(err, ERR_IO, "no 1,000 processes, or %s does not record", recorder);
	row_open(&r, json, "start");
	row_num(&r, "processes", PROCESSES);
	row_num(&r, "mappings", PROCESSES * MAPPINGS);
	row_most(&r, "recording_ms", row_median(wall_ms, RUNS), 150);
	row_num(&r, "spread_ms", wall_ms[RUNS - 1] - wall_ms[0]);
	row_num(&r, "cpu_ms", row_median(cpu_ms, RUNS));
	row_num(&r, "proc_cpu_ms", row_median(proc_ms, RUNS));
	row_most(&r, "beyond_proc_cpu_ms", row_median(beyond_ms, RUNS), 20);
	row_num(&r, "later_cpu_ms", row_median(later_ms, RUNS));
	row_num(&r, "kallsyms_cpu_ms", row_median(kallsyms_ms, RUNS));
	row_close(&r);
	return 0;
}

int main(int argc, char **argv)
{
	const char *dir = ".";
	struct err err = {0};
	bool json = false;
	int rc;

	for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
		json |= !strcmp(argv[1], "--json");
		if (!strcmp(argv[1], "--dir") && argc > 2) {
			dir = argv[2];
			argc--, argv++;
		}
	}
	if (argc != 2) {
		fprintf(stderr, "usage: bench_start [--json] [--dir DIR] RECORDER\n");
		return 2;
	}
	rc = bench(argv[1], dir, json, &err);
	if (rc)
		fprintf(stderr, "bench_start: %s\n", err.text);
	return rc != 0;
}
