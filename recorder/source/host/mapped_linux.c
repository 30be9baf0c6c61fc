#include "source/host/mapped_linux.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

/* The thread that reads now; a signal handler can be told nothing in another way. */
static _Thread_local sigjmp_buf *reading;

/* si_code > 0: the kernel sent it for what this thread did. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (reading && info->si_code > 0)
		siglongjmp(*reading, 1);
	/* Not ours: restore the default, so that the next one ends the process. */
	signal(number, SIG_DFL);
	if (info->si_code <= 0)
		raise(number);
}

/* For every file again, because a library may have installed a handler of its own meanwhile. */
static void listen(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &action, NULL);
}

/* The handler was left by a jump, so its signal is still blocked. */
static void listen_again(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int mapped_open(struct mapped *m, int fd, size_t bytes, struct err *err)
{
	void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return err_set(err, ERR_IO, "mapping a file of another program: %s",
			       strerror(errno));
	listen();
	m->at = at;
	m->bytes = bytes;
	return 0;
}

void mapped_close(struct mapped *m)
{
	if (m->at)
		munmap((void *)m->at, m->bytes);
	*m = (struct mapped){0};
}

bool mapped_read(const struct mapped *m, void *to, size_t from, size_t n)
{
	const uint64_t *words = (const uint64_t *)(m->at + from);
	uint64_t *out = to;
	sigjmp_buf here;
	size_t i;

	if (from > m->bytes || n > m->bytes - from || from % 8 || n % 8)
		return false;
	if (sigsetjmp(here, 0)) {
		reading = NULL;
		listen_again();
		return false;
	}
	reading = &here;
	atomic_signal_fence(memory_order_seq_cst);
	for (i = 0; i < n / 8; i++)
		out[i] = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
	atomic_signal_fence(memory_order_seq_cst);
	reading = NULL;
	return true;
}
