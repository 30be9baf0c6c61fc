#include "base/confined_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define STAT_MAX_BYTES 4096u
#define REAP_TRIES 200                   /* of 5 ms: one that hangs in a file system cannot end */
#define PARTS_MAX 3u
#define CPU_LOOK_NS (100 * NS_PER_MS)    /* between looks at its CPU time */

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* ---- the process itself ---------------------------------------------------------------------- */

bool confined_begin(const char *name, uint64_t memory_max_bytes)
{
	/* What its owner was given. Headers of an older C library lack the SYS_ name. */
	syscall(__NR_close_range, STDERR_FILENO + 1, ~0u, 0);
	prctl(PR_SET_NAME, name);
	os_limit_memory(memory_max_bytes);
	return os_confine();
}

bool confined_take(void *bytes, size_t n, int *file)
{
	struct iovec part = {bytes, n};
	union control control;
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *head;
	ssize_t got;

	do
		got = file ? recvmsg(STDIN_FILENO, &message, MSG_CMSG_CLOEXEC)
			   : recv(STDIN_FILENO, bytes, n, MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	head = file && got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (file)
		*file = -1;
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(head), sizeof(*file));
	return got == (ssize_t)n;
}

bool confined_answer(const void *bytes, size_t n)
{
	const char *at = bytes;
	ssize_t sent;

	for (; n; at += sent, n -= (size_t)sent) {
		do
			sent = send(STDIN_FILENO, at, n, MSG_NOSIGNAL);
		while (sent < 0 && errno == EINTR);
		if (sent <= 0)
			return false;
	}
	return true;
}

/* ---- its life -------------------------------------------------------------------------------- */

static uint64_t cpu_of(pid_t pid)
{
	struct timespec used = {0};
	clockid_t clock;

	if (pid && clock_getcpuclockid(pid, &clock) == 0)
		clock_gettime(clock, &used);
	return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}

/* A process group of its own: Ctrl-C in a terminal is not meant for it. */
static int start(struct confined *c, struct err *err)
{
	char *const argv[] = {(char[]){"recorder"}, (char *)(uintptr_t)c->word, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none;
	pid_t pid = 0;
	int fds[2], rc;

	if (c->fd >= 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return err_os(err, "the process that reads %s was not started: no socket",
			      c->reads);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	posix_spawn_file_actions_adddup2(&files, fds[1], STDIN_FILENO);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&how, 0);
	posix_spawnattr_setsigmask(&how, &none);
	rc = posix_spawn(&pid, "/proc/self/exe", &files, &how, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return err_os_code(err, rc, "the process that reads %s was not started", c->reads);
	}
	c->fd = fds[0];
	atomic_store(&c->pid, pid);
	return 0;
}

/* Returns its status. */
static int end(struct confined *c)
{
	pid_t pid = atomic_load(&c->pid), got = 0;
	int status = 0;
	unsigned i;

	if (c->fd < 0)
		return 0;
	close(c->fd);                        /* one at rest ends by this */
	c->fd = -1;
	for (i = 0; i < REAP_TRIES && !got; i++) {
		uint64_t cpu_ns = cpu_of(pid);

		got = waitpid(pid, &status, WNOHANG);
		if (got == pid)
			atomic_fetch_add(&c->ended_cpu_ns, cpu_ns);
		if (i == 1)
			kill(pid, SIGKILL);
		if (!got)
			os_sleep_ns(5 * NS_PER_MS);
	}
	atomic_store(&c->pid, 0);
	return status;
}

void confined_end(struct confined *c)
{
	end(c);
}

static bool uses_too_much(const struct confined *c)
{
	return c->max_cpu_ns && confined_spent_ns(c) > c->max_cpu_ns;
}

static int failed(struct confined *c, bool is_late, struct err *err)
{
	bool spends = is_late && uses_too_much(c);
	int status = end(c);

	if (spends)
		return err_set(err, ERR_LIMIT, "reading its %s took more than %u ms of CPU time",
			       c->reads, (unsigned)(c->max_cpu_ns / NS_PER_MS));
	if (is_late)
		return err_set(err, ERR_LIMIT, "reading its %s took longer than %u s", c->reads,
			       (unsigned)(c->max_ns / NS_PER_SEC));
	if (WIFEXITED(status) && WEXITSTATUS(status) == CONFINED_NOT)
		return err_set(err, ERR_ACCESS, "the process that reads %s could not give up "
			       "its rights, so it has read nothing", c->reads);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		return err_set(err, ERR_FORMAT, "it became shorter while its %s were read",
			       c->reads);
	return err_set(err, ERR_FORMAT, "the process that reads %s died of it (%s %d), so the %s "
		       "is damaged, or made to do that", c->reads,
		       WIFSIGNALED(status) ? "signal" : "exit code",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), c->from);
}

