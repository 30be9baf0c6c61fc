/*
 * StopOnProcess:WHO[;On=start|exit|crash|oom][;Stack=true][;ExitCode=N][;ExitCode!=N][;Signal=NAME]: a
 * process begins or ends.
 *
 *	StopOnProcess:nginx                     it ends, however
 *	StopOnProcess:backup.sh;On=start
 *	StopOnProcess:*;On=crash                any process dies of a fault
 *	StopOnProcess:worker,4711;ExitCode!=0
 *	StopOnProcess:mysqld;Signal=KILL
 *	StopOnProcess:mysqld;On=crash;Stack=true   at the signal, with the stack that it hits (Linux)
 *	StopOnProcess:*;On=oom                  the kernel kills it for lack of memory (Linux)
 *
 * WHO: names and pids as in process_filter.h, or * for all. crash: on Linux a signal that a fault
 * sends (ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS, XCPU, XFSZ), on Windows an exit code of 0xC0000000 and
 * over. How a process ended has to be known for these; an end of which it is not never matches.
 *
 * Events: EVENT_PROCESS_START (an exec too), EVENT_PROCESS_EXIT; how it ended is in its fields
 * ExitStatus (ETW), or ExitCode and Signal (Linux, generic event Process/Exit of provider "Linux"). The last
 * two are the tracepoints signal/signal_deliver, where nobody handles it, and oom/mark_victim.
 */
#ifndef TRIGGERS_PROCESS_H
#define TRIGGERS_PROCESS_H

#include "triggers/trigger.h"

extern const struct trigger_ops process_trigger;

#define LINUX_PROVIDER "Linux"
#define LINUX_PROCESS_EXIT "Process/Exit"

#endif
