#include "base/os.h"
#include "base/out.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_regular(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* By a symbolic link, so that a failing test cannot replace the device itself. */
TEST(out_writes_into_a_device_and_replaces_nothing)
{
	const char *path = tmp_path("null");
	struct out *out = NULL;

	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(out_open(path, false, &out, NULL), 0);
	out_puts(out, "gone");
	assert_int_equal(out_close(out, NULL), 0);
	assert_false(is_regular(path));
	assert_false(os_exists(tmp_path("null.tmp")));
}

/* Under sudo the file would else be root's, and who typed the command could not open it. */
TEST(out_under_sudo_belongs_to_who_typed_it)
{
	const char *path = tmp_path("report");
	struct out *out = NULL;
	struct stat st;

	if (geteuid() != 0) {
		puts("only root can give a file away");
		skip();
	}
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "4321", 1);
	assert_int_equal(out_open(path, false, &out, NULL), 0);
	out_puts(out, "text");
	assert_int_equal(out_close(out, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_gid, 4321);
	assert_int_equal(st.st_mode & 0777, 0600);

	setenv("SUDO_UID", "12x", 1);
	assert_int_equal(out_open(path, true, &out, NULL), 0);
	assert_int_equal(out_close(out, NULL), 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
}

TEST(out_on_a_full_device_reports_it_when_closed)
{
	struct out *out = NULL;
	struct err err = {0};

	assert_int_equal(symlink("/dev/full", tmp_path("full")), 0);
	assert_int_equal(out_open(tmp_path("full"), false, &out, NULL), 0);
	out_puts(out, "never there");
	assert_int_equal(out_close(out, &err), ERR_FULL);
	assert_non_null(strstr(err.text, "full"));
	assert_false(os_exists(tmp_path("full.tmp")));
}

/* The limit on file size makes the second write of 256 kB fail as a full disk would. */
TEST(out_whose_disk_fills_up_leaves_the_old_file_and_no_other)
{
	const char *path = tmp_path("filling"), *tmp = tmp_path("filling.tmp");
	struct rlimit old, small = {300000, 300000};
	struct out *out = NULL;
	struct err err = {0};
	char piece[10000] = "";
	int i, rc;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(out_open(path, false, &out, NULL), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (i = 0; i < 100 && !out_failed(out); i++)
		out_put(out, piece, sizeof(piece));
	rc = out_close(out, &err);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_true(i < 100);
	assert_int_equal(rc, ERR_IO);
	assert_non_null(strstr(err.text, "filling"));
	assert_false(os_exists(path));
	assert_false(os_exists(tmp));
}

/* In a directory that others may write, a link at the name of our temporary file is a trap. */
TEST(out_does_not_write_through_a_link_at_its_tmp_name)
{
	const char *path = tmp_path("trap"), *victim = tmp_path("victim");
	struct os_file *file = NULL;
	struct out *out = NULL;
	struct os_file_info info;

	assert_int_equal(os_open(victim, OS_CREATE, &file, NULL), 0);
	os_close(file);
	assert_int_equal(symlink("victim", tmp_path("trap.tmp")), 0);
	assert_int_equal(out_open(path, false, &out, NULL), 0);
	out_puts(out, "secret");
	assert_int_equal(out_close(out, NULL), 0);
	assert_true(is_regular(path));
	assert_int_equal(os_path_info(victim, &info, NULL), 0);
	assert_true(info.size_bytes == 0);
}

/* A pipe that nobody reads: opening it for writing would wait for ever. */
TEST(out_does_not_wait_for_a_pipe_at_its_tmp_name)
{
	const char *path = tmp_path("piped"), *tmp = tmp_path("piped.tmp");
	struct out *out = NULL;
	struct stat st;

	assert_int_equal(mkfifo(tmp, 0666), 0);
	alarm(10);
	assert_int_equal(out_open(path, false, &out, NULL), 0);
	out_puts(out, "secret");
	assert_int_equal(out_close(out, NULL), 0);
	alarm(0);
	assert_true(is_regular(path));
	assert_int_equal(lstat(tmp, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

/* The name itself may have become one between a look at it and its opening. */
TEST(out_does_not_wait_for_a_pipe_that_nobody_reads)
{
	const char *path = tmp_path("pipe");
	struct out *out = NULL;
	struct err err = {0};
	char text[8] = "";
	int reader;

	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(10);
	assert_int_equal(out_open(path, false, &out, &err), ERR_ACCESS);
	assert_non_null(strstr(err.text, "a pipe that nobody reads"));
	reader = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(out_open(path, false, &out, NULL), 0);
	out_puts(out, "text");
	assert_int_equal(out_close(out, NULL), 0);
	alarm(0);
	assert_int_equal(syscall(SYS_read, reader, text, sizeof(text)), 4);
	close(reader);
}

/* It belongs to somebody else, who could read on in it. Only root can make such a file here. */
TEST(out_does_not_use_a_file_that_another_user_prepared)
{
	const char *path = tmp_path("prepared"), *tmp = tmp_path("prepared.tmp");
	struct os_file *file = NULL;
	struct out *out = NULL;
	struct stat st;

	assert_int_equal(os_open(tmp, OS_CREATE, &file, NULL), 0);
	os_close(file);
	if (chown(tmp, 65534, 65534) != 0)
		skip();
	assert_int_equal(out_open(path, false, &out, NULL), 0);
	out_puts(out, "secret");
	assert_int_equal(out_close(out, NULL), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(lstat(tmp, &st), 0);
	assert_int_equal(st.st_size, 0);
}

TEST(two_outputs_of_one_name_do_not_share_a_tmp_file)
{
	const char *path = tmp_path("twice");
	struct out *first = NULL, *second = NULL;
	struct buf text = {0};

	assert_int_equal(out_open(path, true, &first, NULL), 0);
	assert_int_equal(out_open(path, true, &second, NULL), 0);
	out_puts(first, "one");
	out_puts(second, "two");
	assert_int_equal(out_close(first, NULL), 0);
	assert_int_equal(os_load(path, 10, &text, NULL), 0);
	assert_string_equal(buf_text(&text), "one");
	buf_reset(&text);
	assert_int_equal(out_close(second, NULL), 0);
	assert_int_equal(os_load(path, 10, &text, NULL), 0);
	assert_string_equal(buf_text(&text), "two");
	buf_free(&text);
}

static unsigned files_synced, directories_synced;

/* In place of the C library's. */
int fsync(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	files_synced += S_ISREG(st.st_mode);
	directories_synced += S_ISDIR(st.st_mode);
	return (int)syscall(SYS_fsync, fd);
}

TEST(out_is_on_the_disk_with_its_name)
{
	struct out *out = NULL;

	files_synced = directories_synced = 0;
	assert_int_equal(out_open(tmp_path("named"), false, &out, NULL), 0);
	assert_int_equal(out_close(out, NULL), 0);
	assert_int_equal(files_synced, 1);
	assert_int_equal(directories_synced, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(out_writes_into_a_device_and_replaces_nothing),
		cmocka_unit_test(out_under_sudo_belongs_to_who_typed_it),
		cmocka_unit_test(out_on_a_full_device_reports_it_when_closed),
		cmocka_unit_test(out_whose_disk_fills_up_leaves_the_old_file_and_no_other),
		cmocka_unit_test(out_does_not_write_through_a_link_at_its_tmp_name),
		cmocka_unit_test(out_does_not_wait_for_a_pipe_at_its_tmp_name),
		cmocka_unit_test(out_does_not_wait_for_a_pipe_that_nobody_reads),
		cmocka_unit_test(out_does_not_use_a_file_that_another_user_prepared),
		cmocka_unit_test(two_outputs_of_one_name_do_not_share_a_tmp_file),
		cmocka_unit_test(out_is_on_the_disk_with_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
