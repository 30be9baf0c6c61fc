/*
 * Rule on any event: StopOnEtwEvent, and StopOnEvent, which is the same.
 *
 *	PROVIDER/EVENT[;Key=Value]...
 *	Microsoft-Windows-Kernel-File/Create;FieldFilter=FileName~\.dmp$
 *	MyCompany-Orders/Checkout/Start;TriggerMSec=2000;InFlight=true
 *
 * PROVIDER goes up to the first '/': a registered name, a GUID, or *EventSourceName; the kernel's is
 * "Windows Kernel Trace". EVENT: Task/Opcode, Task when the opcode says nothing, or EventID(n); whole,
 * in any case. On Linux sched/sched_process_exit, and so all tracepoints; uprobe:/path/of/program:symbol,
 * and usdt:/path:provider:name for probes that a program brings with it.
 *
 *	Keywords      hex, all ones         Level         4; 0 to 5, or Critical to Verbose
 *	Process       whose events          FieldFilter   see field_filter.h; repeated: all must pass
 *	TriggerMSec   0 = every such event fires; else a start that takes longer until its stop
 *	StopEvent     of the same provider; else EVENT with Start made Stop, or EventID(n + 1); of Linux
 *	              _enter and _entry made _exit, of a uprobe the function's return
 *	StartStopID   what a start and its stop have in common, besides their process: a field's name,
 *	              ThreadID or ActivityID; else the first that there is of: an activity path, the
 *	              first field, the activity, the thread; the thread for derived stops of Linux, of V8
 *	              and of CPython
 *	InFlight      a start that is still open fires too; off unless said
 *	Stack         the thread's stack goes with the event, where the source can have it
 *	Verbose, BufferSizeMB               accepted, without effect here
 *	and those of threshold.h, for the limit of TriggerMSec
 *
 * Filters look at the start only. A start of the same context replaces an open one. Processes count
 * whole (not 16 bits of the pid), values as they are (not hashed), and pid reuse makes another.
 *
 * Source: design page triggers.md section 4; activity paths: see event_match_key.c.
 */
#ifndef TRIGGERS_EVENT_MATCH_H
#define TRIGGERS_EVENT_MATCH_H

#include "triggers/trigger.h"

extern const struct trigger_ops event_match_trigger;

/*
 * Open a rule that is a preset: its spec is `spec`, and for people it is TITLE:SHOWN. what: "request",
 * NULL = the event's name; not owned.
 */
int event_match_open(const struct trigger_ops *ops, const char *title, const char *shown,
		     const char *spec, const char *what, const struct trigger_env *env,
		     struct trigger **out, struct err *err);

/* The functions of such a rule. */
int event_match_needs(const struct trigger *t, struct needs *out, struct err *err);
void event_match_sense(struct trigger *t, const struct event *e, struct buf *why, struct sense *out);
void event_match_status(const struct trigger *t, struct trigger_status *out);
void event_match_close(struct trigger *t);
bool event_match_wish(const struct trigger *t, unsigned i, struct trigger_wish *out);

/* What it listens to, for people: "PROVIDER/EVENT to STOP by FIELD". Borrowed. */
const char *event_match_spec(const struct trigger *t);

#endif
