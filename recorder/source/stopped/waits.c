#include "source/stopped/waits.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FUTEX_386 240

enum argument { ARGUMENT_NONE, ARGUMENT_FILE, ARGUMENT_FUTEX, ARGUMENT_PATH, ARGUMENT_AT_PATH };

/* The system calls of x86-64 that wait (syscalls(2)), with what their first arguments are. */
static const struct {
	uint16_t number;
	const char *name;
	enum argument what;
} calls[] = {
	{0, "read", ARGUMENT_FILE},
	{1, "write", ARGUMENT_FILE},
	{17, "pread", ARGUMENT_FILE},
	{18, "pwrite", ARGUMENT_FILE},
	{19, "readv", ARGUMENT_FILE},
	{20, "writev", ARGUMENT_FILE},
	{45, "recvfrom", ARGUMENT_FILE},
	{47, "recvmsg", ARGUMENT_FILE},
	{299, "recvmmsg", ARGUMENT_FILE},
	{44, "sendto", ARGUMENT_FILE},
	{46, "sendmsg", ARGUMENT_FILE},
	{43, "accept", ARGUMENT_FILE},
	{288, "accept4", ARGUMENT_FILE},
	{42, "connect", ARGUMENT_FILE},
	{74, "fsync", ARGUMENT_FILE},
	{75, "fdatasync", ARGUMENT_FILE},
	{73, "flock", ARGUMENT_FILE},
	{72, "fcntl", ARGUMENT_FILE},
	{16, "ioctl", ARGUMENT_FILE},
	{217, "getdents", ARGUMENT_FILE},
	{232, "epoll_wait", ARGUMENT_FILE},
	{281, "epoll_pwait", ARGUMENT_FILE},
	{426, "io_uring_enter", ARGUMENT_FILE},
	{7, "poll", ARGUMENT_NONE},
	{271, "ppoll", ARGUMENT_NONE},
	{23, "select", ARGUMENT_NONE},
	{270, "pselect", ARGUMENT_NONE},
	{35, "nanosleep", ARGUMENT_NONE},
	{230, "clock_nanosleep", ARGUMENT_NONE},
	{219, "a call that was interrupted", ARGUMENT_NONE},
	{34, "pause", ARGUMENT_NONE},
	{130, "sigsuspend", ARGUMENT_NONE},
	{128, "sigtimedwait", ARGUMENT_NONE},
	{61, "wait4", ARGUMENT_NONE},
	{247, "waitid", ARGUMENT_NONE},
	{65, "semop", ARGUMENT_NONE},
	{220, "semtimedop", ARGUMENT_NONE},
	{70, "msgrcv", ARGUMENT_NONE},
	{69, "msgsnd", ARGUMENT_NONE},
	{2, "open", ARGUMENT_PATH},
	{257, "openat", ARGUMENT_AT_PATH},
	{202, "futex", ARGUMENT_FUTEX},
};

static void put_file(const struct wait_process *p, uint64_t fd, struct target_wait *out)
{
	size_t at = strlen(out->text);
	char link[256];

	if (p->file && p->file(p->ctx, fd, link, sizeof(link)))
		snprintf(out->text + at, sizeof(out->text) - at, " of %s", link);
}

/* Of a FIFO, or on a file system that does not answer. Relative ones are to be guessed. */
static void put_path(const struct wait_process *p, uint64_t address, struct target_wait *out)
{
	size_t at = strlen(out->text);
	char path[256];

	path[p->memory(p->ctx, address, path, sizeof(path) - 1)] = '\0';
	if (*path)
		snprintf(out->text + at, sizeof(out->text) - at, " of %s", path);
}

static void put_futex(const struct wait_process *p, uint64_t address, struct target_wait *out)
{
	uint32_t words[3];                   /* lock, count, owner */

	snprintf(out->text, sizeof(out->text), "waits for the futex at 0x%" PRIx64, address);
	if (p->memory(p->ctx, address, words, sizeof(words)) != sizeof(words) || words[0] != 2 ||
	    !words[2] || !p->is_thread(p->ctx, words[2]))
		return;
	out->mutex = address;
	out->owner = words[2];
	snprintf(out->text, sizeof(out->text), "waits for the mutex at 0x%" PRIx64
		 ", which thread %" PRIu32 " holds", address, out->owner);
}

void target_wait_for(int64_t call, const uint64_t arguments[2], bool is_32_bit,
		     const struct wait_process *process, struct target_wait *out)
{
	size_t i = 0;

	*out = (struct target_wait){.text = "runs"};
	if (call < 0)
		return;
	while (i < COUNT_OF(calls) && (is_32_bit || calls[i].number != call))
		i++;
	if (i == COUNT_OF(calls))
		snprintf(out->text, sizeof(out->text), "waits in system call %" PRId64 "%s", call,
			 is_32_bit ? " of i386" : "");
	else
		snprintf(out->text, sizeof(out->text), "waits in %s", calls[i].name);
	switch (i < COUNT_OF(calls)	     ? calls[i].what
		: is_32_bit && call == FUTEX_386 ? ARGUMENT_FUTEX
						 : ARGUMENT_NONE) {
	case ARGUMENT_FILE: put_file(process, arguments[0], out); break;
	case ARGUMENT_FUTEX: put_futex(process, arguments[0], out); break;
	case ARGUMENT_PATH: put_path(process, arguments[0], out); break;
	case ARGUMENT_AT_PATH: put_path(process, arguments[1], out); break;
	case ARGUMENT_NONE: break;
	}
}
