/*
 * What a system call and a switch between two threads cost, for tests/bench/probes.sh, which runs
 * it with and without a recorder beside it; and what an interrupt does, for compare.py.
 *
 *	bench_probes_linux syscall|switch SECONDS [WORK]
 *	bench_probes_linux interrupt SECONDS DEPTH
 *
 * Prints nanoseconds of one: the least of many batches, of CPU time (switch: of both threads, of
 * one way between two on one CPU, which never rests: what the kernel does between them counts as
 * theirs. By the wall clock it was three times as much on a machine that others used). With WORK
 * each thread counts that far before each switch; the mean of all is printed, as not every one has
 * a stack, and their number. What the counting takes is not in it: its median in each batch, as
 * it varies by more than what a recorder adds.
 *
 * An interrupt is seen by a loop that reads the clock: the median of the times in which it did not,
 * with DEPTH bytes of stack above it, and their number in a second of CPU time. At 4,999 samples a
 * second nearly all of them are samples: the kernel has 100 to 1,000 others.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 20000, SWITCHES = 200 };

static double clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double one_batch_of_calls(void)
{
	double begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int i;

	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	return (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / CALLS;
}

static int there[2], back[2];
static long work;

struct counted {
	int ns[SWITCHES], n;
};
static struct counted of_writer, of_reader;      /* in this batch */

static void count(struct counted *to)
{
	double begin;
	volatile long i;

	if (!work)
		return;
	begin = clock_ns(CLOCK_MONOTONIC);
	for (i = 0; i < work; i++)
		;
	if (to->n < SWITCHES)
		to->ns[to->n++] = (int)(clock_ns(CLOCK_MONOTONIC) - begin);
}

static int is_less(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int median_ns(struct counted *of)
{
	int ns;

	qsort(of->ns, (size_t)of->n, sizeof(*of->ns), is_less);
	ns = of->n ? of->ns[of->n / 2] : 0;
	of->n = 0;
	return ns;
}

static void *answers(void *arg)
{
	char c;

	while (read(there[0], &c, 1) == 1) {
		count(&of_reader);
		if (write(back[1], &c, 1) != 1)
			break;
	}
	return arg;
}

static double one_batch_of_switches(void)
{
	double begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID), ns;
	char c = 0;
	int i;

	for (i = 0; i < SWITCHES; i++) {
		count(&of_writer);
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			exit(1);
	}
	ns = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / SWITCHES / 2;
	return ns - (median_ns(&of_writer) + median_ns(&of_reader)) / 2.0;
}

static void begin_switches(void)
{
	pthread_t thread;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, answers, NULL))
		exit(1);
}

enum { GAPS = 1 << 20, GAP_NS = 600, GAP_MOST_NS = 100000 };

static void watch_interrupts(double seconds, size_t depth)
{
	static int gaps[GAPS];
	volatile char stack[depth];
	double now = clock_ns(CLOCK_MONOTONIC), before = now, end = now + seconds * 1e9;
	double used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int n = 0;

	memset((char *)stack, 1, depth);
	while (now < end && n < GAPS) {
		now = clock_ns(CLOCK_MONOTONIC);
		if (now - before > GAP_NS && now - before < GAP_MOST_NS)
			gaps[n++] = (int)(now - before);
		before = now;
	}
	qsort(gaps, (size_t)n, sizeof(*gaps), is_less);
	used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
	printf("%d %.0f\n", n ? gaps[n / 2] : 0, n / used * 1e9);
}

int main(int argc, char **argv)
{
	double least = 1e18, sum = 0, end, ns;
	long batches = 0;
	int switches;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: bench_probes_linux syscall|switch SECONDS [WORK]\n"
			"       bench_probes_linux interrupt SECONDS DEPTH\n");
		return 2;
	}
	if (argc == 4 && strcmp(argv[1], "interrupt") == 0) {
		watch_interrupts(atof(argv[2]), (size_t)atol(argv[3]));
		return 0;
	}
	switches = strcmp(argv[1], "switch") == 0;
	work = argc == 4 ? atol(argv[3]) : 0;
	if (switches)
		begin_switches();
	end = clock_ns(CLOCK_MONOTONIC) + atof(argv[2]) * 1e9;
	while (clock_ns(CLOCK_MONOTONIC) < end) {
		ns = switches ? one_batch_of_switches() : one_batch_of_calls();
		least = ns < least ? ns : least;
		sum += ns;
		batches++;
	}
	if (work)
		printf("%.0f %ld\n", sum / (double)batches, batches * SWITCHES * 2);
	else
		printf("%.0f\n", least);
	return 0;
}
