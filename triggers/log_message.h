/*
 * StopOnEventLogMessage:[LOG@]REGEX: a line of a log matches.
 *
 *	StopOnEventLogMessage:OutOfMemoryException
 *	StopOnEventLogMessage:Microsoft-Windows-Kernel-Power/Thermal@critical
 *	StopOnEventLogMessage:/var/log/nginx/error.log@upstream timed out
 *	StopOnEventLogMessage:kernel@Out of memory: Killed process
 *
 * LOG@ is one of the logs that every system has (Application, System, Security, Setup; kernel,
 * journal), a channel with '/' or '-' in its name, or the path of a file; "Log=NAME@" takes any name. What
 * else stands before an '@' (user@host) is a part of the expression. Default: Application, which is the
 * journal or syslog on Linux.
 *
 * The expression ignores case, may match anywhere, and sees what PerfView shows it:
 * "Type: KIND EventId: ID Message: TEXT", or the text alone where a log has no more. New lines only. No
 * process, no limit.
 *
 * Source: design page triggers.md section 6. Events: EVENT_LOG with the fields Log and Message, and
 * Type, EventId, Source where a log has them.
 */
#ifndef TRIGGERS_LOG_MESSAGE_H
#define TRIGGERS_LOG_MESSAGE_H

#include "triggers/trigger.h"

extern const struct trigger_ops log_message_trigger;

/* A sentence when what stands before an '@' looks like a misspelled log; of other rules nothing. */
void log_message_doubt(const struct trigger *t, struct buf *out);

#endif
