/*
 * Frees that are mistakes, and what else a program may do:
 *
 *	heap_mistakes_linux again|unknown
 *	heap_mistakes_linux ring|noise
 *
 * allocate_it's block is freed by free_first, later by free_again; or free_unknown frees what no
 * allocator gave. Rests before, so that a recorder reads the program. The C library may end it.
 *
 * With ring it prints how many bytes stand in the ring that `run --heap` shares with it, "none"
 * without one; with noise it writes records there that hardly make sense, for two seconds. Before
 * and after it allocates 64 MB and keeps them: keep_before, keep_after.
 */
#include "recorder/source/ring/heap_ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
}

__attribute__((noinline)) void *allocate_it(void)
{
	void *p = malloc(100);

	memset(p, 1, 100);
	return p;
}

__attribute__((noinline)) void free_first(void *p)
{
	free(p);
	__asm__ volatile("");
}

__attribute__((noinline)) void free_again(void *p)
{
	free(p);
	__asm__ volatile("");
}

__attribute__((noinline)) void free_unknown(void *p)
{
	free(p);
	__asm__ volatile("");
}

static inline __attribute__((always_inline)) void keep(void)
{
	for (int i = 0; i < 65536; i++)
		if (!malloc(1024))
			exit(1);
}

__attribute__((noinline)) void keep_before(void)
{
	keep();
	__asm__ volatile("");
}

__attribute__((noinline)) void keep_after(void)
{
	keep();
	__asm__ volatile("");
}

static struct heap_ring *map_ring(void)
{
	const char *text = getenv(HEAP_RING_VARIABLE);
	char path[64];
	void *ring;
	int fd;

	if (!text || sscanf(text, "%63[^:]", path) != 1 || (fd = open(path, O_RDWR)) < 0)
		return NULL;
	if (ftruncate(fd, 0) == 0)
		puts("it became shorter");
	ring = mmap(NULL, HEAP_RING_PAGE_BYTES + HEAP_RING_DATA_BYTES, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	return ring == MAP_FAILED ? NULL : ring;
}

/* Headers that look like records of all kinds and sizes; heads that are there, and far away. */
static void make_noise(struct heap_ring *ring)
{
	uint16_t *data = (void *)((char *)ring + HEAP_RING_PAGE_BYTES);
	time_t end = time(NULL) + 20;
	unsigned random = 1;

	/* What is true has been read. */
	while (ring->tail != ring->head && time(NULL) < end)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	end = time(NULL) + 2;

	while (time(NULL) < end) {
		for (unsigned i = 0; i < HEAP_RING_DATA_BYTES / 2; i++) {
			random = random * 1664525 + 1013904223;
			data[i] = i % 4 == 0   ? (uint16_t)((random >> 16) % 20)
				  : i % 4 == 3 ? 8 * ((random >> 16) % 64)
					       : (uint16_t)(random >> 16);
		}
		ring->head += random % 7 == 0 ? random << 8
					      : (random % HEAP_RING_DATA_BYTES) & ~7u;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
}

static int use_ring(const char *how)
{
	struct heap_ring *ring = map_ring();

	keep_before();
	if (ring)
		printf("%llu\n", (unsigned long long)ring->head);
	else
		puts("none");
	if (ring && strcmp(how, "noise") == 0)
		make_noise(ring);
	keep_after();
	return 0;
}

int main(int argc, char **argv)
{
	static _Alignas(16) char block[256];
	void *p;

	if (argc > 1 && (strcmp(argv[1], "ring") == 0 || strcmp(argv[1], "noise") == 0))
		return use_ring(argv[1]);
	free_first(allocate_it());
	rest();
	p = allocate_it();
	free_first(p);
	rest();
	if (argc > 1 && strcmp(argv[1], "unknown") == 0)
		free_unknown(block + 64);
	else
		free_again(p);
	return 0;
}