int confined_distrust(struct confined *c, struct err *err)
{
	end(c);
	return err_set(err, ERR_FORMAT,
		       "the process that reads %s gave an answer that cannot be: the %s is "
		       "damaged, or made to do that", c->reads, c->from);
}

/* ---- requests and answers -------------------------------------------------------------------- */

/* It works at the priority of the thread that waits for it. */
static void take_priority(const struct confined *c)
{
	pid_t pid = atomic_load(&c->pid);
	int own;

	errno = 0;
	own = getpriority(PRIO_PROCESS, 0);
	if (!errno && getpriority(PRIO_PROCESS, (id_t)pid) != own)
		setpriority(PRIO_PROCESS, (id_t)pid, own);
}

int confined_ask(struct confined *c, const struct iovec *parts, unsigned nparts, int file,
		 struct err *err)
{
	union control control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
					  .cmsg_len = CMSG_LEN(sizeof(file))}};
	struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
				 .msg_iovlen = nparts};
	unsigned tries, i;
	size_t n = 0;
	int rc;

	for (i = 0; i < nparts; i++)
		n += parts[i].iov_len;
	if (file >= 0) {
		memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	c->asked_cpu_ns = c->max_cpu_ns ? confined_cpu_ns(c) : 0;
	/* It may have been killed since. */
	for (tries = 0; tries < 2; tries++) {
		rc = start(c, err);
		if (rc)
			return rc;
		take_priority(c);
		if (sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n)
			return 0;
		end(c);
	}
	return err_set(err, ERR_IO, "the process that reads %s ends as soon as it starts",
		       c->reads);
}

/* Without a limit on its CPU time it waits in one call, so that one that hangs can be seen. */
int confined_receive_some(struct confined *c, void *to, size_t n, size_t max, uint64_t end_ns,
			  size_t *got_bytes, struct err *err)
{
	size_t all = 0;

	while (all < n) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		uint64_t now_ns = os_now_ns(), wait_ns = end_ns - now_ns;
		ssize_t got = -1;

		if (now_ns >= end_ns || uses_too_much(c))
			return failed(c, true, err);
		if (c->max_cpu_ns && wait_ns > CPU_LOOK_NS)
			wait_ns = CPU_LOOK_NS;
		if (poll(&p, 1, (int)(wait_ns / NS_PER_MS) + 1) > 0) {
			got = recv(c->fd, (char *)to + all, max - all, MSG_DONTWAIT);
			if (!got || (got < 0 && errno != EINTR && errno != EAGAIN))
				return failed(c, false, err);
		}
		all += got > 0 ? (size_t)got : 0;
	}
	*got_bytes = all;
	return 0;
}

int confined_receive(struct confined *c, void *to, size_t n, uint64_t end_ns, struct err *err)
{
	size_t got;

	return confined_receive_some(c, to, n, n, end_ns, &got, err);
}

/* ---- for other threads ----------------------------------------------------------------------- */

/* Its state (R, S, D, ...), or 0, and its memory: proc(5), stat, fields 3 and 24. */
static char look_at(pid_t pid, uint64_t *rss_bytes)
{
	struct buf text = {0};
	unsigned long long pages = 0;
	char path[40], state = 0;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (os_load(path, STAT_MAX_BYTES, &text, NULL) == 0 &&
	    (at = strrchr(buf_text(&text), ')')) != NULL)
		sscanf(at, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		       "%*d %*d %*u %*u %llu", &state, &pages);
	buf_free(&text);
	*rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return state;
}

bool confined_waits(const struct confined *c, uint64_t *progress)
{
	pid_t pid = atomic_load(&c->pid);
	uint64_t rss_bytes;

	*progress = cpu_of(pid);
	return !pid || look_at(pid, &rss_bytes) != 'R';
}

void confined_hurry(const struct confined *c)
{
	pid_t pid = atomic_load(&c->pid);

	if (pid)
		setpriority(PRIO_PROCESS, (id_t)pid, -10);
}

uint64_t confined_cpu_ns(const struct confined *c)
{
	return atomic_load(&c->ended_cpu_ns) + cpu_of(atomic_load(&c->pid));
}

uint64_t confined_spent_ns(const struct confined *c)
{
	uint64_t cpu_ns = confined_cpu_ns(c);

	return cpu_ns > c->asked_cpu_ns ? cpu_ns - c->asked_cpu_ns : 0;
}

void confined_add_usage(struct confined *c, uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	pid_t pid = atomic_load(&c->pid);
	uint64_t used_ns = confined_cpu_ns(c), own_rss_bytes;

	*cpu_ns += used_ns;
	if (!pid)
		return;
	if (atomic_load(&c->rss_cpu_ns) != used_ns && look_at(pid, &own_rss_bytes)) {
		atomic_store(&c->rss_bytes, own_rss_bytes);
		atomic_store(&c->rss_cpu_ns, used_ns);
	}
	*rss_bytes += atomic_load(&c->rss_bytes);
}
