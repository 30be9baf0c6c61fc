/*
 * Functions that only a symbol table names: static, and kept apart. Spends SECONDS in leaf_work()
 * below middle_work(). Usage: symbolize_linux SECONDS
 */
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void leaf_work(void)
{
	unsigned long i;

	for (i = 0; i < 1000000; i++)
		sink += i * i;
}

__attribute__((noinline)) static void middle_work(void)
{
	leaf_work();
	sink++;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	while (time(NULL) < end)
		middle_work();
	return 0;
}
