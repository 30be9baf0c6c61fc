/*
 * silent FILE: from SIGUSR1 on, whoever reads its command line or mappings hangs as long as the
 * server of FILE does not answer. One thread reads a page of FILE through /proc/self/mem, under the
 * lock of its address space, which the other thread wants for itself; all others queue behind it.
 * Prints "ready".
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static char *page;

static void *read_page(void *unused)
{
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char byte;

	(void)unused;
	if (memory < 0 || pread(memory, &byte, 1, (off_t)(uintptr_t)page) != 1)
		perror("silent: /proc/self/mem");
	return NULL;
}

int main(int argc, char **argv)
{
	int file = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, number;
	pthread_t thread;
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	if (page == MAP_FAILED) {
		perror("silent");
		return 2;
	}
	printf("ready\n");
	fflush(stdout);
	sigwait(&wanted, &number);
	if (pthread_create(&thread, NULL, read_page, NULL) != 0)
		return 1;
	usleep(100000);
	mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sleep(60);
	return 0;
}
