/*
 * A process that floods a recorder, within bounds:
 *
 *	flood_linux forks|threads|crowd|execs|code|maps|links N SECONDS
 *
 * N children in turn, eight at a time; N threads in turn, 64 at a time, each of which works a
 * little; the same with as many alive at once as the machine has numbers and memory for, less half
 * of them for others; N execs of itself; N functions of code that is made anew all the time, each
 * at an address of its own and 64 in a stack, with a line of /tmp/perf-PID.map for each, as a JIT
 * compiler writes them; N executable mappings, one after the other replaced again and again; or N
 * names of a file, hard links, which are mapped as code in turn, again and again. It ends when
 * SECONDS are over, whatever is left. Prints how many there were.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 8, THREADS = 64, WORK = 20000, PAGE = 4096, CHAIN = 64, N_MAX = 100000 };

static volatile uint64_t sink;
static volatile sig_atomic_t ended;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void work(void)
{
	unsigned i;

	for (i = 0; i < WORK; i++)
		sink = sink * 6364136223846793005u + 1;
}

static unsigned forks(unsigned n, double end_s)
{
	unsigned made = 0, alive = 0;

	while (made < n && now_s() < end_s) {
		pid_t pid = fork();

		if (pid == 0) {
			work();
			_exit(0);
		}
		made += pid > 0;
		alive += pid > 0;
		while (alive && (alive == CHILDREN || pid < 0) && wait(NULL) > 0)
			alive--;
	}
	while (wait(NULL) > 0)
		;
	return made;
}

static void *thread_main(void *unused)
{
	work();
	return unused;
}

static unsigned threads(unsigned n, double end_s)
{
	pthread_t ids[THREADS];
	unsigned made = 0, k, i;

	while (made < n && now_s() < end_s) {
		for (k = 0; k < THREADS && !pthread_create(&ids[k], NULL, thread_main, NULL); k++)
			;
		for (i = 0; i < k; i++)
			pthread_join(ids[i], NULL);
		made += k;
	}
	return made;
}

/* ---- a crowd: threads that wait for each other ----------------------------------------------- */

#define CROWD_STACK ((size_t)32 << 10)       /* two pages of it are touched */
#define CROWD_MAX 50000u

static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

static void *wait_main(void *unused)
{
	pthread_rwlock_rdlock(&gate);
	pthread_rwlock_unlock(&gate);
	work();
	return unused;
}

/* The number in a file; `none` when there is none ("max"). */
static unsigned long read_limit(const char *path, unsigned long none)
{
	FILE *f = fopen(path, "r");
	unsigned long n = none;

	if (f && fscanf(f, "%lu", &n) != 1)
		n = none;
	if (f)
		fclose(f);
	return n;
}

static unsigned long least(unsigned long a, unsigned long b)
{
	return a < b ? a : b;
}

/* Half of what is free: whoever else runs here must be able to fork. */
static unsigned room_for_threads(void)
{
	struct rlimit own = {RLIM_INFINITY, RLIM_INFINITY};
	unsigned long max = read_limit("/proc/sys/kernel/pid_max", 32768), running = 0;
	FILE *f = fopen("/proc/loadavg", "r");

	if (f && fscanf(f, "%*f %*f %*f %*u/%lu", &running) != 1)
		running = max / 2;
	if (f)
		fclose(f);
	max = least(max, read_limit("/proc/sys/kernel/threads-max", max));
	if (getrlimit(RLIMIT_NPROC, &own) == 0)
		max = least(max, (unsigned long)own.rlim_cur);
	max = least(max, read_limit("/sys/fs/cgroup/pids.max", max));
	max = max > running ? (max - running) / 2 : 0;
	/* 24 KB each of the kernel and the stack: an eighth of the memory. */
	max = least(max, (unsigned long)sysconf(_SC_PHYS_PAGES) / 8 *
				 (unsigned long)sysconf(_SC_PAGESIZE) / 24576);
	return (unsigned)least(max, CROWD_MAX);
}

