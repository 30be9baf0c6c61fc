/*
 * Threads that wait in known places, for `recorder stacks`: usage: waits_linux [READERS]
 *
 *	main       clock_nanosleep
 *	one, two   each for the mutex that the other holds
 *	burn       runs
 *	reader     50 calls deep, in read of a pipe; READERS of them
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold;
static int fds[2];

__attribute__((noinline)) static void *take_both(pthread_mutex_t *mine, pthread_mutex_t *other)
{
	pthread_mutex_lock(mine);
	pthread_barrier_wait(&both_hold);
	pthread_mutex_lock(other);
	return NULL;
}

static void *one(void *arg)
{
	pthread_setname_np(pthread_self(), "one");
	take_both(&first, &second);
	return arg;
}

static void *two(void *arg)
{
	pthread_setname_np(pthread_self(), "two");
	take_both(&second, &first);
	return arg;
}

static void *burn(void *arg)
{
	volatile unsigned long n = 0;

	pthread_setname_np(pthread_self(), "burn");
	for (;;)
		n++;
	return arg;
}

__attribute__((noinline)) static ssize_t read_deep(int depth)
{
	volatile char bytes[100];

	if (depth == 0)
		return read(fds[0], (char *)bytes, 1);
	return read_deep(depth - 1) + bytes[0];
}

static void *reader(void *arg)
{
	pthread_setname_np(pthread_self(), "reader");
	read_deep(50);
	return arg;
}

int main(int argc, char **argv)
{
	int i, readers = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread;

	if (pipe(fds) || pthread_barrier_init(&both_hold, NULL, 2))
		return 1;
	pthread_create(&thread, NULL, one, NULL);
	pthread_create(&thread, NULL, two, NULL);
	pthread_create(&thread, NULL, burn, NULL);
	for (i = 0; i < readers; i++)
		pthread_create(&thread, NULL, reader, NULL);
	for (;;)
		sleep(1000);
}
