/*
 * What a system call and a switch between two threads cost, for tests/bench/probes.sh, which runs
 * it with and without a recorder beside it.
 *
 *	bench_probes_linux syscall|switch SECONDS [WORK]
 *
 * Prints nanoseconds of one: the least of many batches, of CPU time (switch: of both threads, of
 * one way between two on one CPU, which never rests: what the kernel does between them counts as
 * theirs. By the wall clock it was three times as much on a machine that others used). With WORK
 * each thread counts that far before each switch; the mean of all is printed, as not every one has
 * a stack, and their number.
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

static void count(void)
{
	volatile long i;

	for (i = 0; i < work; i++)
		;
}

static void *answers(void *arg)
{
	char c;

	while (read(there[0], &c, 1) == 1) {
		count();
		if (write(back[1], &c, 1) != 1)
			break;
	}
	return arg;
}

static double one_batch_of_switches(void)
{
	double begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	char c = 0;
	int i;

	for (i = 0; i < SWITCHES; i++) {
		count();
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			exit(1);
	}
	return (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / SWITCHES / 2;
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

int main(int argc, char **argv)
{
	double least = 1e18, sum = 0, end, ns;
	long batches = 0;
	int switches;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: bench_probes_linux syscall|switch SECONDS [WORK]\n");
		return 2;
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
