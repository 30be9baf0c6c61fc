/*
 * The names that a process has by its command line, argv[0] or a script's, when rules or
 * --record-process ask for names; and whether --record-process means the process. The source's
 * thread only.
 *
 * Command lines are read by jobs of a pool (base/pool.h), because a process that the kernel holds
 * stops whoever looks. A job begins when a program is executed, and its answer is taken before the
 * first event of that program is released, unless it takes longer than perf_names_look() waits.
 */
#pragma once

#include "base/log.h"
#include "base/pool.h"
#include "source/perf/state_linux.h"

struct perf_names;

/*
 * only           --record-process; NULL = all
 * command_lines  whether they are wanted
 * named          who is told about names
 */
int perf_names_new(const char *only, bool command_lines, const struct perf_listener *named,
		   struct log *log, struct perf_names **out, struct err *err);
void perf_names_free(struct perf_names *n);          /* after all processes; NULL allowed */

/* Its names have changed: sets process->skipped. */
void perf_names_update(const struct perf_names *n, struct perf_process *process);
/* Have its command line read unless it is known; exec writes it late, so ask again. */
void perf_names_read(struct perf_names *n, struct perf_process *process);
/* It ends, or executes another program. */
void perf_names_forget(struct perf_names *n, struct perf_process *process);

/* Whether the process is skipped only until its command line has been read, which takes 0.1 ms. */
bool perf_names_reading(struct perf_names *n, struct perf_process *process);
/* Take what has been read; wait for new jobs, in all at most wait_ns. Call it often. */
void perf_names_look(struct perf_names *n, uint64_t wait_ns);
struct pool *perf_names_pool(const struct perf_names *n);    /* NULL = none */
