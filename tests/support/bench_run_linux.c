#include "tests/support/bench_run_linux.h"

#include "base/os.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double ms_of(const struct timeval *t)
{
	return (double)t->tv_sec * 1e3 + (double)t->tv_usec / 1e3;
}

int bench_run(char *const *args, struct bench_cost *out, struct err *err)
{
	extern char **environ;
	posix_spawn_file_actions_t files;
	uint64_t start_ns = os_now_ns();
	struct rusage use;
	pid_t pid;
	int status;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	/* Not fork(): the child would begin with what is resident here. */
	status = posix_spawn(&pid, args[0], &files, NULL, args, environ);
	posix_spawn_file_actions_destroy(&files);
	if (status)
		return err_set(err, ERR_NOT_FOUND, "cannot start %s", args[0]);
	if (wait4(pid, &status, 0, &use) != pid)
		return err_os(err, "cannot wait for %s", args[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(err, ERR_IO, "%s %s failed", args[0], args[1]);
	out->wall_ms = (double)(os_now_ns() - start_ns) / 1e6;
	out->cpu_ms = ms_of(&use.ru_utime) + ms_of(&use.ru_stime);
	out->rss_mb = (double)use.ru_maxrss / 1024;
	return 0;
}
