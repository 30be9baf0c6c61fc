/* Running a program: see os.h. */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define STEP_MS 50

/* Is "NAME=value" of the environment replaced by one of `more`? */
static bool is_replaced(const char *at, char *const *more)
{
	size_t i;

	for (i = 0; more[i]; i++)
		if (strncmp(at, more[i], strcspn(more[i], "=") + 1) == 0)
			return true;
	return false;
}

/* `more`, and the environment without the names in it; NULL = no memory. */
static char **join_environment(char *const *more)
{
	size_t nmore = 0, n = 0, i;
	char **all;

	while (more[nmore])
		nmore++;
	while (environ && environ[n])
		n++;
	all = calloc(nmore + n + 1, sizeof(*all));
	if (!all)
		return NULL;
	memcpy(all, more, nmore * sizeof(*all));
	for (i = 0; i < n; i++)
		if (!is_replaced(environ[i], more))
			all[nmore++] = environ[i];
	return all;
}

/* In its own group, so that what it starts can be ended with it; signals as a shell sets them. */
static int spawn(char *const *argv, char *const *environment, int output, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
				 POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&how, 0);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &all);
	rc = posix_spawnp(pid, argv[0], &files, &how, argv, environment);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return rc;
}

/* Take what is there now, or comes within a step; false at its end. */
static bool take_output(int fd, struct buf *output, size_t max_bytes)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char bytes[4096];
	ssize_t n;

	if (poll(&p, 1, STEP_MS) <= 0)
		return true;
	n = read(fd, bytes, sizeof(bytes));
	if (n > 0 && output->len < max_bytes)
		buf_put(output, bytes,
			(size_t)n < max_bytes - output->len ? (size_t)n : max_bytes - output->len);
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

bool os_finds_program(const char *name)
{
	const char *path = os_env("PATH"), *at;
	struct buf file = {0};
	bool found = false;
	size_t len;

	if (strchr(name, '/'))
		return is_program(name);
	for (at = path ? path : "/bin:/usr/bin"; !found; at += len + 1) {
		len = strcspn(at, ":");
		buf_reset(&file);
		buf_printf(&file, "%.*s/%s", len ? (int)len : 1, len ? at : ".", name);
		found = is_program(buf_text(&file));
		if (!at[len])
			break;
	}
	buf_free(&file);
	return found;
}

int os_run(char *const *argv, char *const *more, uint64_t timeout_ns, struct buf *output,
	   size_t max_bytes, int *code, struct err *err)
{
	uint64_t end_ns = os_now_ns() + timeout_ns;
	bool open = true, killed = false;
	int fds[2], status = 0, rc;
	pid_t pid = 0, done = 0;
	char **environment = join_environment(more);

	if (!environment)
		return err_memory(err, "to start %.200s", argv[0]);
	if (pipe2(fds, O_CLOEXEC) != 0) {
		free(environment);
		return err_os(err, "%.200s was not started: no pipe", argv[0]);
	}
	rc = spawn(argv, environment, fds[1], &pid);
	free(environment);
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return err_os_code(err, rc, "%.200s cannot be started", argv[0]);
	}
	/* Programs left in the background may hold the pipe open: the end of this one is enough. */
	while (!done) {
		if (open)
			open = take_output(fds[0], output, max_bytes);
		else
			os_sleep_ns(STEP_MS * NS_PER_MS);
		done = waitpid(pid, &status, WNOHANG);
		if (!done && !killed && os_now_ns() >= end_ns) {
			killed = true;
			kill(-pid, SIGKILL);
		}
	}
	while (open && output->len < max_bytes) {
		size_t before = output->len;

		open = take_output(fds[0], output, max_bytes);
		if (output->len == before)
			break;
	}
	close(fds[0]);
	*code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (killed)
		return err_set(err, ERR_LIMIT, "%.200s was ended: it ran for over %.0f s", argv[0],
			       (double)timeout_ns / 1e9);
	return 0;
}

bool os_show_in_pager(const char *text, size_t n)
{
	const char *pager = os_env("PAGER");
	FILE *to;

	if (!pager && !os_finds_program("less"))
		return false;
	to = pager && !*pager ? NULL : popen(pager ? pager : "less -FRX", "w");
	if (!to)
		return false;
	signal(SIGPIPE, SIG_IGN);
	fwrite(text, 1, n, to);
	return pclose(to) == 0;
}
