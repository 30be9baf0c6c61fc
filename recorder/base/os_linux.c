#include "base/os.h"

#include "base/os_linux.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ---- errors ---------------------------------------------------------------------------------- */

int os_error_last(void)
{
	return errno;
}

enum err_code os_error_code(int os_error)
{
	switch (os_error) {
	case ENOENT:
	case ESRCH:
	case ENOTDIR:
		return ERR_NOT_FOUND;
	case EEXIST:
		return ERR_EXISTS;
	case EACCES:
	case EPERM:
	case EROFS:
		return ERR_ACCESS;
	case ENOMEM:
		return ERR_MEMORY;
	case ENOSPC:
	case EDQUOT:
		return ERR_FULL;
	case EBUSY:
	case EAGAIN:
	case EADDRINUSE:
		return ERR_BUSY;
	case EPIPE:
		return ERR_STOPPED;          /* the reader of our output has closed it */
	case EMFILE:
	case ENFILE:
		return ERR_LIMIT;
	case ENOSYS:
	case EOPNOTSUPP:
		return ERR_UNSUPPORTED;
	default:
		return ERR_IO;
	}
}

void os_error_text(int os_error, char *out, size_t n)
{
	char text[128];

	/* The GNU variant: the text may be elsewhere than in the buffer. */
	snprintf(out, n, "%s", strerror_r(os_error, text, sizeof(text)));
}

/* ---- clock ----------------------------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t os_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t os_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t os_asleep_ns(void)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), with_sleep_ns = clock_ns(CLOCK_BOOTTIME);

	return with_sleep_ns > now_ns ? with_sleep_ns - now_ns : 0;
}

void os_sleep_ns(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_SEC),
			     .tv_nsec = (long)(ns % NS_PER_SEC)};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

void os_time_text(uint64_t wall_ns, char out[OS_TIME_TEXT_BYTES])
{
	time_t seconds = (time_t)(wall_ns / NS_PER_SEC);
	struct tm tm;
	size_t used;

	gmtime_r(&seconds, &tm);
	used = strftime(out, OS_TIME_TEXT_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + used, OS_TIME_TEXT_BYTES - used, ".%03uZ",
		 (unsigned)(wall_ns / NS_PER_MS % 1000));
}

/* ---- the machine and this process ------------------------------------------------------------ */

void os_dirname(const char *path, struct buf *out)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		buf_puts(out, ".");
	else if (slash == path)
		buf_puts(out, "/");
	else
		buf_put(out, path, (size_t)(slash - path));
}

const char *os_base_name(const char *path)
{
	return text_last_part(path, "/");
}

void os_system_store(struct buf *out)
{
	buf_puts(out, "/var/lib/recorder/incidents.db");
}

static const char *home_of_user(void)
{
	const struct passwd *user = getpwuid(getuid());

	return user ? user->pw_dir : NULL;
}

int os_default_store(struct buf *out, struct err *err)
{
	const char *state = os_env("XDG_STATE_HOME");
	const char *home = os_rights_lent() ? home_of_user() : os_env("HOME");

	if (geteuid() == 0) {
		os_system_store(out);
	} else if (state && state[0] == '/') {
		buf_printf(out, "%s/recorder/incidents.db", state);
	} else if (home && home[0] == '/') {
		buf_printf(out, "%s/.local/state/recorder/incidents.db", home);
	} else {
		return err_set(err, ERR_USAGE, "neither XDG_STATE_HOME nor HOME is set; say "
			       "where incidents go with --store FILE");
	}
	return buf_check(out, "the store's path", err);
}

bool os_is_admin(void)
{
	return geteuid() == 0;
}

uint32_t os_uid(void)
{
	return geteuid();
}

uint32_t os_pid(void)
{
	return (uint32_t)getpid();
}

