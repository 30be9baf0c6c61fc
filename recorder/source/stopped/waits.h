/*
 * What a thread waits for, by the system call that it is in: of a thread that lives, or of one in a
 * core. Portable. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET_WAIT_BYTES 320u

struct target_wait {
	char text[TARGET_WAIT_BYTES];        /* "waits in read of socket:[4711]", or "runs" */
	uint64_t mutex;                      /* the address of the mutex that it waits for; or 0 */
	uint32_t owner;                      /* the thread that holds the mutex; 0 = not known */
	uint64_t sp, pc;                     /* of a live thread that does not run; else 0 */
};

/* What is known of its process. */
struct wait_process {
	/* returns  how many of the n bytes were read */
	size_t (*memory)(void *ctx, uint64_t address, void *to, size_t n);
	bool (*is_thread)(void *ctx, uint32_t tid);
	/* What a descriptor is; false = not known. NULL = none is. */
	bool (*file)(void *ctx, uint64_t fd, char *out, size_t n);
	void *ctx;
};

/*
 * A mutex is one of glibc's: the futex word is 2, and the owner's number stands 8 bytes behind it
 * (struct __pthread_mutex_s).
 *
 * call       its number, of x86-64 (syscalls(2)) or i386; below 0 = it is in none
 * is_32_bit  of i386: only the futex is known by its name
 */
void target_wait_for(int64_t call, const uint64_t arguments[2], bool is_32_bit,
		     const struct wait_process *process, struct target_wait *out);
