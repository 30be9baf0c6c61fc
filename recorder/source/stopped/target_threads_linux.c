#include "source/stopped/target_threads_linux.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_NS (500 * NS_PER_MS)      /* it stops when it has a CPU; the machine may be busy */
#define SPIN_NS (200 * NS_PER_SEC / 1000000) /* of these without sleeping */
#define SPIN_PAUSE_NS (20 * NS_PER_SEC / 1000000)
#define CS_32_BIT 0x23u                      /* __USER32_CS */

/* ---- copying --------------------------------------------------------------------------------- */

/*
 * While a thread stands this one goes before all others, if it may (CAP_SYS_NICE): on a busy
 * machine the thread would stand for as long as we wait for a CPU. Each time is a fraction of a
 * millisecond.
 */
static bool go_first(bool on)
{
	const struct sched_param first = {.sched_priority = 1}, usual = {0};

	return sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, on ? &first : &usual) == 0;
}

/*
 * Wait until the seized thread stands.
 *
 * first     we go before others: one that has our CPU stops while we sleep only
 * moved_ns  when it was last seen not to stand
 * returns   as target_thread_copy()
 */
static int wait_for_stop(pid_t tid, bool first, int *status, uint64_t *moved_ns)
{
	uint64_t start_ns = os_now_ns(), passed_ns;
	pid_t done;

	*moved_ns = start_ns;
	while ((done = waitpid(tid, status, __WALL | WNOHANG)) == 0) {
		*moved_ns = os_now_ns();
		passed_ns = *moved_ns - start_ns;
		if (passed_ns > STOP_NS)
			return ERR_LIMIT;
		if (first || passed_ns > SPIN_NS)
			os_sleep_ns(SPIN_PAUSE_NS);
		else
			sched_yield();
	}
	return done == tid && WIFSTOPPED(*status) ? 0 : ERR_NOT_FOUND;
}

/* State D: no signal and no tracer stops it before the kernel is done. */
static bool is_in_kernel(uint32_t pid, uint32_t tid)
{
	struct buf text = {0};
	const char *after;
	char path[64];
	bool in_kernel;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/stat", pid, tid);
	if (os_load(path, 4096, &text, NULL) != 0)
		buf_reset(&text);
	after = strrchr(buf_text(&text), ')');       /* the name may have any character */
	in_kernel = after && strncmp(after, ") D", 3) == 0;
	buf_free(&text);
	return in_kernel;
}

static void take_registers(const struct user_regs_struct *r, struct stack_copy *out)
{
	const uint64_t regs[TARGET_REGISTERS] = {
		r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->rbp, r->rsp, r->rip,
		r->r8,	r->r9,	r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};

	memcpy(out->regs, regs, sizeof(regs));
	out->abi = r->cs == CS_32_BIT ? 1 : 2;
}

/* Of a stop by a signal, the signal: it is delivered when the thread goes on. */
static long signal_of(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

static int copy(uint32_t pid, uint32_t tid, bool first, struct stack_copy *out)
{
	struct user_regs_struct regs;
	uint64_t moved_ns;
	int status = 0, rc;
	bool read;

	if (ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, NULL) != 0)
		return errno == ESRCH ? ERR_NOT_FOUND : ERR_ACCESS;
	ptrace(PTRACE_INTERRUPT, (pid_t)tid, NULL, NULL);
	rc = wait_for_stop((pid_t)tid, first, &status, &moved_ns);
	if (rc)
		return rc;                   /* one that still moves is let go at our end */
	out->time_ns = moved_ns;
	read = ptrace(PTRACE_GETREGS, (pid_t)tid, NULL, &regs) == 0;
	if (read)
		out->nbytes = (uint32_t)proc_pid_memory(pid, regs.rsp, out->bytes,
							TARGET_STACK_MAX_BYTES);
	ptrace(PTRACE_DETACH, (pid_t)tid, NULL, signal_of(status));
	out->stopped_ns = os_now_ns() - moved_ns;
	if (!read)
		return ERR_NOT_FOUND;
	take_registers(&regs, out);
	return 0;
}

int target_thread_copy(uint32_t pid, uint32_t tid, struct stack_copy *out)
{
	bool first;
	int rc;

	if (is_in_kernel(pid, tid))
		return ERR_LIMIT;
	first = go_first(true);
	rc = copy(pid, tid, first, out);
	if (first)
		go_first(false);
	return rc;
}

/* ---- what it waits for ----------------------------------------------------------------------- */

enum argument { ARGUMENT_NONE, ARGUMENT_FILE, ARGUMENT_FUTEX };

