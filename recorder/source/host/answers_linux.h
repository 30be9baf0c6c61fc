/*
 * What the kernel answers about other processes and about disks, for a thread that must not hang: a
 * process may have put its arguments into a mapped file whose server is gone, and whoever reads
 * /proc/PID/cmdline then waits for that server; /proc/PID/io waits for a process that hangs in
 * exec; statvfs() waits for the mount's server. A job of a pool asks (base/pool.h); the caller
 * waits for 20 ms at most. One that does not answer is left alone until it does.
 *
 * One thread, the owner, calls these functions, except answers_note().
 */
#pragma once

#include "base/os.h"
#include "source/host/proc_parse.h"

struct answers;

int answers_open(struct answers **out, struct err *err);
void answers_close(struct answers *a);               /* NULL allowed */

/*
 * The arguments of the process whose directory of /proc is dir_fd, with blanks between them.
 * returns  false: not known now
 */
bool answers_arguments(struct answers *a, int dir_fd, uint32_t pid,
		       char out[OS_ARGUMENTS_MAX + 1]);
/*
 * A short file in that directory (at most OS_ARGUMENTS_MAX bytes); the text is valid until the next
 * call. returns  false: it cannot be read now
 */
bool answers_file(struct answers *a, int dir_fd, uint32_t pid, const char *name, struct text *out);
/* The size of a file system, and what is free for users, in bytes. */
bool answers_space(struct answers *a, const char *dir, double *total, double *available);

/* As pool_note(). Any thread. */
bool answers_note(const struct answers *a, char *out, size_t n);
