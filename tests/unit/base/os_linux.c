#include "base/array.h"
#include "base/os.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(os_create_and_replace_never_follow_a_link)
{
	struct os_file *file = NULL;

	assert_int_equal(symlink("target", tmp_path("link")), 0);
	assert_int_equal(os_open(tmp_path("link"), OS_CREATE, &file, NULL), ERR_EXISTS);
	assert_true(os_open(tmp_path("link"), OS_REPLACE, &file, NULL) != 0);
	assert_true(os_lock(tmp_path("link"), &file, NULL) != 0);
	assert_null(file);
	assert_false(os_exists(tmp_path("target")));
	assert_true(os_exists(tmp_path("link")));
}

/*
 * Each of these would make a plain open() wait, or do something; a link to a file is what one may
 * ask for.
 */
TEST(os_plain_opens_no_pipe_no_device_and_no_socket)
{
	static const enum os_open ways[] = {OS_READ_PLAIN, OS_READ_NO_LINK};
	static const char *const others[] = {"pipe",   "to_pipe",   "to_device",
					     "socket", "/dev/zero", "/proc"};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct os_file *file = NULL;
	struct err err;
	size_t i, k;

	assert_int_equal(mkfifo(tmp_path("pipe"), 0600), 0);
	assert_int_equal(symlink("pipe", tmp_path("to_pipe")), 0);
	assert_int_equal(symlink("/dev/null", tmp_path("to_device")), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", tmp_path("socket"));
	assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof(address)), 0);
	for (k = 0; k < 2; k++)
		for (i = 0; i < COUNT_OF(others); i++) {
			const char *path = others[i][0] == '/' ? others[i] : tmp_path(others[i]);

			assert_int_equal(os_open(path, ways[k], &file, &err), ERR_ACCESS);
			assert_non_null(strstr(err.text, "is not a regular file"));
		}
	assert_null(file);
	close(s);
}

