/*
 * StopOnProcess:WHO[;On=start|exit|crash|oom][;Stack=true][;ExitCode=N][;ExitCode!=N][;Signal=NAME]
 *
 * A process starts or ends.
 *
 *	StopOnProcess:nginx                     it ends, however
 *	StopOnProcess:backup.sh;On=start
 *	StopOnProcess:*;On=crash                any process dies of a fault
 *	StopOnProcess:worker,4711;ExitCode!=0
 *	StopOnProcess:mysqld;Signal=KILL
 *	StopOnProcess:mysqld;On=crash;Stack=true   at the signal, with the stack it hits (Linux)
 *	StopOnProcess:*;On=oom                  the kernel kills it for lack of memory (Linux)
 *
 * WHO: names and pids as in process_filter.h, or * for all. A crash is on Linux a signal that dumps
 * core (QUIT, ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS, XCPU, XFSZ; signal(7)), on Windows an exit code
 * of 0xC0000000 or above. Rules about how a process ended never match an end whose cause is not
 * known.
 *
 * Events: EVENT_PROCESS_START (also of an exec) and EVENT_PROCESS_EXIT. The cause is in the fields
 * ExitStatus (ETW), or ExitCode and Signal (Linux, generic event Process/Exit of provider "Linux").
 * Stack=true uses the tracepoint signal/signal_deliver of signals without a handler, On=oom uses
 * oom/mark_victim.
 */
#pragma once

#include "triggers/trigger.h"

extern const struct trigger_ops process_trigger;

#define LINUX_PROVIDER "Linux"
#define LINUX_PROCESS_EXIT "Process/Exit"
