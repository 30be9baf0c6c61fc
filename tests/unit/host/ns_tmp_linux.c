/*
 * Files in the /tmp of other mount namespaces: of two children, one with a tmpfs there, one with a
 * file system that never answers (FUSE, without a server). Needs root.
 */
#include "base/os.h"
#include "source/host/ns_hung_linux.h"
#include "source/host/ns_tmp_linux.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);

	if (fd < 0 || write(fd, "data", 4) != 4)
		_exit(3);
	close(fd);
}

/*
 * hsperfdata_a holds one of this process, one of nobody, and a link; hsperfdata_b everybody can
 * write to.
 */
static void fill_tmp(void)
{
	char path[60];

	if (mount("none", "/tmp", "tmpfs", 0, NULL) != 0)
		_exit(2);
	mkdir("/tmp/hsperfdata_a", 0700);
	mkdir("/tmp/hsperfdata_b", 0700);
	chmod("/tmp/hsperfdata_b", 0777);
	write_file("/tmp/hsperfdata_a/999999");
	snprintf(path, sizeof(path), "/tmp/hsperfdata_b/%d", (int)getpid());
	write_file(path);
	snprintf(path, sizeof(path), "/tmp/hsperfdata_a/%d", (int)getpid());
	write_file(path);
	if (symlink("/etc/passwd", "/tmp/hsperfdata_a/1") != 0)
		_exit(2);
}

/* As a program that begins anew as the same process. */
static void write_again(int number)
{
	char path[60];

	(void)number;
	snprintf(path, sizeof(path), "/tmp/hsperfdata_a/%d", (int)getpid());
	unlink(path);
	write_file(path);
}

/* Who looks into it waits until this process has ended. */
static void hang_tmp(void)
{
	char options[80];
	int fuse = open("/dev/fuse", O_RDWR);

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || mount("none", "/tmp", "fuse.hangs", 0, options) != 0)
		_exit(2);
}

