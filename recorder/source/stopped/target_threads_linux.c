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

	_Static_assert(sizeof(*r) == sizeof(out->user), "user_regs_struct");
	memcpy(out->regs, regs, sizeof(regs));
	memcpy(out->user, r, sizeof(*r));
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
		out->nbytes = (uint32_t)proc_pid_memory(pid, regs.rsp, out->bytes, out->room);
	if (read && out->look)
		out->look(out->ctx);
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

static size_t read_memory(void *ctx, uint64_t address, void *to, size_t n)
{
	return proc_pid_memory(*(const uint32_t *)ctx, address, to, n);
}

static bool is_thread(void *ctx, uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32, *(const uint32_t *)ctx,
		 tid);
	return access(path, F_OK) == 0;
}

static bool read_file(void *ctx, uint64_t fd, char *out, size_t n)
{
	char path[64];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/fd/%" PRIu64, *(const uint32_t *)ctx, fd);
	got = readlink(path, out, n - 1);
	if (got > 0)
		out[got] = '\0';
	return got > 0;
}

/*
 * "NUMBER six ARGUMENTS SP PC", all but the number in hexadecimal, "-1 SP PC" when it waits outside
 * of a call, or "running". Only a 32-bit program has its stack below 4 GB.
 */
int target_thread_wait(uint32_t pid, uint32_t tid, struct target_wait *out)
{
	const struct wait_process process = {.memory = read_memory, .is_thread = is_thread,
					     .file = read_file, .ctx = &pid};
	uint64_t arguments[2] = {0}, sp = 0, pc = 0;
	struct buf text = {0};
	int64_t number = -1;
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/syscall", pid, tid);
	rc = os_load(path, 4096, &text, NULL);
	if (rc)
		buf_reset(&text);
	if (sscanf(buf_text(&text), "%" SCNd64 " %" SCNx64 " %" SCNx64 " %*x %*x %*x %*x %"
		   SCNx64 " %" SCNx64, &number, &arguments[0], &arguments[1], &sp, &pc) != 5) {
		number = -1;                 /* not in a call */
		if (sscanf(buf_text(&text), "-1 %" SCNx64 " %" SCNx64, &sp, &pc) != 2)
			sp = pc = 0;
	}
	target_wait_for(number, arguments, sp <= UINT32_MAX, &process, out);
	out->sp = sp;
	out->pc = pc;
	buf_free(&text);
	return rc;
}

/* ---- without stopping it --------------------------------------------------------------------- */

/* How often it was given a CPU; 0 = not known. */
static uint64_t turns(uint32_t pid, uint32_t tid)
{
	struct buf text = {0};
	uint64_t n = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/schedstat", pid, tid);
	if (os_load(path, 256, &text, NULL) != 0 ||
	    sscanf(buf_text(&text), "%*u %*u %" SCNu64, &n) != 1)
		n = 0;
	buf_free(&text);
	return n;
}

int target_thread_look(uint32_t pid, uint32_t tid, struct stack_copy *out,
		       struct target_wait *wait)
{
	uint64_t before = turns(pid, tid);
	int rc;

	out->time_ns = os_now_ns();
	out->stopped_ns = 0;
	rc = target_thread_wait(pid, tid, wait);
	if (rc || !wait->pc)
		return rc ? rc : ERR_BUSY;
	out->nbytes = (uint32_t)proc_pid_memory(pid, wait->sp, out->bytes, out->room);
	if (out->look)
		out->look(out->ctx);
	out->regs[0] = wait->sp;
	out->regs[1] = wait->pc;
	out->abi = wait->sp <= UINT32_MAX ? 1 : 2;
	return before && turns(pid, tid) == before ? 0 : ERR_BUSY;
}
