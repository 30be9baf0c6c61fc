/*
 * The threads of another process: a list with open handles, and a copy of a thread's stack.
 *
 * A thread is suspended while its registers are read and its stack is copied. The time from
 * before SuspendThread() to after ResumeThread() is measured. The thread is resumed whatever
 * happens, unless this program ends in between. Nothing else is done meanwhile: no lock, no
 * allocation. The process must not be this very one. One thread.
 *
 * A thread of a 32-bit program (WOW64) has two stacks. Its own code runs in 32-bit mode; for each
 * system call it enters 64-bit code, which saves its 32-bit registers and has a stack of its own.
 * The copy is of the 32-bit side, except where there is none: while a thread starts, and in threads
 * that Windows made for itself.
 *
 * Source: docs, SuspendThread, GetThreadContext, Wow64GetThreadContext ("WOW64 Implementation
 * Details"); the TEB's stack bounds: NT_TIB of winnt.h. Microsoft asks for Wow64SuspendThread()
 * before Wow64GetThreadContext(); SuspendThread() stops a thread in either mode, and Wine 8 has no
 * other.
 */
#pragma once

#include "source/stopped/pe_images.h"

#define TARGET_THREADS_MAX 16384u
#define TARGET_STACK_MAX_BYTES (1u << 20)    /* of a stack, from its top; cut beyond */
#define TARGET_NAME_BYTES 64u

struct target_thread {
	uint32_t tid, round;
	void *handle;                        /* NULL = may not be opened */
	uint64_t teb, stack_low, stack_base;
	uint64_t teb32, low32, base32;       /* the same of its 32-bit side; 0 = none */
	char name[TARGET_NAME_BYTES];        /* SetThreadDescription(); "" */
	uint64_t cpu_ns;                     /* of the last target_thread_cpu() */
	uint64_t seen_ns;                    /* these are for the caller: 0 at first */
	uint64_t waits_from_ns, ran_ns;
};

struct target_threads {
	void *process;                       /* a HANDLE, borrowed; set it and pid first */
	uint32_t pid;
	bool is_wow64;                       /* a 32-bit program; set it first */
	struct target_thread *all;           /* by tid, ascending */
	uint32_t n, room, round;
	uint64_t longest_ns;                 /* longest suspension so far */
	uint64_t not_resumed;                /* threads that ended while suspended */
};

void target_threads_close(struct target_threads *t);

/* Update the list; known threads keep their handles. Names are read again. */
int target_threads_refresh(struct target_threads *t, struct err *err);

/* 0; ERR_NOT_FOUND: ended; ERR_ACCESS. If the stack cannot be read: only the registers. */
int target_thread_copy(struct target_threads *t, struct target_thread *thread,
		       struct pe_stack *out);

/* CPU time since the last call, or since the thread's start; false = unknown. */
bool target_thread_cpu(struct target_thread *thread, uint64_t *since_ns);
