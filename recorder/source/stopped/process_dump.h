/*
 * Writes a dump of a living process, for debuggers and `recorder stacks`: on Linux an ELF core that
 * has registers, stacks and what a debugger needs to find libraries, and no heap; on Windows
 * dbghelp's small minidump. Bounded; never of a process that opted out:
 *
 *   Linux     bit 0 of /proc/PID/coredump_filter is clear; its hard limit of core files is 0; it is
 *             not dumpable (prctl(2), PR_SET_DUMPABLE), which is not seen of root's processes
 *   Windows   a name in ExcludedApplications of Windows Error Reporting (WerAddExcludedApplication)
 *
 * One thread.
 */
#pragma once

#include "source/stopped/thread_stacks.h"

#define PROCESS_DUMP_MAX_BYTES ((uint64_t)64 << 20)
#define PROCESS_DUMP_KIND_LINUX "gcore"
#define PROCESS_DUMP_KIND_WINDOWS "minidump"

struct process_dump;

/* What --on-fire calls this host's dumps. */
extern const char process_dump_kind[], process_dump_suffix[];

/* returns  0; ERR_ACCESS: it opted out; ERR_UNSUPPORTED: Linux, a 32-bit program; ERR_MEMORY */
int process_dump_open(uint32_t pid, struct process_dump **out, struct err *err);
/* Linux: add a thread, from thread_stacks_take(). Windows: nothing. */
void process_dump_thread(struct process_dump *d, const struct thread_stack *stack);
/* Write it to a new file; *nbytes long. ERR_LIMIT: it would be larger than the ceiling. */
int process_dump_write(struct process_dump *d, const char *path, uint64_t *nbytes,
		       struct err *err);
void process_dump_close(struct process_dump *d);     /* NULL allowed */
