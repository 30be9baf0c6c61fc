/*
 * A program whose name changes all the time, and whose stacks say which one it had: each sample of
 * it can be checked.
 *
 *	ln hop_linux a0; ln hop_linux a1; ...; ./a0 SECONDS
 *
 * As ./a3 it spins for some ms in spin_3 and then becomes ./a4 by exec, the last one ./a0. Before,
 * it starts a child now and then that does the same once under the next name and ends, so that
 * process ids are used up and reused.
 *
 * Where HOP_LOG names a file, each process appends a line "PID NS NAME WHAT" when it begins, is
 * about to leave its name, has the next one, and ends; NS is of CLOCK_MONOTONIC.
 * tests/support/names_had.awk compares that with samples.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>

#define KEPT __attribute__((noinline))
#define SPIN_NS 15000000

enum { NAMES = 10, EACH_CHILD = 4 };

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static volatile unsigned sink;

/* No call in it: every sample of it is in this function, or in the clock's. */
#define SPIN(k) \
	KEPT static void spin_##k(long long end_ns) \
	{ \
		while (now_ns() < end_ns) \
			for (unsigned i = 0; i < 20000; i++) \
				sink = sink * 1103515245u + 12345u + k; \
		sink++; \
	}
SPIN(0) SPIN(1) SPIN(2) SPIN(3) SPIN(4) SPIN(5) SPIN(6) SPIN(7) SPIN(8) SPIN(9)

static void (*const spins[NAMES])(long long end_ns) = {
	spin_0, spin_1, spin_2, spin_3, spin_4, spin_5, spin_6, spin_7, spin_8, spin_9,
};

static void note(const char *path, const char *what)
{
	const char *log = getenv("HOP_LOG"), *slash = strrchr(path, '/');
	int fd = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%d %lld %s %s\n", (int)getpid(), now_ns(), slash ? slash + 1 : path, what);
	close(fd);
}

static void become(char *path, char digit, char *end, char *turn)
{
	char *args[] = {path, end, turn, NULL};

	note(path, "leaves");
	path[strlen(path) - 1] = digit;
	execv(path, args);
	perror(path);
	_exit(1);
}

int main(int argc, char **argv)
{
	size_t n = strlen(argv[0]);
	int name = n ? argv[0][n - 1] - '0' : -1;
	long turn = argc > 2 ? atol(argv[2]) : 0;
	long long end_ns;
	char end[32], next[24], digit;

	if (argc < 2 || name < 0 || name >= NAMES) {
		fprintf(stderr, "usage: ./x0 SECONDS, where x0 to x9 are links to this program\n");
		return 2;
	}
	/* The first one gets seconds; those that it becomes get the time. */
	end_ns = turn ? atoll(argv[1]) : now_ns() + (long long)(atof(argv[1]) * 1e9);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	note(argv[0], turn ? "has" : "begins");
	if (turn >= 0 && turn % EACH_CHILD == 1 && fork() == 0) {
		turn = -1;
		note(argv[0], "begins");
	}
	spins[name](now_ns() + SPIN_NS);
	if (turn < -1 || now_ns() >= end_ns) {
		note(argv[0], "ends");
		return 0;
	}
	digit = (char)('0' + (name + 1) % NAMES);
	snprintf(end, sizeof(end), "%lld", end_ns);
	snprintf(next, sizeof(next), "%ld", turn < 0 ? turn - 1 : turn + 1);
	become(argv[0], digit, end, next);
	return 1;
}
