/* Where the files of another process are, and what it maps. */
#include "source/host/maps.h"
#include "source/host/proc_pid_linux.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

TEST(a_file_of_a_process_is_read_whole_or_not_at_all)
{
	char comm[32], small[4], wanted[16];
	size_t n = strlen(program_invocation_short_name);

	n = n < 15 ? n : 15;
	snprintf(wanted, sizeof(wanted), "%.*s", (int)n, program_invocation_short_name);
	assert_int_equal(proc_pid_whole((uint32_t)getpid(), "comm", comm, sizeof(comm)), n + 1);
	comm[n] = '\0';
	assert_string_equal(comm, wanted);
	assert_int_equal(proc_pid_whole((uint32_t)getpid(), "comm", small, sizeof(small)), 0);
	assert_string_equal(small, "");
	assert_int_equal(proc_pid_whole(UINT32_MAX, "comm", comm, sizeof(comm)), 0);
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

/* Not [vsyscall]: only the text has it. */
static bool put_line(void *ctx, const struct maps_line *l)
{
	if (strcmp(l->path, "[vsyscall]") != 0)
		buf_printf(ctx, "%lx-%lx %lx %x:%x %lu %s\n", l->start, l->end, l->pgoff,
			   l->major, l->minor, l->ino, l->path);
	return true;
}

static void map_code(const char *path)
{
	int fd = path ? open(path, O_RDWR | O_CREAT, 0700) : -1;

	if (path)
		assert_int_equal(ftruncate(fd, 8192), 0);
	assert_ptr_not_equal(mmap(NULL, 4096, PROT_READ | PROT_EXEC,
				  path ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, fd,
				  path ? 4096 : 0), MAP_FAILED);
	if (path)
		close(fd);
}

TEST(executable_mappings_are_those_of_the_text)
{
	static char gone[PATH_MAX];
	struct buf text = {0}, wanted = {0}, have = {0};

	snprintf(gone, sizeof(gone), "%s", tmp_path("gone"));
	map_code(tmp_path("two\nlines"));
	map_code(gone);
	map_code(NULL);
	unlink(gone);
	assert_true(proc_pid_load((uint32_t)getpid(), "maps", 1 << 20, &text));
	assert_true(maps_each_code(text.data, put_line, &wanted));
	assert_true(proc_pid_code((uint32_t)getpid(), SIZE_MAX, put_line, &have));
	assert_string_equal(buf_text(&have), buf_text(&wanted));
	assert_non_null(strstr(buf_text(&have), "two\nlines\n"));
	assert_non_null(strstr(buf_text(&have), "gone (deleted)\n"));
	assert_non_null(strstr(buf_text(&have), "libc.so.6\n"));
	buf_free(&text);
	buf_free(&wanted);
	buf_free(&have);
}

struct deep {
	unsigned named, whole;               /* "//toolong"; with all of their paths */
};

static bool is_deep(void *ctx, const struct maps_line *l)
{
	struct deep *deep = ctx;

	deep->named += strcmp(l->path, "//toolong") == 0 && l->pgoff == 4096;
	deep->whole += strlen(l->path) > PATH_MAX;
	return true;
}

TEST(a_path_that_is_too_long_is_named_as_in_the_records_of_the_kernel)
{
	char here[PATH_MAX], name[251];
	struct deep deep = {0};
	unsigned i;

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(mkdir(tmp_path("deep"), 0700), 0);
	assert_int_equal(chdir(tmp_path("deep")), 0);
	for (i = 0; i < 18; i++) {
		assert_int_equal(mkdir(name, 0700), 0);
		assert_int_equal(chdir(name), 0);
	}
	map_code("deep");
	assert_int_equal(chdir(here), 0);
	assert_true(proc_pid_code((uint32_t)getpid(), SIZE_MAX, is_deep, &deep));
	if (deep.whole) {
		puts("kernels before 6.11 tell of mappings by the text only");
		skip();
	}
	assert_int_equal(deep.named, 1);
}

static bool only_one(void *ctx, const struct maps_line *l)
{
	(void)l;
	++*(unsigned *)ctx;
	return false;
}

TEST(who_has_enough_of_the_mappings_gets_no_more)
{
	unsigned n = 0;

	assert_true(proc_pid_code((uint32_t)getpid(), SIZE_MAX, only_one, &n));
	assert_int_equal(n, 1);
}

static bool all(void *ctx, const struct maps_line *l)
{
	(void)l;
	++*(unsigned *)ctx;
	return true;
}

TEST(mappings_beyond_the_limit_are_not_told)
{
	unsigned n = 0;

	assert_false(proc_pid_code((uint32_t)getpid(), 400, all, &n));
	assert_in_range(n, 0, 5);            /* none where the text is read, which is longer */
}

TEST(the_mappings_of_what_has_ended_are_not_known)
{
	unsigned n = 0;
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	assert_false(proc_pid_code((uint32_t)pid, SIZE_MAX, only_one, &n));
	waitpid(pid, &status, 0);
	assert_false(proc_pid_code((uint32_t)pid, SIZE_MAX, only_one, &n));
	assert_int_equal(n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_below_the_root_directory_of_its_process),
		cmocka_unit_test(a_file_of_a_process_is_read_whole_or_not_at_all),
		cmocka_unit_test(a_process_that_was_put_into_a_directory_has_paths_from_there),
		cmocka_unit_test(executable_mappings_are_those_of_the_text),
		cmocka_unit_test(
			a_path_that_is_too_long_is_named_as_in_the_records_of_the_kernel),
		cmocka_unit_test(who_has_enough_of_the_mappings_gets_no_more),
		cmocka_unit_test(mappings_beyond_the_limit_are_not_told),
		cmocka_unit_test(the_mappings_of_what_has_ended_are_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