bool os_process_exists(uint32_t pid)
{
	/* 0 and negative numbers would mean groups. */
	return pid && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

int os_process_arguments(uint32_t pid, struct buf *out, struct err *err)
{
	char path[64], text[OS_ARGUMENTS_MAX];
	struct os_file *file = NULL;
	size_t n = 0;
	int rc;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cmdline", pid);
	rc = os_open(path, OS_READ, &file, err);
	if (!rc)
		rc = os_pread(file, text, sizeof(text), 0, &n, err);
	os_close(file);
	if (!rc)
		buf_put(out, text, text_join_arguments(text, n));
	return rc ? rc : buf_check(out, path, err);
}

void os_host_name(char *out, size_t n)
{
	if (gethostname(out, n) != 0)
		snprintf(out, n, "localhost");
	out[n - 1] = '\0';
}

void os_host_text(char *out, size_t n)
{
	struct utsname u;

	if (uname(&u) == 0)
		snprintf(out, n, "%s %s %s", u.sysname, u.release, u.machine);
	else
		snprintf(out, n, "Linux");
}

unsigned os_cpu_count(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

int os_random(void *to, size_t n, struct err *err)
{
	char *at = to;

	while (n) {
		ssize_t got = getrandom(at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_os(err, "cannot get random bytes");
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

void os_keep_memory_tight(void)
{
	mallopt(M_MMAP_THRESHOLD, (int)OS_OWN_PAGES_BYTES);
}

void os_give_memory_back(void)
{
	malloc_trim(0);
}

void os_give_pages_back(void *at, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)at + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)at + n) & ~(page - 1);

	if (from < to)
		madvise((void *)from, to - from, MADV_DONTNEED);
}

#define LARGE_PAGES_LEAST_BYTES ((size_t)4 << 20)

/* All of a block's pages: realloc() could not move a mapping whose parts differ. */
void os_use_large_pages(void *at, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)at & ~(page - 1);
	uintptr_t to = ((uintptr_t)at + n + page - 1) & ~(page - 1);

	if (n >= LARGE_PAGES_LEAST_BYTES)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
}

void os_self_usage(uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	struct buf statm = {0};
	struct rusage most = {.ru_maxrss = 0};
	unsigned long long pages = 0;

	*cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (os_load("/proc/self/statm", 4096, &statm, NULL) == 0)
		sscanf(buf_text(&statm), "%*u %llu", &pages);
	*rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	/* Without a free descriptor: the most so far, as 0 would let a limit be exceeded. */
	if (!pages && getrusage(RUSAGE_SELF, &most) == 0)
		*rss_bytes = (uint64_t)most.ru_maxrss * 1024;
	buf_free(&statm);
}

const char *os_env(const char *name)
{
	return secure_getenv(name);
}

bool os_env_hidden(const char *name)
{
	return getenv(name) && !secure_getenv(name);
}

void os_guard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= 2);
	close(fd);
}

char **os_args(int argc, char **argv)
{
	(void)argc;
	/* Called first in main(): when a file may not grow (ulimit -f), a write shall fail, as on a
	 * full disk, and not end the program. */
	signal(SIGXFSZ, SIG_IGN);
	return argv;
}

/* ---- signals: blocked everywhere; the one thread that waits takes them by sigtimedwait() ----- */

/* Signals belong to the process. Asked at the start: a terminal that hangs up is gone by then. */
static bool has_terminal;
static int signal_fd = -1;
static int stop_signal = SIGTERM;

static void fill_signals(sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGUSR2);
	/* nohup(1): a user who has it ignored wants the program to outlive the terminal. */
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

int os_signals_open(struct err *err)
{
	int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	sigset_t set;

	has_terminal = terminal >= 0;
	if (has_terminal)
		close(terminal);
	signal(SIGPIPE, SIG_IGN);
	fill_signals(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return err_os(err, "cannot listen to signals");
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return 0;
}

int os_signals_fd(void)
{
	return signal_fd;
}

/* The program is ending: a second request to end, as from timeout(1), must not kill it. */
void os_signals_close(void)
{
	sigset_t set;

	if (signal_fd >= 0)
		close(signal_fd);
	signal_fd = -1;
	fill_signals(&set);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int os_stop_signal(void)
{
	return stop_signal;
}

enum os_signal os_signal_wait(uint64_t timeout_ns)
{
	struct timespec t = {.tv_sec = (time_t)(timeout_ns / NS_PER_SEC),
			     .tv_nsec = (long)(timeout_ns % NS_PER_SEC)};
	struct sigaction inherited;
	sigset_t set;
	int signal_number;

	fill_signals(&set);
	signal_number = sigtimedwait(&set, NULL, &t);
	if (signal_number < 0)
		return OS_SIGNAL_NONE;
	if (signal_number == SIGHUP && !has_terminal)
		return OS_SIGNAL_REOPEN;
	if (signal_number == SIGUSR2)
		return OS_SIGNAL_SNAPSHOT;
	/* A shell's background jobs have SIGINT ignored, and so has all that they start. */
	if (sigaction(signal_number, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
		stop_signal = signal_number;
	return OS_SIGNAL_STOP;
}
