/*
 * A thread of another process: a copy of its registers and stack, and what it waits for.
 *
 * The thread is seized and interrupted (ptrace(2)), copied, and let go. Nothing else is done
 * meanwhile: no lock, no allocation, no file; nor by look(), which may read its memory. If this
 * program ends in between, the kernel lets the thread go. A stop of the user's (SIGSTOP) stays what
 * it is, and a signal that arrives is delivered. A system call that waits is continued, but a few
 * of them, epoll_wait(2) among them, return EINTR instead (signal(7)). One thread.
 */
#pragma once

#include "base/err.h"
#include "source/stopped/waits.h"

#include <stdint.h>

#define TARGET_STACK_MAX_BYTES (512u << 10)  /* of a stack, from its top; cut beyond */
#define TARGET_REGISTERS 17u                 /* in the order of PERF_REGS_MASK */

/* In user_regs_struct of sys/user.h, of x86-64. */
enum { USER_REGISTERS = 27, USER_ARGUMENT = 14, USER_CALL = 15, USER_SP = 19 };

struct stack_copy {
	uint64_t regs[TARGET_REGISTERS];
	uint64_t user[USER_REGISTERS];       /* all of them, as ptrace(2) gives them */
	uint32_t abi;                        /* as perf's: 1 = 32-bit, 2 = 64-bit */
	uint8_t *bytes;                      /* TARGET_STACK_MAX_BYTES, the caller's */
	uint32_t room, nbytes;               /* how much to copy at most; how much it is */
	void (*look)(void *ctx);             /* what else to read of it meanwhile; NULL = nothing */
	void *ctx;
	uint64_t time_ns, stopped_ns;
};

/*
 * returns  0; ERR_NOT_FOUND: it has ended; ERR_ACCESS: it may not be stopped, or a debugger has it;
 *          ERR_LIMIT: it does not stop, because it waits in the kernel (state D)
 */
int target_thread_copy(uint32_t pid, uint32_t tid, struct stack_copy *out);

/*
 * The same of a thread that waits, without stopping it: only its stack pointer and its position are
 * known (LOOKED_REGISTERS), and that it did not run meanwhile, by its number of turns on a CPU.
 *
 * returns  as above; ERR_BUSY: it runs, or ran meanwhile
 */
#define LOOKED_REGISTERS 0x180u              /* RSP and RIP of PERF_REGS_MASK, packed in regs */
int target_thread_look(uint32_t pid, uint32_t tid, struct stack_copy *out,
		       struct target_wait *wait);

/* What it waits for, by /proc/PID/task/TID/syscall (proc(5)). 0; else "runs": as above */
int target_thread_wait(uint32_t pid, uint32_t tid, struct target_wait *out);
