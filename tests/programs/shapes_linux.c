/*
 * Programs of awkward shapes, for stacks_linux.sh and names_linux.sh: whose right stacks are known.
 *
 *	shapes brief MS          spin for MS of CPU time in brief_spin(), then end
 *	shapes handler SECONDS   leaf_spin(), a leaf, interrupted by a signal whose handler_spin()
 *	                         takes about half of the time
 *	shapes calls SECONDS     main() has calls() call call_once(), which asks the kernel to read
 *	shapes deep N SECONDS    a thread that goes N times 2 KiB deep by deep_down(), spins there
 *	                         in deep_spin(), comes back to deep_main(), and so on
 *	shapes mappings N SECONDS  N executable mappings, one by one, then spin in brief_spin()
 *
 * The scripts build it by themselves, without frame pointers; brief_spin can be named otherwise:
 * gcc -DBRIEF_SPIN=other_spin.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef BRIEF_SPIN
#define BRIEF_SPIN brief_spin
#endif
#define KEPT __attribute__((noinline))

enum { TURNS = 100000, DEEP_FRAME = 2048, PAGE = 4096 };

/* What the work comes to; volatile, so that it is done. */
static volatile uint64_t sink;

static double now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void turns(unsigned n)
{
	uint64_t seed = sink;

	while (n--)
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	sink = seed;
}

KEPT static void BRIEF_SPIN(double cpu_s)
{
	while (now_s(CLOCK_PROCESS_CPUTIME_ID) < cpu_s)
		turns(TURNS);
}

/* ---- a handler over a leaf ------------------------------------------------------------------- */

KEPT static void handler_spin(void)
{
	turns(20 * TURNS);
}

static void on_alarm(int number)
{
	(void)number;
	handler_spin();
	sink++;                          /* no tail call */
}

KEPT static void leaf_spin(void)
{
	turns(100 * TURNS);
}

KEPT static void handler(double seconds)
{
	struct sigaction act = {.sa_handler = on_alarm};
	struct itimerval every = {{0, 1000}, {0, 1000}};
	double end = now_s(CLOCK_MONOTONIC) + seconds;

	sigaction(SIGPROF, &act, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	while (now_s(CLOCK_MONOTONIC) < end)
		leaf_spin();
}

/* ---- deep ------------------------------------------------------------------------------------ */

struct deep {
	unsigned levels;
	double seconds;
};

KEPT static void deep_spin(void)
{
	turns(30 * TURNS);
}

KEPT static uint64_t deep_down(unsigned levels)
{
	volatile uint8_t frame[DEEP_FRAME];
	uint64_t sum;

	frame[0] = (uint8_t)levels;
	if (levels)
		sum = deep_down(levels - 1);
	else
		deep_spin(), sum = sink;
	return sum + frame[0];
}

KEPT static void *deep_main(void *ctx)
{
	const struct deep *deep = ctx;
	double end = now_s(CLOCK_MONOTONIC) + deep->seconds;

	while (now_s(CLOCK_MONOTONIC) < end)
		sink += deep_down(deep->levels);
	return NULL;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static void mappings(unsigned n)
{
	char *at = mmap(NULL, ((size_t)n * 2 + 1) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	unsigned i;

	if (at == MAP_FAILED)
		exit(1);
	munmap(at, ((size_t)n * 2 + 1) * PAGE);
	/*
	 * From the top down, as the kernel places them by itself; a hole after each keeps them
	 * apart.
	 */
	for (i = n; i-- > 0;) {
		if (mmap(at + (size_t)i * 2 * PAGE, PAGE, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
			perror("mmap");
			exit(1);
		}
	}
}

/* ---- in the kernel --------------------------------------------------------------------------- */

KEPT static void call_once(int file, char *bytes, size_t n)
{
	sink += (uint64_t)pread(file, bytes, n, 0);
}

KEPT static void calls(double seconds)
{
	static char bytes[PAGE];
	int file = open("/proc/self/exe", O_RDONLY);
	unsigned i;

	while (now_s(CLOCK_PROCESS_CPUTIME_ID) < seconds) {
		for (i = 0; i < 100; i++)
			call_once(file, bytes, sizeof(bytes));
	}
	close(file);
}

int main(int argc, char **argv)
{
	const char *shape = argc > 2 ? argv[1] : "";
	double amount = argc > 2 ? atof(argv[argc - 1]) : 0;
	struct deep how_deep = {argc > 3 ? (unsigned)atoi(argv[2]) : 0, amount};
	pthread_t thread;

	if (!strcmp(shape, "brief")) {
		BRIEF_SPIN(amount / 1000);
	} else if (!strcmp(shape, "handler")) {
		handler(amount);
	} else if (!strcmp(shape, "calls")) {
		calls(amount);
	} else if (!strcmp(shape, "deep") && argc > 3) {
		if (pthread_create(&thread, NULL, deep_main, &how_deep))
			return 1;
		pthread_join(thread, NULL);
	} else if (!strcmp(shape, "mappings") && argc > 3) {
		mappings((unsigned)atoi(argv[2]));
		BRIEF_SPIN(amount);
	} else {
		fprintf(stderr, "usage: shapes brief MS | handler SECONDS | calls SECONDS | "
				"deep N SECONDS | mappings N SECONDS\n");
		return 2;
	}
	return 0;
}
