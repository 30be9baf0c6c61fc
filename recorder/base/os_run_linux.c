/* Running a program: see os.h. */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/*
 * The soft limit of descriptors that we were started with; 0 = it was not raised. Limits belong to
 * the process.
 */
static rlim_t usual_files;

void os_raise_file_limit(void)
{
	struct rlimit files;

	if (usual_files || getrlimit(RLIMIT_NOFILE, &files) != 0 ||
	    files.rlim_cur == files.rlim_max)
		return;
	usual_files = files.rlim_cur;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* Programs that call select() write past the end of an fd_set at descriptors from 1,024 on. */
static void use_usual_files(void)
{
	struct rlimit files;

	if (!usual_files || getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = usual_files;
	setrlimit(RLIMIT_NOFILE, &files);
}

struct child {
	char *const *argv;
	char *const *environment;
	int output, errors;
	volatile int error;                  /* why it was not started */
};

/*
 * Between vfork() and execve(), in the parent's memory, hence system calls only. The program gets
 * a process group of its own, so that what it starts can be ended with it, and signals as a shell
 * sets them.
 */
static _Noreturn void become_program(struct child *c)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t none;
	int i;

	for (i = 1; i < NSIG; i++)
		sigaction(i, &usual, NULL);
	setpgid(0, 0);
	dup2(c->output, STDOUT_FILENO);
	dup2(c->errors, STDERR_FILENO);
	close(STDIN_FILENO);
	open("/dev/null", O_RDONLY);         /* takes the lowest number, 0 */
	use_usual_files();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvpe(c->argv[0], c->argv, c->environment);
	c->error = errno;
	_exit(127);
}

/* Not posix_spawn(), which cannot set limits. No handler of ours may run in the child. */
static int spawn(struct child *c, pid_t *out)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = vfork();
	if (pid == 0)
		become_program(c);
	if (pid < 0)
		c->error = errno;
	else if (c->error)
		waitpid(pid, NULL, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	*out = pid;
	return c->error;
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

/* to: its standard output; -1 = where the errors go. stop: may be NULL. */
static int run(char *const *argv, char *const *more, uint64_t timeout_ns, int to,
	       const _Atomic bool *stop, struct buf *output, size_t max_bytes, int *code,
	       struct err *err)
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
	rc = spawn(&(struct child){argv, environment, to < 0 ? fds[1] : to, fds[1], 0}, &pid);
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
		if (!done && !killed &&
		    (os_now_ns() >= end_ns || (stop && atomic_load(stop)))) {
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

int os_run(char *const *argv, char *const *more, uint64_t timeout_ns, struct buf *output,
	   size_t max_bytes, int *code, struct err *err)
{
	return run(argv, more, timeout_ns, -1, NULL, output, max_bytes, code, err);
}

int os_run_into(int to, char *const *argv, uint64_t timeout_ns,
		const _Atomic bool *stop, struct buf *messages, size_t max_bytes, int *code,
		struct err *err)
{
	char *none[] = {NULL};

	return run(argv, none, timeout_ns, to, stop, messages, max_bytes, code, err);
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
