/* Giving up rights for good, all or the unused ones: see os.h. seccomp(2), capabilities(7). */
#include "base/os.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534
#define NOBODY_ELSE 1879048192           /* a number that systemd's list of ranges calls unused */
#define X32_CALLS 0x40000000u            /* the other numbers of calls on x86-64 */

/* Sanitizers reserve terabytes of address space, map and look at whatever they like. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

/* What computing takes, with files and sockets that are open. */
static const uint16_t allowed[] = {
	SYS_read, SYS_pread64, SYS_readv, SYS_write, SYS_writev, SYS_lseek, SYS_fstat, SYS_close,
	SYS_sendto, SYS_sendmsg, SYS_recvfrom, SYS_recvmsg, SYS_poll,
	SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex,
	SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_clock_gettime, SYS_getrandom,
	SYS_exit, SYS_exit_group,
};
/* Memory, but none that can be executed: the third argument is its protection. */
static const uint16_t allowed_without_exec[] = {SYS_mmap, SYS_mprotect};

/*
 * What recording never does: change another process, the machine's modules, file systems, clock,
 * names or keys, or go elsewhere. Headers of an older C library lack names of the newest.
 */
static const uint16_t unused[] = {
	SYS_process_vm_writev, SYS_init_module, SYS_finit_module, SYS_delete_module,
	SYS_kexec_load, SYS_kexec_file_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct,
	SYS_quotactl, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_mknod, SYS_mknodat,
	SYS_setns, SYS_unshare,
	SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
	SYS_sethostname, SYS_setdomainname, SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_personality,
	SYS_add_key, SYS_request_key, SYS_keyctl, SYS_userfaultfd, SYS_vhangup,
	425, 426, 427,                 /* io_uring_setup, ..._enter, ..._register */
	428, 429,                      /* open_tree, move_mount */
	430, 431, 432, 433,            /* fsopen, fsconfig, fsmount, fspick */
	442,                           /* mount_setattr */
};
/* Of ptrace(2), what stops a thread and looks at it: the first argument. */
static const uint16_t looking[] = {
	PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_GETREGS, PTRACE_GETREGSET, PTRACE_DETACH,
};

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define JUMP(test, value, yes, no) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, yes, no)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)

enum {
	GUARDED = 4 + N(allowed),      /* after the tests of architecture and number */
	DENY = GUARDED + N(allowed_without_exec),
	LOOK,                          /* at the protection */
	ALLOW = LOOK + 2,
	CODE_LENGTH = ALLOW + 2,
};

/* From instruction `from` on, the jump to `to`. */
static uint8_t jump(unsigned from, unsigned to)
{
	return (uint8_t)(to - from - 1);
}

/*
 * A call that is not allowed fails as it does for want of a right: libraries expect that. Jumps
 * lead forward only, hence the second denial at the end.
 */
static bool filter_calls(void)
{
	struct sock_filter code[CODE_LENGTH] = {
		LOAD(arch),
		JUMP(BPF_JEQ, AUDIT_ARCH_X86_64, 0, jump(1, DENY)),
		LOAD(nr),
		JUMP(BPF_JGE, X32_CALLS, jump(3, DENY), 0),
		[DENY] = ANSWER(SECCOMP_RET_ERRNO | EPERM),
		LOAD(args[2]),
		JUMP(BPF_JSET, PROT_EXEC, jump(LOOK + 1, ALLOW + 1), 0),
		ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = {CODE_LENGTH, code};
	unsigned i, at = 4;

	for (i = 0; i < N(allowed); i++, at++)
		code[at] = (struct sock_filter)JUMP(BPF_JEQ, allowed[i], jump(at, ALLOW), 0);
	for (i = 0; i < N(allowed_without_exec); i++, at++)
		code[at] = (struct sock_filter)JUMP(BPF_JEQ, allowed_without_exec[i],
						    jump(at, LOOK), 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The second filter, of the main process: everything but those calls. */
static bool filter_unused_calls(void)
{
	enum {TRACE = 6 + N(unused), DENIED = TRACE + 1 + N(looking), ALLOWED, LENGTH};
	struct sock_filter code[LENGTH] = {
		LOAD(arch),
		JUMP(BPF_JEQ, AUDIT_ARCH_X86_64, 0, jump(1, DENIED)),
		LOAD(nr),
		JUMP(BPF_JGE, X32_CALLS, jump(3, DENIED), 0),
		JUMP(BPF_JEQ, SYS_ptrace, jump(4, TRACE), 0),
		[TRACE - 1] = ANSWER(SECCOMP_RET_ALLOW),
		[TRACE] = LOAD(args[0]),
		[DENIED] = ANSWER(SECCOMP_RET_ERRNO | EPERM),
		[ALLOWED] = ANSWER(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {LENGTH, code};
	unsigned i;

	for (i = 0; i < N(unused); i++)
		code[5 + i] = (struct sock_filter)JUMP(BPF_JEQ, unused[i], jump(5 + i, DENIED), 0);
	for (i = 0; i < N(looking); i++)
		code[TRACE + 1 + i] = (struct sock_filter)JUMP(BPF_JEQ, looking[i],
							       jump(TRACE + 1 + i, ALLOWED), 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool os_forbid_unused_calls(void)
{
	return !sanitized && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && filter_unused_calls();
}

static bool become(id_t id)
{
	return setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0;
}

/*
 * A user that no other process has: programs of "nobody" could kill it again and again, each time
 * as if by what it reads. A user namespace may lack that number. Without the right to change users
 * (a service's), it stays the same user, without any right.
 */
static bool become_nobody(void)
{
	return geteuid() != 0 || setgroups(0, NULL) != 0 || become(NOBODY_ELSE) || become(NOBODY);
}

static bool drop_capabilities(void)
{
	struct __user_cap_header_struct who = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	return syscall(SYS_capset, &who, none) == 0;
}

void os_limit_memory(uint64_t max_bytes)
{
	const struct rlimit memory = {max_bytes, max_bytes}, none = {0, 0};

	if (!sanitized)
		setrlimit(RLIMIT_DATA, &memory);
	setrlimit(RLIMIT_CORE, &none);
}

/*
 * A filter of the service manager may forbid capset(2). Where ours is in place, no capability can
 * be used for anything. A kernel without filters: ENOSYS, EINVAL.
 */
bool os_confine(void)
{
	bool dropped;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !become_nobody())
		return false;
	dropped = drop_capabilities();
	if (!sanitized && filter_calls())
		return true;
	return dropped && (sanitized || errno == ENOSYS || errno == EINVAL);
}
