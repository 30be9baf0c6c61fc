#include "base/os.h"
#include "base/os_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct os_child {
	const char *name;
	pid_t pid;
	int go;                              /* a byte lets it run; -1 = it does */
	int failed;                          /* the errno of execve(2); closed when that works */
	bool ended;
	int code;
};

/* In the new process. The other ends of both pipes close with this program or by execve(2). */
static _Noreturn void become_program(char *const *argv, char *const *variables, int go,
				     int failed)
{
	ssize_t n;
	char byte;
	int why;

	do
		n = read(go, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127);
	for (; variables && *variables; variables++)
		putenv(*variables);
	execvp(argv[0], argv);
	why = errno;
	n = write(failed, &why, sizeof(why));
	_exit(n == sizeof(why) ? 127 : 126);
}

int os_child_start(char *const *argv, char *const *variables, struct os_child **out,
		   struct err *err)
{
	struct os_child *child = calloc(1, sizeof(*child));
	int go[2] = {-1, -1}, failed[2] = {-1, -1};
	int rc = 0;

	if (!child)
		return err_memory(err, "to start %.200s", argv[0]);
	child->name = argv[0];
	if (pipe2(go, O_CLOEXEC) != 0 || pipe2(failed, O_CLOEXEC) != 0)
		rc = err_os(err, "%.200s was not started: no pipe", argv[0]);
	if (!rc && (child->pid = fork()) < 0)
		rc = err_os(err, "%.200s cannot be started", argv[0]);
	if (!rc && child->pid == 0) {
		close(go[1]);
		become_program(argv, variables, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	child->go = go[1];
	child->failed = failed[0];
	if (rc) {
		child->ended = true;
		os_child_free(child);
		return rc;
	}
	*out = child;
	return 0;
}

uint32_t os_child_pid(const struct os_child *child)
{
	return (uint32_t)child->pid;
}

int os_child_go(struct os_child *child, struct err *err)
{
	ssize_t n;
	int why = 0;

	n = write(child->go, "", 1);
	close(child->go);
	child->go = -1;
	if (n == 1)
		do
			n = read(child->failed, &why, sizeof(why));
		while (n < 0 && errno == EINTR);
	return why ? err_os_code(err, why, "%.200s cannot be started", child->name) : 0;
}

bool os_child_ended(struct os_child *child, int *code)
{
	int status;

	if (!child->ended && waitpid(child->pid, &status, WNOHANG) == child->pid) {
		child->ended = true;
		child->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	*code = child->code;
	return child->ended;
}

void os_child_stop(struct os_child *child)
{
	if (!child->ended && tcgetpgrp(STDIN_FILENO) != getpgrp())
		kill(child->pid, os_stop_signal());
}

void os_child_free(struct os_child *child)
{
	if (!child)
		return;
	if (child->go >= 0)
		close(child->go);            /* it ends, having read nothing */
	if (child->go >= 0 && !child->ended)
		waitpid(child->pid, NULL, 0);
	if (child->failed >= 0)
		close(child->failed);
	free(child);
}

/* ---- in the background ----------------------------------------------------------------------- */

static int wait_exit(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int os_background(struct os_background *out, struct err *err)
{
	ssize_t n;
	char byte;
	int fds[2];
	pid_t pid;

	memset(out, 0, sizeof(*out));
	if (pipe2(fds, O_CLOEXEC) != 0)
		return err_os(err, "no process in the background: no pipe");
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return err_os(err, "no process in the background");
	}
	out->is_new = pid == 0;
	out->pid = (uint32_t)pid;
	out->fd = fds[1];
	if (out->is_new) {
		close(fds[0]);
		setsid();
		return 0;
	}
	close(fds[1]);
	do
		n = read(fds[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	close(fds[0]);
	out->ready = n == 1;
	if (!out->ready)
		out->code = wait_exit(pid);
	return 0;
}

void os_background_ready(struct os_background *b)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	ssize_t n;

	for (fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	do
		n = write(b->fd, "", 1);
	while (n < 0 && errno == EINTR);
	close(b->fd);
}
