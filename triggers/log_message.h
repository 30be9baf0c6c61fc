/*
 * StopOnEventLogMessage:[LOG@]REGEX: a line of a log matches.
 *
 *	StopOnEventLogMessage:OutOfMemoryException
 *	StopOnEventLogMessage:Microsoft-Windows-Kernel-Power/Thermal@critical
 *	StopOnEventLogMessage:/var/log/nginx/error.log@upstream timed out
 *	StopOnEventLogMessage:kernel@Out of memory: Killed process
 *
 * LOG@ is a log that every system has (Application, System, Security, Setup; kernel, journal), a
 * channel with '/' or '-' in its name, or the path of a file; "Log=NAME@" takes any name. Any other
 * text before an '@' (user@host) is part of the expression. Without LOG@ it is Application, which
 * on Linux is the journal or syslog.
 *
 * The expression ignores case, may match anywhere, and sees the same text as in PerfView:
 * "Type: KIND EventId: ID Message: TEXT", or the message alone where a log has no more. Only new
 * lines count. The rule has no process.
 *
 *	StopOnEventLogMessage:/var/log/nginx/access.log@"(?:GET|POST) .* ([0-9.]+)$;Number>0.5
 *
 * ;Number and a limit behind the expression compare the number that its first group stands for.
 * The keys of limits may follow. A line whose group is no number is not judged.
 *
 * Events: EVENT_LOG with the fields Log and Message, and Type, EventId, Source where a log has
 * them.
 */
#pragma once

#include "triggers/trigger.h"

extern const struct trigger_ops log_message_trigger;

/* Append a sentence if the text before an '@' looks like a misspelled log; else nothing. */
void log_message_doubt(const struct trigger *t, struct buf *out);
