/*
 * Memory that grows by two functions 70 : 30, and a third that allocates as much as both and frees
 * it again, in SECONDS:
 *
 *	grow_linux HOW MB SECONDS
 *
 * HOW is small: blocks of 200 bytes; large: of 300 KB, each a mapping of its own; huge: of 4 MB,
 * aligned, with huge pages; threads: small ones, in one thread for each function; fork: small ones,
 * in a child. Prints "ready", and at the end waits for its input to end.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEPS 100

static size_t block = 200;
static int huge;

/* One block, touched. */
static inline __attribute__((always_inline)) void *get(void)
{
	void *p = NULL;

	if (!huge)
		p = malloc(block);
	else if (posix_memalign(&p, 2 << 20, block) == 0)
		madvise(p, block, MADV_HUGEPAGE);
	if (!p)
		exit(1);
	memset(p, 1, block);
	return p;
}

/* Blocks for these bytes, kept in a list, so that nobody may leave them out. */
struct work {
	void (*what)(struct work *w, size_t bytes);
	size_t bytes, owed;
	double seconds;
};

static void wait_a_step(double seconds)
{
	struct timespec t = {.tv_sec = (time_t)(seconds / STEPS)};

	t.tv_nsec = (long)((seconds / STEPS - (double)t.tv_sec) * 1e9);
	nanosleep(&t, NULL);
}

static void *volatile kept;

__attribute__((noinline)) void grow_seventy(struct work *w, size_t bytes)
{
	for (w->owed += bytes; w->owed >= block; w->owed -= block) {
		void **p = get();

		*p = kept;
		kept = p;
	}
}

__attribute__((noinline)) void grow_thirty(struct work *w, size_t bytes)
{
	for (w->owed += bytes; w->owed >= block; w->owed -= block) {
		void **p = get();

		*p = kept;
		kept = p;
	}
}

__attribute__((noinline)) void come_and_go(struct work *w, size_t bytes)
{
	size_t most = 3 << 20;

	for (w->owed += huge ? bytes : 0; w->owed >= block; w->owed -= block)
		free(get());
	for (size_t n = 0; !huge && n < bytes; n += most) {
		char *p = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		memset(p, 1, most);
		munmap(p, most);
	}
}

static void *work(void *ctx)
{
	struct work *w = ctx;

	for (int i = 0; i < STEPS; i++) {
		w->what(w, w->bytes / STEPS);
		wait_a_step(w->seconds);
	}
	return NULL;
}

static void grow(const char *how, size_t bytes, double seconds)
{
	struct work all[] = {{grow_seventy, bytes * 7 / 10, 0, seconds},
			     {grow_thirty, bytes * 3 / 10, 0, seconds},
			     {come_and_go, bytes, 0, seconds}};
	pthread_t threads[3];

	if (strcmp(how, "threads") != 0) {
		for (int step = 0; step < STEPS; step++) {
			for (int i = 0; i < 3; i++)
				all[i].what(&all[i], all[i].bytes / STEPS);
			wait_a_step(seconds);
		}
		return;
	}
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, &all[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[1] : "";
	size_t bytes = argc > 3 ? (size_t)atol(argv[2]) << 20 : 0;
	int is_child = strcmp(how, "fork") == 0;
	pid_t child = 0;

	if (!bytes) {
		fprintf(stderr, "usage: grow small|large|huge|threads|fork MB SECONDS\n");
		return 2;
	}
	huge = strcmp(how, "huge") == 0;
	block = huge ? 4 << 20 : strcmp(how, "large") == 0 ? 300 << 10 : block;
	puts("ready");
	fflush(stdout);
	if (is_child)
		child = fork();
	if (child) {
		waitpid(child, NULL, 0);
		return 0;
	}
	grow(how, bytes, atof(argv[3]));
	while (getchar() != EOF)
		;
	return 0;
}