TEST(os_plain_follows_a_link_and_no_link_does_not)
{
	struct os_file *file = NULL;
	struct os_file_info info = {0};

	close(open(tmp_path("linked"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(symlink("linked", tmp_path("to_linked")), 0);
	assert_int_equal(symlink("nowhere", tmp_path("to_nowhere")), 0);
	assert_int_equal(os_open(tmp_path("to_linked"), OS_READ_NO_LINK, &file, NULL), ERR_ACCESS);
	assert_int_equal(os_open(tmp_path("to_nowhere"), OS_READ_NO_LINK, &file, NULL), ERR_ACCESS);
	assert_int_equal(os_open(tmp_path("to_nowhere"), OS_READ_PLAIN, &file, NULL),
			 ERR_NOT_FOUND);
	assert_int_equal(os_open(tmp_path("to_linked"), OS_READ_PLAIN, &file, NULL), 0);
	/* Whose it is tells the open file, and it stays that file. */
	assert_int_equal(unlink(tmp_path("linked")), 0);
	if (os_uid() == 0)
		assert_int_equal(fchown(os_file_fd(file), 12345, 12345), 0);
	assert_int_equal(os_file_info(file, &info, NULL), 0);
	assert_true(info.regular);
	assert_int_equal(info.uid, os_uid() ? os_uid() : 12345);
	os_close(file);
}

/* The kernel would let us wait up to 45 s for its owner to give the lease back. */
TEST(os_plain_does_not_wait_for_a_lease)
{
	struct os_file *file = NULL;
	int fd = open(tmp_path("leased"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	signal(SIGIO, SIG_IGN);
	if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
		close(fd);
		print_message("no leases in the directory of tests\n");
		skip();
	}
	assert_int_equal(os_open(tmp_path("leased"), OS_READ_PLAIN, &file, NULL), ERR_BUSY);
	assert_null(file);
	close(fd);
	assert_int_equal(os_open(tmp_path("leased"), OS_READ_PLAIN, &file, NULL), 0);
	os_close(file);
}

/* A process whose root is the directory; ends with the test. */
static pid_t process_in(const char *root)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot(root) == 0 && chdir("/") == 0 && write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ready[0]);
	return pid;
}

static void put_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* A program in a container must not have us open a file of the host. */
TEST(links_below_a_process_s_root_stay_in_it)
{
	static const char *const names[] = {"link", "up", "dir/link"};
	struct os_file_info inside, seen;
	struct os_file *file = NULL;
	char path[100];
	unsigned i;
	pid_t pid;

	assert_int_equal(mkdir(tmp_path("root"), 0700), 0);
	assert_int_equal(mkdir(tmp_path("root/to"), 0700), 0);
	put_text(tmp_path("secret"), "outside");
	put_text(tmp_path("root/secret"), "inside");
	assert_int_equal(symlink("/secret", tmp_path("root/link")), 0);
	assert_int_equal(symlink("../../../../secret", tmp_path("root/up")), 0);
	assert_int_equal(symlink("/to", tmp_path("root/dir")), 0);
	assert_int_equal(symlink("../../secret", tmp_path("root/to/link")), 0);
	assert_int_equal(os_path_info(tmp_path("root/secret"), &inside, NULL), 0);
	pid = process_in(tmp_path("root"));
	if (!pid) {
		print_message("no other root without root's rights\n");
		skip();
	}
	for (i = 0; i < COUNT_OF(names); i++) {
		snprintf(path, sizeof(path), "/proc/%d/root/%s", (int)pid, names[i]);
		assert_int_equal(os_path_info(path, &seen, NULL), 0);
		assert_int_equal(seen.ino, inside.ino);
		assert_int_equal(os_open(path, OS_READ_PLAIN, &file, NULL), 0);
		assert_int_equal(os_file_info(file, &seen, NULL), 0);
		assert_int_equal(seen.ino, inside.ino);
		os_close(file);
		assert_true(os_exists(path));
	}
	snprintf(path, sizeof(path), "/proc/%d/root/absent", (int)pid);
	assert_int_equal(os_open(path, OS_READ_PLAIN, &file, NULL), ERR_NOT_FOUND);
	assert_int_equal(os_path_info(path, &seen, NULL), ERR_NOT_FOUND);
	assert_false(os_exists(path));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static unsigned mode_of(const char *path)
{
	struct os_file_info info = {0};

	assert_int_equal(os_path_info(path, &info, NULL), 0);
	assert_int_equal(info.uid, os_uid());
	return info.mode;
}

TEST(os_files_and_directories_are_their_owner_s)
{
	struct os_file *file = NULL;

	umask(0);
	assert_int_equal(os_open(tmp_path("own"), OS_CREATE, &file, NULL), 0);
	os_close(file);
	assert_int_equal(mode_of(tmp_path("own")), 0600);
	assert_int_equal(os_mkdirs(tmp_path("dir/below"), NULL), 0);
	assert_int_equal(mode_of(tmp_path("dir")), 0700);
	umask(022);
}

TEST(os_load_reads_proc_files_that_have_no_size)
{
	struct buf text = {0};

	assert_int_equal(os_load("/proc/self/status", 1 << 20, &text, NULL), 0);
	assert_memory_equal(buf_text(&text), "Name:", 5);
	buf_free(&text);
}

TEST(os_signals_arrive_by_waiting_only)
{
	static const int stops[] = {SIGINT, SIGTERM};
	int terminal = open("/dev/tty", O_RDWR | O_NOCTTY);
	size_t i;

	assert_int_equal(os_signals_open(NULL), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(kill(getpid(), stops[i]), 0);
		assert_int_equal(os_signal_wait(NS_PER_SEC), OS_SIGNAL_STOP);
	}
	/* Who has no terminal is a daemon, and goes on. */
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	assert_int_equal(os_signal_wait(NS_PER_SEC),
			 terminal < 0 ? OS_SIGNAL_REOPEN : OS_SIGNAL_STOP);
	close(terminal);
	assert_int_equal(kill(getpid(), SIGUSR2), 0);
	assert_int_equal(os_signal_wait(NS_PER_SEC), OS_SIGNAL_SNAPSHOT);
	assert_int_equal(os_signal_wait(0), OS_SIGNAL_NONE);
	os_signals_close();
}

TEST(os_wake_wait_ends_by_a_signal_which_stays_to_be_taken)
{
	struct os_wake *wake = os_wake_new();
	uint64_t before = os_now_ns();

	assert_int_equal(os_signals_open(NULL), 0);
	assert_int_equal(kill(getpid(), SIGUSR2), 0);
	os_wake_wait(wake, NULL, true, 60 * NS_PER_SEC);
	assert_true(os_now_ns() - before < 30 * NS_PER_SEC);
	assert_int_equal(os_signal_wait(0), OS_SIGNAL_SNAPSHOT);
	before = os_now_ns();
	os_wake_wait(wake, NULL, true, 20 * NS_PER_MS);      /* it has been taken */
	assert_true(os_now_ns() - before >= 19 * NS_PER_MS);
	os_signals_close();
	os_wake_free(wake);
}

/* What a caller without manners sends; it then closes its side or keeps silent. */
static int call_with(const char *path, const char *bytes, size_t n)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
	return fd;
}

TEST(os_ipc_ignores_callers_that_send_no_line)
{
	struct os_ipc *ipc = NULL;
	struct os_ipc_call *call = NULL;
	struct buf line = {0};
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "build/t%u-ctl", os_pid());
	assert_int_equal(os_ipc_listen(path, &ipc, NULL), 0);
	assert_int_equal(mode_of(path), 0600);
	close(call_with(path, "", 0));
	assert_int_equal(os_ipc_next(ipc, NS_PER_SEC, &line, &call, NULL), ERR_NOT_FOUND);
	close(call_with(path, "no line feed", 12));
	assert_int_equal(os_ipc_next(ipc, NS_PER_SEC, &line, &call, NULL), ERR_NOT_FOUND);
	fd = call_with(path, "silence", 7);
	assert_int_equal(os_ipc_next(ipc, NS_PER_SEC, &line, &call, NULL), ERR_NOT_FOUND);
	close(fd);
	assert_null(call);
	fd = call_with(path, "well\n", 5);
	assert_int_equal(os_ipc_next(ipc, NS_PER_SEC, &line, &call, NULL), 0);
	assert_string_equal(buf_text(&line), "well");
	os_ipc_answer(call, "done");
	close(fd);
	os_ipc_close(ipc);
	assert_false(os_exists(path));
	buf_free(&line);
}

/* The lowest number that is free is the first beyond the limit. */
static struct rlimit take_descriptors(rlim_t n)
{
	struct rlimit old, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){.rlim_cur = n, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return old;
}

static rlim_t lowest_free(void)
{
	int fd = dup(STDIN_FILENO);

	assert_true(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

/* One that does not rest goes round some 100,000 times. */
TEST(os_poll_rests_where_it_is_refused)
{
	struct pollfd p[2] = {{.fd = -1, .revents = POLLIN}, {.fd = -1, .revents = POLLIN}};
	struct rlimit old = take_descriptors(1);
	uint64_t end_ns = os_now_ns() + 200 * NS_PER_MS;
	unsigned rounds = 0, ready = 0;

	for (; os_now_ns() < end_ns; rounds++)
		ready += os_poll(p, 2, NS_PER_SEC);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(ready, 0);
	assert_int_equal(p[0].revents | p[1].revents, 0);
	assert_in_range(rounds, 1, 10);
}

/* A limit of memory that sees 0 bytes holds nothing. */
TEST(os_self_usage_knows_the_memory_without_a_descriptor)
{
	struct rlimit old = take_descriptors(lowest_free());
	uint64_t cpu_ns, rss_bytes;

	os_self_usage(&cpu_ns, &rss_bytes);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_true(rss_bytes >= 100000);
}

TEST(os_ipc_lets_callers_wait_until_a_descriptor_is_free)
{
	struct os_wake *wake = os_wake_new();
	struct os_ipc *ipc = NULL;
	struct os_ipc_call *call = NULL;
	struct buf line = {0};
	struct rlimit old;
	struct err err;
	uint64_t end_ns;
	unsigned rounds;
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "build/t%u-full", os_pid());
	assert_int_equal(os_ipc_listen(path, &ipc, NULL), 0);
	fd = call_with(path, "well\n", 5);
	old = take_descriptors(lowest_free());
	end_ns = os_now_ns() + 600 * NS_PER_MS;
	for (rounds = 0; os_now_ns() < end_ns; rounds++) {
		os_wake_wait(wake, ipc, false, 60 * NS_PER_SEC);
		assert_int_equal(os_ipc_next(ipc, 0, &line, &call, &err), ERR_LIMIT);
	}
	assert_non_null(strstr(err.text, "raise the limit"));
	assert_in_range(rounds, 1, 10);
	setrlimit(RLIMIT_NOFILE, &old);
	os_wake_wait(wake, ipc, false, 60 * NS_PER_SEC);
	assert_int_equal(os_ipc_next(ipc, 0, &line, &call, NULL), 0);
	os_ipc_answer(call, "done");
	close(fd);
	os_ipc_close(ipc);
	os_wake_free(wake);
	buf_free(&line);
}

TEST(base_name_follows_the_hosts_last_separator)
{
	static const char *const pairs[][2] = {{"/a/b", "b"},
					       {"back\\slash", "back\\slash"},
					       {"/a/b\\c", "b\\c"},
					       {"/a/", "a/"},
					       {"", ""}};
	size_t i;

	for (i = 0; i < COUNT_OF(pairs); i++)
		assert_string_equal(os_base_name(pairs[i][0]), pairs[i][1]);
}

/* ---- priorities ------------------------------------------------------------------------------ */

struct low {
	struct os_mutex *lock;
	int before, held, asked, after, hurried;
};

static int own_nice(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static void hold_a_lock(void *ctx)
{
	struct low *low = ctx;

	os_thread_priority(OS_PRIORITY_LOW);
	low->before = own_nice();
	os_mutex_lock(low->lock);
	low->held = own_nice();
	os_thread_priority(OS_PRIORITY_LOWEST);
	low->asked = own_nice();
	os_mutex_unlock(low->lock);
	low->after = own_nice();
}

TEST(os_a_priority_counts_once_no_mutex_is_held)
{
	struct low low = {.lock = os_mutex_new()};
	struct os_thread *thread = NULL;

	if (setpriority(PRIO_PROCESS, 0, -10) != 0) {
		print_message("this user may not raise priorities\n");
		os_mutex_free(low.lock);
		skip();
	}
	setpriority(PRIO_PROCESS, 0, 0);
	assert_int_equal(os_thread_start("low", hold_a_lock, &low, &thread, NULL), 0);
	os_thread_join(thread);
	assert_int_equal(low.before, 10);
	assert_int_equal(low.held, 10);
	assert_int_equal(low.asked, 10);
	assert_int_equal(low.after, 19);
	os_mutex_free(low.lock);
}

static void be_hurried(void *ctx)
{
	struct low *low = ctx;

	os_thread_priority(OS_PRIORITY_LOW);
	os_mutex_lock(low->lock);            /* until the test has hurried this thread */
	os_mutex_unlock(low->lock);
	low->hurried = own_nice();
}

TEST(os_thread_hurry_outlasts_a_mutex)
{
	struct low low = {.lock = os_mutex_new()};
	struct os_thread *thread = NULL;
	uint64_t progress;

	if (setpriority(PRIO_PROCESS, 0, -10) != 0) {
		print_message("this user may not raise priorities\n");
		os_mutex_free(low.lock);
		skip();
	}
	setpriority(PRIO_PROCESS, 0, 0);
	os_mutex_lock(low.lock);
	assert_int_equal(os_thread_start("low", be_hurried, &low, &thread, NULL), 0);
	while (!os_thread_waits(thread, &progress))
		os_sleep_ns(NS_PER_MS);
	os_thread_hurry(thread);
	os_mutex_unlock(low.lock);
	os_thread_join(thread);
	assert_int_equal(low.hurried, -10);
	os_mutex_free(low.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base_name_follows_the_hosts_last_separator),
		cmocka_unit_test(os_create_and_replace_never_follow_a_link),
		cmocka_unit_test(os_plain_opens_no_pipe_no_device_and_no_socket),
		cmocka_unit_test(os_plain_follows_a_link_and_no_link_does_not),
		cmocka_unit_test(os_plain_does_not_wait_for_a_lease),
		cmocka_unit_test(links_below_a_process_s_root_stay_in_it),
		cmocka_unit_test(os_files_and_directories_are_their_owner_s),
		cmocka_unit_test(os_load_reads_proc_files_that_have_no_size),
		cmocka_unit_test(os_signals_arrive_by_waiting_only),
		cmocka_unit_test(os_wake_wait_ends_by_a_signal_which_stays_to_be_taken),
		cmocka_unit_test(os_ipc_ignores_callers_that_send_no_line),
		cmocka_unit_test(os_self_usage_knows_the_memory_without_a_descriptor),
		cmocka_unit_test(os_ipc_lets_callers_wait_until_a_descriptor_is_free),
		cmocka_unit_test(os_poll_rests_where_it_is_refused),
		cmocka_unit_test(os_a_priority_counts_once_no_mutex_is_held),
		cmocka_unit_test(os_thread_hurry_outlasts_a_mutex),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
