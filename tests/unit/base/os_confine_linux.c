/* What processes may still do that have given up rights: each child gives them up, and tries. */
#include "base/array.h"
#include "base/os.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

#define GAVE_UP_NOTHING 255
#define NO_PROCESS 0x3fffffff            /* more than any process number */

/* As the filter of a service may: SystemCallFilter=~@privileged. */
static void forbid_capset(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_capset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {COUNT_OF(code), code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool is_refused(bool failed)
{
	return failed && errno == EPERM;
}

/* One bit for each thing that is allowed and should not be. */
static int try_everything(void)
{
	char *argv[] = {(char[]){"false"}, NULL};   /* if it starts, that is the result */
	int all = 0;

	if (!os_confine())
		return GAVE_UP_NOTHING;
	all |= !is_refused(open("/etc/passwd", O_RDONLY) < 0) << 0;
	all |= !is_refused(socket(AF_INET, SOCK_STREAM, 0) < 0) << 1;
	all |= !is_refused(kill(getppid(), 0) != 0) << 2;
	all |= !is_refused(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				0) == MAP_FAILED) << 3;
	all |= !is_refused(fork() < 0) << 4;
	all |= !is_refused(execv("/bin/false", argv) != 0) << 5;
	free(malloc(1 << 20));
	return all;
}

static int try_everything_without_capset(void)
{
	forbid_capset();
	return try_everything();
}

/* Each call would succeed, or fail in another way: its target is none. */
static int try_what_recording_never_does(void)
{
	struct iovec own = {(char[1]){0}, 1};
	int all = 0;

	if (!os_forbid_unused_calls())
		return GAVE_UP_NOTHING;
	all |= !is_refused(process_vm_writev(getpid(), &own, 1, &own, 1, 0) < 0) << 0;
	all |= !is_refused(ptrace(PTRACE_POKEDATA, NO_PROCESS, NULL, NULL) != 0) << 1;
	all |= !is_refused(ptrace(PTRACE_SETREGS, NO_PROCESS, NULL, NULL) != 0) << 2;
	all |= !is_refused(unshare(0) != 0) << 3;
	all |= !is_refused(mount("none", "/none", "none", 0, NULL) != 0 && errno != ENOENT) << 4;
	all |= !is_refused(syscall(SYS_userfaultfd, 0) < 0) << 5;
	all |= !is_refused(syscall(425, 1, NULL) < 0 && errno != EFAULT) << 6;
	return all;
}

/* The same for what must go on. */
static int try_what_recording_does(void)
{
	char *argv[] = {(char[]){"true"}, NULL};
	pid_t pid;
	int status = 1, all = 0;

	if (!os_forbid_unused_calls())
		return GAVE_UP_NOTHING;
	all |= (ptrace(PTRACE_SEIZE, NO_PROCESS, NULL, NULL) == 0 || errno != ESRCH) << 0;
	all |= (ptrace(PTRACE_GETREGS, NO_PROCESS, NULL, NULL) == 0 || errno != ESRCH) << 1;
	all |= (syscall(SYS_perf_event_open, NULL, 0, 0, -1, 0) >= 0 || errno != EFAULT) << 2;
	pid = fork();
	if (pid == 0) {
		execv("/bin/true", argv);
		_exit(1);
	}
	all |= (waitpid(pid, &status, 0) != pid || status) << 3;
	return all;
}

/* What `try` returns in a process of its own. */
static void assert_tried(int (*try)(void))
{
	int status;
	pid_t pid;

	if (sanitized) {
		print_message("sanitizers need more than such a process may do\n");
		skip();
	}
	pid = fork();
	if (pid == 0)
		_exit(try());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(a_confined_process_opens_connects_starts_and_signals_nothing)
{
	assert_tried(try_everything);
}

TEST(so_does_one_that_may_not_change_its_capabilities)
{
	assert_tried(try_everything_without_capset);
}

TEST(a_process_that_records_changes_no_other_process_and_no_machine)
{
	assert_tried(try_what_recording_never_does);
}

TEST(it_can_still_stop_threads_look_at_them_open_events_and_start_programs)
{
	assert_tried(try_what_recording_does);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_confined_process_opens_connects_starts_and_signals_nothing),
		cmocka_unit_test(so_does_one_that_may_not_change_its_capabilities),
		cmocka_unit_test(a_process_that_records_changes_no_other_process_and_no_machine),
		cmocka_unit_test(
			it_can_still_stop_threads_look_at_them_open_events_and_start_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
