/*
 * Allocations by three functions, with the truth about each:
 *
 *	heap_linux CALLS [threads|forks]     each function in a thread, or a process, of its own
 *	heap_linux CALLS pairs
 *
 * keep_some keeps one block of 4; grow keeps one of which it doubles the size until 64 KB, and
 * begins anew; come_and_go frees all. They rest often. Prints what each has allocated and has not
 * freed, in bytes: {"function": "keep_some", "allocated": N, "in_use": N} a line. Waits for its
 * input to end. With pairs it prints the CPU time in ns of a malloc and its free, of 16 to 1,039
 * bytes and of 8 KB: "9.2 15.5". Of ten parts the quickest counts, as the load of others only adds.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct work {
	const char *name;
	void (*what)(struct work *w, long calls);
	long calls;
	uint64_t allocated, in_use, random, ncalls;
	void **kept;                         /* a list through the blocks' first bytes */
};

static void rest_after(struct work *w, uint64_t calls)
{
	static const struct timespec rest = {.tv_nsec = 10000000};

	if (w->ncalls++ % calls == 0)
		nanosleep(&rest, NULL);
}

static size_t any_size(struct work *w)
{
	rest_after(w, 10000);
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return 16 + (w->random >> 33) % 1000;
}

static void keep(struct work *w, void **p)
{
	*p = w->kept;
	w->kept = p;
}

__attribute__((noinline)) void keep_some(struct work *w, long calls)
{
	for (long i = 0; i < calls; i++) {
		size_t n = any_size(w);
		void **p = malloc(n);

		w->allocated += n;
		if (i % 4) {
			free(p);
			continue;
		}
		w->in_use += n;
		keep(w, p);
	}
}

__attribute__((noinline)) void grow(struct work *w, long calls)
{
	size_t n = 0;
	void **p = NULL;

	for (long i = 0; i < calls; i++) {
		n = p ? n * 2 : 64;
		p = realloc(p, n);
		w->allocated += n;
		if (n < 65536)
			continue;
		w->in_use += n;
		keep(w, p);
		p = NULL;
		rest_after(w, 50);
		i += 100;                    /* fewer of them, as they are large */
	}
	free(p);
}

__attribute__((noinline)) void come_and_go(struct work *w, long calls)
{
	for (long i = 0; i < calls; i++) {
		size_t n = any_size(w);
		void *volatile p = i % 2 ? calloc(1, n) : aligned_alloc(64, n);

		w->allocated += n;
		free(p);
	}
}

static void *run(void *ctx)
{
	struct work *w = ctx;

	w->what(w, w->calls);
	return NULL;
}

static double pair_ns(long calls, size_t least, size_t more, uint32_t random)
{
	struct timespec from, to;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (long i = 0; i < calls; i++) {
		volatile char *p;

		random = random * 1664525 + 1013904223;
		p = malloc(least + (random >> 16) % more);
		*p = 1;
		free((void *)p);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
	       (double)calls;
}

static double quickest_pair_ns(long calls, size_t least, size_t more)
{
	double quickest_ns = 1e9, ns;

	for (uint32_t i = 0; i < 10; i++) {
		ns = pair_ns(calls / 10, least, more, i);
		quickest_ns = ns < quickest_ns ? ns : quickest_ns;
	}
	return quickest_ns;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 0;
	struct work all[] = {{.name = "keep_some", .what = keep_some, .calls = calls / 2},
			     {.name = "grow", .what = grow, .calls = calls / 10},
			     {.name = "come_and_go", .what = come_and_go, .calls = calls * 4 / 10}};
	int threads = argc > 2 && strcmp(argv[2], "threads") == 0;
	int forks = argc > 2 && strcmp(argv[2], "forks") == 0;
	int which = -1;
	pthread_t ids[3];

	if (argc > 2 && strcmp(argv[2], "pairs") == 0) {
		double small_ns = quickest_pair_ns(calls, 16, 1024);

		printf("%.1f %.1f\n", small_ns, quickest_pair_ns(calls / 4, 8192, 1));
		return 0;
	}
	/* What a recorder reads when it sees a program for the first time. */
	come_and_go(&(struct work){.random = 1}, 3000);
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	for (int i = 0; i < 3 && (!forks || which < 0); i++) {
		all[i].random = (uint64_t)i + 1;
		if (forks && fork() != 0)
			continue;
		which = i;
		if (!threads)
			run(&all[i]);
		else
			pthread_create(&ids[i], NULL, run, &all[i]);
	}
	for (int i = 0; i < 3; i++) {
		if (forks && i != which)
			continue;
		if (threads)
			pthread_join(ids[i], NULL);
		printf("{\"function\": \"%s\", \"allocated\": %llu, \"in_use\": %llu}\n",
		       all[i].name, (unsigned long long)all[i].allocated,
		       (unsigned long long)all[i].in_use);
	}
	fflush(stdout);
	while (forks && which < 0 && wait(NULL) > 0)
		;
	while (getchar() != EOF)
		;
	return 0;
}
