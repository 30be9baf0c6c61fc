/* Rights that a program file lends, by setcap or setuid: see os.h. capabilities(7). */
#include "base/os.h"

#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP(n) ((uint64_t)1 << (n))
/* These open no file and reach no process that the caller could not. */
#define HARMLESS (CAP(CAP_NET_ADMIN) | CAP(CAP_IPC_LOCK) | CAP(CAP_SYS_NICE) | \
		  CAP(CAP_SYS_RESOURCE) | CAP(CAP_SYSLOG) | CAP(CAP_PERFMON) | CAP(CAP_BPF))

/*
 * What recording uses: the rows of `recorder help privileges`, and files and signals for other
 * users' programs (attaching to a JVM), the confined processes' change of user, low ports.
 */
#define USED (HARMLESS | CAP(CAP_SYS_ADMIN) | CAP(CAP_SYS_PTRACE) | CAP(CAP_DAC_READ_SEARCH) | \
	      CAP(CAP_DAC_OVERRIDE) | CAP(CAP_CHOWN) | CAP(CAP_FOWNER) | CAP(CAP_KILL) | \
	      CAP(CAP_SETUID) | CAP(CAP_SETGID) | CAP(CAP_NET_BIND_SERVICE))

struct rights {
	uint64_t effective, permitted;
};

static bool read_rights(struct rights *out)
{
	struct __user_cap_header_struct who = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[2] = {{0}};

	if (syscall(SYS_capget, &who, words) != 0)
		return false;
	out->effective = (uint64_t)words[1].effective << 32 | words[0].effective;
	out->permitted = (uint64_t)words[1].permitted << 32 | words[0].permitted;
	return true;
}

static bool set_rights(const struct rights *rights)
{
	struct __user_cap_header_struct who = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[2] = {
		{.effective = (uint32_t)rights->effective,
		 .permitted = (uint32_t)rights->permitted},
		{.effective = (uint32_t)(rights->effective >> 32),
		 .permitted = (uint32_t)(rights->permitted >> 32)},
	};

	return syscall(SYS_capset, &who, words) == 0;
}

/* The kernel sets AT_SECURE for a file that gives more than the caller has; getauxval(3). */
bool os_rights_lent(void)
{
	return getauxval(AT_SECURE) != 0;
}

/*
 * A setuid program becomes its caller for good, and keeps of root what setcap would have given it:
 * capabilities.
 */
static void become_caller(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (uid == geteuid() && gid == getegid())
		return;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setresgid(gid, gid, gid) ||
	    setresuid(uid, uid, uid))
		_exit(1);
	prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
}

void os_rights_give_up(void)
{
	if (!os_rights_lent())
		return;
	become_caller();
	if (!set_rights(&(struct rights){0, 0}))
		_exit(1);                    /* cannot happen: less is always allowed */
}

void os_rights_keep_used(void)
{
	struct rights rights;

	if (!read_rights(&rights))
		return;
	rights.permitted &= USED;
	rights.effective &= USED;
	set_rights(&rights);
}

void os_rights_lower(void)
{
	struct rights rights;

	if (!os_rights_lent())
		return;
	become_caller();
	if (!read_rights(&rights))
		_exit(1);
	rights.effective = rights.permitted & HARMLESS;
	if (!set_rights(&rights))
		_exit(1);
}

void os_rights_raise(void)
{
	struct rights rights;

	if (!os_rights_lent() || !read_rights(&rights))
		return;
	rights.effective = rights.permitted;
	set_rights(&rights);
}
