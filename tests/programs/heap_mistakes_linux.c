/*
 * Frees that are mistakes:
 *
 *	heap_mistakes_linux again|unknown
 *
 * allocate_it's block is freed by free_first, later by free_again; or free_unknown frees what no
 * allocator gave. Rests before, so that a recorder reads the program. The C library may end it.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

int main(int argc, char **argv)
{
	static _Alignas(16) char block[256];
	void *p;

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