static unsigned crowd(unsigned n, double end_s)
{
	unsigned room = room_for_threads(), made = 0, most = 0, k = 1, i;
	pthread_t *ids = calloc(room + 1, sizeof(*ids));
	char *stacks = mmap(NULL, (room + 1) * CROWD_STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	while (ids && stacks != MAP_FAILED && k && made < n && now_s() < end_s) {
		pthread_rwlock_wrlock(&gate);
		for (k = 0; k < room && made + k < n && now_s() < end_s; k++) {
			pthread_attr_setstack(&attr, stacks + k * CROWD_STACK, CROWD_STACK);
			if (pthread_create(&ids[k], &attr, wait_main, NULL))
				break;
		}
		pthread_rwlock_unlock(&gate);
		for (i = 0; i < k; i++)
			pthread_join(ids[i], NULL);
		made += k;
		most = k > most ? k : most;
	}
	fprintf(stderr, "crowd: %u alive at once at most, of room for %u\n", most, room);
	free(ids);
	return made;
}

/* Its own successor, with the number that is left; the end stays the same moment. */
static unsigned execs(char **argv, unsigned n, double end_s)
{
	char left[32], end[32];

	if (n == 0 || now_s() >= end_s)
		return n;
	snprintf(left, sizeof(left), "%u", n - 1);
	snprintf(end, sizeof(end), "@%.6f", end_s);
	execl("/proc/self/exe", argv[0], argv[1], left, end, argv[4] ? argv[4] : argv[2],
	      (char *)NULL);
	return n;
}

/* push rbp; mov rbp, rsp; call the next one, 32 bytes on; pop rbp; ret */
static const uint8_t call_next[] = {0x55, 0x48, 0x89, 0xe5, 0xe8, 23, 0, 0, 0, 0x5d, 0xc3};
/* mov ecx, 200000; dec ecx; jnz back; ret */
static const uint8_t spin[] = {0xb9, 0x40, 0x0d, 0x03, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

/* A page of functions that call one another; never unmapped, so that the next one is elsewhere. */
static void *make_chain(void)
{
	uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned i;

	if (page == MAP_FAILED)
		return NULL;
	for (i = 0; i + 1 < CHAIN; i++)
		memcpy(page + i * 32, call_next, sizeof(call_next));
	memcpy(page + i * 32, spin, sizeof(spin));
	return page;
}

static unsigned code(unsigned n, double end_s)
{
	char path[64];
	unsigned made = 0, i;
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	while (map && made < n && now_s() < end_s) {
		union { void *data; void (*call)(void); } chain = {make_chain()};

		if (!chain.data)
			break;
		for (i = 0; i < CHAIN; i++)
			fprintf(map, "%lx 20 made_%u\n",
				(unsigned long)(uintptr_t)chain.data + i * 32, made++);
		fflush(map);
		chain.call();
	}
	if (map)
		fclose(map);
	unlink(path);
	return made;
}

/* Every other page, so that the kernel does not merge them; at most half of vm.max_map_count. */
static unsigned maps(unsigned n, double end_s)
{
	unsigned made = 0, i;
	char *base;

	n = (unsigned)least(n, read_limit("/proc/sys/vm/max_map_count", 65530) / 4);
	base = mmap(NULL, (size_t)n * 2 * PAGE, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	while (base != MAP_FAILED && n && now_s() < end_s)
		for (i = 0; i < n; i++)
			made += mmap(base + (size_t)i * 2 * PAGE, PAGE, PROT_READ | PROT_EXEC,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
	return made;
}

/* Map another name of the file `first` as code. */
static bool map_link(const char *first, const char *name)
{
	int fd = link(first, name) == 0 || errno == EEXIST ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	void *code = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
						0);

	if (fd >= 0)
		close(fd);
	return code != MAP_FAILED && munmap(code, PAGE) == 0;
}

static void on_end(int number)
{
	ended = number;
}

/* In /tmp, where any user may make names; a file system may allow 65,000 for one file. */
static unsigned links(unsigned n, double end_s)
{
	char dir[] = "/tmp/flood-XXXXXX", first[64], name[80];
	static const char page[PAGE];
	unsigned made = 0, i = 0;
	bool has_room = mkdtemp(dir) != NULL;
	int fd;

	signal(SIGTERM, on_end);             /* what it made is removed */
	while (has_room && n && !ended && now_s() < end_s) {
		snprintf(first, sizeof(first), "%s/file%u", dir, i % n / 50000);
		snprintf(name, sizeof(name), "%s/%u", dir, i % n);
		fd = open(first, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
		if (fd >= 0) {
			has_room = write(fd, page, sizeof(page)) == (ssize_t)sizeof(page);
			close(fd);
		}
		has_room = has_room && map_link(first, name);
		made += has_room;
		i++;
	}
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/%u", dir, i);
		unlink(name);
		snprintf(name, sizeof(name), "%s/file%u", dir, i / 50000);
		unlink(name);
	}
	rmdir(dir);
	return made;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 3 ? (unsigned)atoi(argv[2]) : 0, made = 0;
	double end_s;

	if (argc < 4 || n > N_MAX) {
		fprintf(stderr,
			"usage: flood_linux forks|threads|crowd|execs|code|maps|links N "
			"SECONDS\n");
		return 2;
	}
	end_s = argv[3][0] == '@' ? atof(argv[3] + 1) : now_s() + atof(argv[3]);
	if (!strcmp(argv[1], "forks"))
		made = forks(n, end_s);
	else if (!strcmp(argv[1], "threads"))
		made = threads(n, end_s);
	else if (!strcmp(argv[1], "crowd"))
		made = crowd(n, end_s);
	else if (!strcmp(argv[1], "execs"))
		made = (unsigned)atoi(argv[4] ? argv[4] : argv[2]) - execs(argv, n, end_s);
	else if (!strcmp(argv[1], "code"))
		made = code(n, end_s);
	else if (!strcmp(argv[1], "maps"))
		made = maps(n, end_s);
	else if (!strcmp(argv[1], "links"))
		made = links(n, end_s);
	printf("%s %u\n", argv[1], made);
	return made ? 0 : 1;
}
