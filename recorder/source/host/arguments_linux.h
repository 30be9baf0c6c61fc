/*
 * Command lines of processes, for a thread that must not hang: a process may have put its arguments
 * into a mapped file whose server is gone, and whoever reads /proc/PID/cmdline then waits for that
 * server. A job of a pool reads (base/pool.h); the caller waits for 20 ms at most.
 *
 * One thread, the owner, calls these functions.
 */
#pragma once

#include "base/os.h"

struct arguments;

int arguments_open(struct arguments **out, struct err *err);
void arguments_close(struct arguments *a);           /* NULL allowed */

/*
 * The arguments of the process whose directory of /proc is dir_fd, with blanks between them.
 * returns  false: not known now. A process that does not answer is left alone until it does
 */
bool arguments_read(struct arguments *a, int dir_fd, uint32_t pid,
		    char out[OS_ARGUMENTS_MAX + 1]);
