/*
 * What ends the wait of a source of programs that leave files in /tmp; an eventfd stands for
 * inotify.
 */
#include "source/host/tmp_wait_linux.h"
#include "tests/support/test.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOUR_NS (3600 * NS_PER_SEC)

static bool can_be_read(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

TEST(a_wake_or_what_is_due_ends_it)
{
	struct tmp_wait w = {.wake = os_wake_new(), .mounts = -1};
	uint64_t due_ns = os_now_ns() + NS_PER_MS;
	struct pollfd p[TMP_POLLED];

	assert_non_null(w.wake);
	tmp_wait(&w, due_ns, -1, p, 0);
	assert_true(os_now_ns() >= due_ns);
	tmp_wait(&w, 0, -1, p, 0);
	os_wake(w.wake);
	tmp_wait(&w, os_now_ns() + HOUR_NS, -1, p, 0);
	assert_false(can_be_read(os_wake_fd(w.wake)));
	assert_int_equal(w.noisy_until_ns, 0);
	os_wake_free(w.wake);
}

TEST(a_descriptor_of_its_own_ends_it_and_is_said)
{
	struct tmp_wait w = {.wake = os_wake_new(), .gather_ns = NS_PER_MS, .mounts = -1};
	int quiet = eventfd(0, 0), ready = eventfd(1, 0);
	struct pollfd p[2 + TMP_POLLED] = {{.fd = quiet, .events = POLLIN},
					   {.fd = ready, .events = POLLIN}};

	assert_non_null(w.wake);
	tmp_wait(&w, os_now_ns() + HOUR_NS, -1, p, 2);
	assert_int_equal(p[0].revents, 0);
	assert_int_equal(p[1].revents, POLLIN);
	close(quiet);
	close(ready);
	os_wake_free(w.wake);
}

/* It is not read here: so it would end every wait at once. */
TEST(a_directory_is_not_listened_to_for_a_while_after_a_notice)
{
	struct tmp_wait w = {.wake = os_wake_new(), .mounts = -1};
	int watch = eventfd(1, 0);
	uint64_t noisy_until_ns;
	struct pollfd p[TMP_POLLED];

	assert_non_null(w.wake);
	tmp_wait(&w, os_now_ns() + HOUR_NS, watch, p, 0);
	noisy_until_ns = w.noisy_until_ns;
	assert_true(noisy_until_ns > 0);
	tmp_wait(&w, os_now_ns() + HOUR_NS, watch, p, 0);
	assert_true(os_now_ns() >= noisy_until_ns);
	tmp_wait(&w, os_now_ns() + HOUR_NS, watch, p, 0);
	assert_true(w.noisy_until_ns > noisy_until_ns);
	close(watch);
	os_wake_free(w.wake);
}

/* Each wait is an hour: only what is mounted ends it. */
static int mounts_in_a_namespace_of_its_own(void)
{
	struct tmp_wait w = {.wake = os_wake_new()};
	struct pollfd p[TMP_POLLED];
	int failed = 0;

	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return 77;
	tmp_wait_open(&w);
	/* A new namespace may count as a change; the next one is not listened to at once. */
	tmp_wait(&w, os_now_ns() + NS_PER_MS, -1, p, 0);
	failed |= w.replaced;
	if (mount("none", "/mnt", "tmpfs", 0, NULL) != 0)
		return 77;
	tmp_wait(&w, os_now_ns() + HOUR_NS, -1, p, 0);  /* perhaps only what TMP_NOISY_NS put off */
	tmp_wait(&w, os_now_ns() + 2 * TMP_NOISY_NS, -1, p, 0);
	failed |= w.replaced << 1;
	mount("none", "/tmp", "tmpfs", 0, NULL);
	while (!w.replaced)
		tmp_wait(&w, os_now_ns() + HOUR_NS, -1, p, 0);
	w.replaced = false;
	umount("/tmp");
	while (!w.replaced)
		tmp_wait(&w, os_now_ns() + HOUR_NS, -1, p, 0);
	tmp_wait_close(&w);
	os_wake_free(w.wake);
	return failed;
}

TEST(a_mount_ends_it_and_one_on_tmp_is_said)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		_exit(mounts_in_a_namespace_of_its_own());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("a mount on /tmp: needs root, to have a namespace of mounts\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wake_or_what_is_due_ends_it),
		cmocka_unit_test(a_descriptor_of_its_own_ends_it_and_is_said),
		cmocka_unit_test(a_directory_is_not_listened_to_for_a_while_after_a_notice),
		cmocka_unit_test(a_mount_ends_it_and_one_on_tmp_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
