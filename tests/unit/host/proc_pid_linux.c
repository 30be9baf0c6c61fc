/* Where the files of another process are. */
#include "source/host/proc_pid_linux.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *file_of(pid_t pid, const char *path)
{
	static char out[PATH_MAX];

	return proc_pid_file((uint32_t)pid, path, strlen(path), out, sizeof(out)) ? out : NULL;
}

TEST(a_file_is_below_the_root_directory_of_its_process)
{
	char wanted[64], small[16];

	snprintf(wanted, sizeof(wanted), "/proc/%d/root/lib/libjvm.so", getpid());
	assert_string_equal(file_of(getpid(), "/lib/libjvm.so"), wanted);
	assert_false(proc_pid_file(1, "/lib/libjvm.so", 14, small, sizeof(small)));
}

/* A child whose root directory is `root`, when this returns. -1: not permitted. */
static pid_t child_in(const char *root)
{
	int ready[2], failed = 1;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		failed = chroot(root);
		_exit(write(ready[1], &failed, sizeof(failed)) < 0 || pause());
	}
	assert_int_equal(read(ready[0], &failed, sizeof(failed)), sizeof(failed));
	if (failed) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -1;
	}
	return pid;
}

TEST(a_process_that_was_put_into_a_directory_has_paths_from_there)
{
	char wanted[64], root[PATH_MAX], path[PATH_MAX + 32], beside[PATH_MAX + 32];
	const char *made = tmp_path("root");
	pid_t pid;

	assert_int_equal(mkdir(made, 0700), 0);
	assert_non_null(realpath(made, root));
	pid = child_in(root);
	if (pid < 0) {
		puts("only root may put a process into a directory");
		skip();
	}
	snprintf(path, sizeof(path), "%s/lib/libjvm.so", root);
	snprintf(wanted, sizeof(wanted), "/proc/%d/root/lib/libjvm.so", pid);
	assert_string_equal(file_of(pid, path), wanted);
	/* The same beginning, yet another directory. */
	snprintf(beside, sizeof(beside), "%s2/lib/libjvm.so", root);
	assert_non_null(strstr(file_of(pid, beside), "root2/lib"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_below_the_root_directory_of_its_process),
		cmocka_unit_test(a_process_that_was_put_into_a_directory_has_paths_from_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
