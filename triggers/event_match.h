/*
 * Rules on any event: StopOnEtwEvent, also called StopOnEvent.
 *
 *	PROVIDER/EVENT[;Key=Value]...
 *	Microsoft-Windows-Kernel-File/Create;FieldFilter=FileName~\.dmp$
 *	MyCompany-Orders/Checkout/Start;TriggerMSec=2000;InFlight=true
 *
 * PROVIDER ends at the first '/': a registered name, a GUID, or *EventSourceName; the kernel's is
 * "Windows Kernel Trace". EVENT is Task/Opcode, Task when the opcode says nothing, or EventID(n),
 * whole and in any case. On Linux sched/sched_process_exit and all other tracepoints,
 * uprobe:/path/of/program:symbol, and usdt:/path:provider:name for a program's own probes.
 *
 *	Keywords      hexadecimal; default all ones
 *	Level         0 to 5, or Critical to Verbose; default 4
 *	Process       whose events count
 *	FieldFilter   see field_filter.h; may be repeated, and all must pass
 *	TriggerMSec   0 = every such event fires; else a start fires if its stop takes longer
 *	StopEvent     of the same provider; by default EVENT with Stop for Start, or
 *	              EventID(n + 1); on Linux _exit for _enter and _entry, and for a uprobe the
 *	              function's return. Of a probe, a name alone is of the same program. Two
 *	              with '|' between: whichever comes first
 *	StartStopID   what a start and its stop share besides their process: a field's name,
 *	              ThreadID or ActivityID; by default the first that exists of: an activity
 *	              path, the first field, the activity, the thread; for stops derived on Linux,
 *	              V8 and CPython the thread
 *	InFlight      a start that is still open fires too; default false
 *	Stack         the event carries the thread's stack, where the source can read it
 *	Text          of a probe, what it reads of the program (uprobe_text_linux.h); the sentence
 *	              of a start says it
 *	Verbose, BufferSizeMB               accepted for PerfView's sake, without effect
 *	and those of threshold.h, for the limit of TriggerMSec
 *
 * Filters look at the start only. A start replaces an open one of the same context. Pids count
 * whole (PerfView: 16 bits), values are compared, not hashed, and a reused pid is another process.
 */
#pragma once

#include "triggers/pairs.h"
#include "triggers/trigger.h"

extern const struct trigger_ops event_match_trigger;

/*
 * For views: whether an event starts or stops what a rule of this kind with a stop measures, and
 * the key that both share. Filters look at starts only. One without its ActivityID is neither.
 */
enum pair_end { PAIR_NEITHER, PAIR_START, PAIR_STOP };
enum pair_end event_match_end(const struct trigger *t, const struct event *e,
			      struct pair_key *key);

/*
 * The path of an activity, such as "/1/5/3", from the id that EventSource made of it; false: it is
 * no path. Two nibbles a byte say what comes next: 1 to 10 that number, 11 that the next number
 * only goes on another's, 12 to 15 that a number of 1 to 4 bytes follows. Source: the .NET runtime,
 * ActivityTracker.cs, AddIdToGuid (MIT).
 */
#define ACTIVITY_PATH_BYTES 64
bool activity_path(const char *guid, uint32_t pid, char out[ACTIVITY_PATH_BYTES]);