/* The system calls that wait (syscalls(2)), with what their first argument is. */
static const struct {
	int number;
	const char *name;
	enum argument first;
} calls[] = {
	{SYS_read, "read", ARGUMENT_FILE},
	{SYS_write, "write", ARGUMENT_FILE},
	{SYS_pread64, "pread", ARGUMENT_FILE},
	{SYS_pwrite64, "pwrite", ARGUMENT_FILE},
	{SYS_readv, "readv", ARGUMENT_FILE},
	{SYS_writev, "writev", ARGUMENT_FILE},
	{SYS_recvfrom, "recvfrom", ARGUMENT_FILE},
	{SYS_recvmsg, "recvmsg", ARGUMENT_FILE},
	{SYS_recvmmsg, "recvmmsg", ARGUMENT_FILE},
	{SYS_sendto, "sendto", ARGUMENT_FILE},
	{SYS_sendmsg, "sendmsg", ARGUMENT_FILE},
	{SYS_accept, "accept", ARGUMENT_FILE},
	{SYS_accept4, "accept4", ARGUMENT_FILE},
	{SYS_connect, "connect", ARGUMENT_FILE},
	{SYS_fsync, "fsync", ARGUMENT_FILE},
	{SYS_fdatasync, "fdatasync", ARGUMENT_FILE},
	{SYS_flock, "flock", ARGUMENT_FILE},
	{SYS_fcntl, "fcntl", ARGUMENT_FILE},
	{SYS_ioctl, "ioctl", ARGUMENT_FILE},
	{SYS_getdents64, "getdents", ARGUMENT_FILE},
	{SYS_epoll_wait, "epoll_wait", ARGUMENT_FILE},
	{SYS_epoll_pwait, "epoll_pwait", ARGUMENT_FILE},
	{SYS_io_uring_enter, "io_uring_enter", ARGUMENT_FILE},
	{SYS_poll, "poll", ARGUMENT_NONE},
	{SYS_ppoll, "ppoll", ARGUMENT_NONE},
	{SYS_select, "select", ARGUMENT_NONE},
	{SYS_pselect6, "pselect", ARGUMENT_NONE},
	{SYS_nanosleep, "nanosleep", ARGUMENT_NONE},
	{SYS_clock_nanosleep, "clock_nanosleep", ARGUMENT_NONE},
	{SYS_restart_syscall, "a call that was interrupted", ARGUMENT_NONE},
	{SYS_pause, "pause", ARGUMENT_NONE},
	{SYS_rt_sigsuspend, "sigsuspend", ARGUMENT_NONE},
	{SYS_rt_sigtimedwait, "sigtimedwait", ARGUMENT_NONE},
	{SYS_wait4, "wait4", ARGUMENT_NONE},
	{SYS_waitid, "waitid", ARGUMENT_NONE},
	{SYS_semop, "semop", ARGUMENT_NONE},
	{SYS_semtimedop, "semtimedop", ARGUMENT_NONE},
	{SYS_msgrcv, "msgrcv", ARGUMENT_NONE},
	{SYS_msgsnd, "msgsnd", ARGUMENT_NONE},
	{SYS_open, "open", ARGUMENT_NONE},
	{SYS_openat, "openat", ARGUMENT_NONE},
	{SYS_futex, "futex", ARGUMENT_FUTEX},
};

static void put_file(uint32_t pid, uint64_t fd, struct target_wait *out)
{
	char path[64], link[256];
	size_t at = strlen(out->text);
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/fd/%" PRIu64, pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return;
	link[n] = '\0';
	snprintf(out->text + at, sizeof(out->text) - at, " of %s", link);
}

/* Is it a thread of the process? */
static bool is_thread(uint32_t pid, uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32, pid, tid);
	return tid && access(path, F_OK) == 0;
}

static void put_futex(uint32_t pid, uint64_t address, struct target_wait *out)
{
	uint32_t words[3];                   /* lock, count, owner */

	snprintf(out->text, sizeof(out->text), "waits for the futex at 0x%" PRIx64, address);
	if (proc_pid_memory(pid, address, words, sizeof(words)) != sizeof(words) ||
	    words[0] != 2 || !is_thread(pid, words[2]))
		return;
	out->mutex = address;
	out->owner = words[2];
	snprintf(out->text, sizeof(out->text), "waits for the mutex at 0x%" PRIx64
		 ", which thread %" PRIu32 " holds", address, out->owner);
}

void target_thread_wait(uint32_t pid, uint32_t tid, struct target_wait *out)
{
	struct buf text = {0};
	char path[64], *end;
	long number;
	uint64_t first;
	size_t i;

	*out = (struct target_wait){.text = "runs"};
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/syscall", pid, tid);
	if (os_load(path, 4096, &text, NULL) != 0)
		buf_reset(&text);
	number = strtol(buf_text(&text), &end, 10);      /* "running", or -1: not in a call */
	if (end != buf_text(&text) && number >= 0) {
		first = strtoull(end, NULL, 16);
		for (i = 0; i < COUNT_OF(calls) && calls[i].number != number; i++)
			;
		snprintf(out->text, sizeof(out->text), i < COUNT_OF(calls) ? "waits in %s"
								  : "waits in %s %ld",
			 i < COUNT_OF(calls) ? calls[i].name : "system call", number);
		if (i < COUNT_OF(calls) && calls[i].first == ARGUMENT_FILE)
			put_file(pid, first, out);
		else if (i < COUNT_OF(calls) && calls[i].first == ARGUMENT_FUTEX)
			put_futex(pid, first, out);
	}
	buf_free(&text);
}