/* A process with mounts of its own; 0 = not permitted here. */
static pid_t child(void (*prepare)(void))
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) != 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
			_exit(2);
		prepare();
		signal(SIGUSR1, write_again);
		if (write(ready[1], "x", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Whatever is found within 60 s, as often as the source's thread asks. */
static bool take(struct ns_tmp *t, struct ns_tmp_file *file)
{
	uint64_t end_ns = os_now_ns() + 60 * NS_PER_SEC;

	while (os_now_ns() < end_ns) {
		if (ns_tmp_take(t, os_now_ns(), file))
			return true;
		os_sleep_ns(10 * NS_PER_MS);
	}
	return false;
}

static bool is_never_there(const char *name, uint32_t *pid)
{
	(void)name, (void)pid;
	return false;
}

TEST(the_file_of_a_process_is_found_where_it_has_it)
{
	pid_t pid = child(fill_tmp);
	const struct ns_tmp_kind no_kind = {.programs = "no", .is_socket = is_never_there};
	struct ns_tmp_file file;
	struct ns_tmp *t = NULL;
	char text[8] = "";

	if (pid == 0) {
		print_message("this user may not make a mount namespace\n");
		skip();
	}
	assert_false(ns_tmp_is_here((uint32_t)pid));
	assert_true(ns_tmp_is_here((uint32_t)getpid()));
	assert_true(ns_tmp_has((uint32_t)pid, &ns_tmp_jvm));
	assert_false(ns_tmp_has((uint32_t)pid, &no_kind));
	assert_int_equal(ns_tmp_open(&ns_tmp_jvm, NULL, NULL, &t, NULL), 0);
	do
		assert_true(take(t, &file));         /* this machine may have containers */
	while (file.pid != (uint32_t)pid && close(file.fd) == 0);
	assert_int_equal(file.uid, geteuid());
	assert_int_equal(read(file.fd, text, 4), 4);
	assert_string_equal(text, "data");
	close(file.fd);
	ns_tmp_close(t);
	end(pid);
}

static void take_of(struct ns_tmp *t, pid_t pid)
{
	struct ns_tmp_file file;

	do
		assert_true(take(t, &file));
	while (close(file.fd) == 0 && file.pid != (uint32_t)pid);
}

TEST(a_later_file_of_a_process_that_is_known_is_found)
{
	pid_t pid = child(fill_tmp);
	struct ns_tmp *t = NULL;

	if (pid == 0) {
		print_message("this user may not make a mount namespace\n");
		skip();
	}
	assert_int_equal(ns_tmp_open(&ns_tmp_jvm, NULL, NULL, &t, NULL), 0);
	take_of(t, pid);
	kill(pid, SIGUSR1);
	take_of(t, pid);
	ns_tmp_close(t);
	end(pid);
}

TEST(one_that_hangs_does_not_hide_the_others)
{
	pid_t hangs = child(hang_tmp), pid = hangs ? child(fill_tmp) : 0;
	struct ns_tmp_file file;
	struct ns_tmp *t = NULL;
	struct log *log = NULL;

	if (pid == 0) {
		end(hangs);
		print_message("this user may not mount FUSE in a namespace\n");
		skip();
	}
	assert_int_equal(log_open("/dev/null", &log, NULL), 0);
	assert_int_equal(ns_tmp_open(&ns_tmp_jvm, NULL, log, &t, NULL), 0);
	do
		assert_true(take(t, &file));
	while (file.pid != (uint32_t)pid && close(file.fd) == 0);
	close(file.fd);
	ns_tmp_close(t);
	end(pid);
	end(hangs);
	log_close(log);
}

static bool said(const char *path, const char *text)
{
	struct buf all = {0};
	bool found = os_load(path, 1 << 20, &all, NULL) == 0 && strstr(buf_text(&all), text);

	buf_free(&all);
	return found;
}

/* As a source calls it, but 3 s later, until the log says so. */
static void take_until_said(struct ns_tmp *t, struct log *log, const char *path, const char *text)
{
	uint64_t end_ns = os_now_ns() + 30 * NS_PER_SEC;
	struct ns_tmp_file file;

	while (!said(path, text) && os_now_ns() < end_ns) {
		if (ns_tmp_take(t, os_now_ns() + 3 * NS_PER_SEC, &file))
			close(file.fd);
		log_drain(log);
		os_sleep_ns(NS_PER_MS);
	}
	assert_true(said(path, text));
}

TEST(nobody_looks_while_four_hang_and_again_when_one_answers)
{
	pid_t hangs[NS_HUNG_MAX], pid = 0;
	struct ns_tmp_file file = {.fd = -1};
	const char *path = tmp_path("log");
	struct ns_tmp *t = NULL;
	struct log *log = NULL;
	unsigned i, n = 0;

	for (i = 0; i < NS_HUNG_MAX; i++)
		n += (hangs[i] = child(hang_tmp)) != 0;
	assert_int_equal(log_open(path, &log, NULL), 0);
	if (n == NS_HUNG_MAX) {
		assert_int_equal(ns_tmp_open(&ns_tmp_jvm, NULL, log, &t, NULL), 0);
		take_until_said(t, log, path,
				"Java programs in containers are no longer looked for");
		pid = child(fill_tmp);
		end(hangs[0]);
		hangs[0] = 0;
		do
			assert_true(take(t, &file));
		while (file.pid != (uint32_t)pid && close(file.fd) == 0);
		close(file.fd);
		log_drain(log);
		assert_true(said(path, "answers again"));
	}
	ns_tmp_close(t);
	end(pid);
	for (i = 0; i < NS_HUNG_MAX; i++)
		end(hangs[i]);
	log_close(log);
	if (n != NS_HUNG_MAX) {
		print_message("this user may not mount FUSE in a namespace\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_file_of_a_process_is_found_where_it_has_it),
		cmocka_unit_test(a_later_file_of_a_process_that_is_known_is_found),
		cmocka_unit_test(one_that_hangs_does_not_hide_the_others),
		cmocka_unit_test(nobody_looks_while_four_hang_and_again_when_one_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
