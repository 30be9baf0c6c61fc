/*
 * Events: what a source delivers, what triggers see, what the ring keeps.
 *
 * A source decodes an event once, at its edge; after it nobody knows perf or ETW. Everything an
 * event points to is borrowed for the call.
 */
#ifndef MODEL_EVENT_H
#define MODEL_EVENT_H

#include "model/frame.h"
#include "model/process.h"

#include <stdbool.h>
#include <stdint.h>

#define STACK_NONE UINT32_MAX
#define STACK_MAX_FRAMES 512u           /* deeper stacks are cut at the root and marked truncated */
#define EVENT_MAX_FIELDS 64u
#define EVENT_MAX_TEXT 4096u            /* bytes of one text field, provider or name */
#define CPU_NONE UINT16_MAX

enum event_kind {
	EVENT_NONE,
	EVENT_TICK,             /* 100 ms of released time have passed; the clock of triggers */
	EVENT_SAMPLE,           /* a stack; value = weight in ns or in the stream's unit */
	EVENT_COUNTER,          /* name = the counter's full name; value; EVENT_FLAG_ABSENT */
	EVENT_LOST,             /* name = what was lost (enum loss_kind's text); value = how many */
	EVENT_PROCESS_START,    /* also at exec */
	EVENT_PROCESS_EXIT,     /* value = exit code where known */
	EVENT_THREAD_START,
	EVENT_THREAD_EXIT,
	EVENT_IMAGE,            /* a code object was mapped; not kept in the ring */
	EVENT_GENERIC,          /* any other: provider, name, fields */
	EVENT_LOG,              /* a log line: fields Message, Log, ... */
	EVENT_EXPECTED,         /* value = samples that cpu should have given in the second that ends
				   now: its busy time x the rate. Not sent for an idle second. */
	EVENT_RATE,             /* CPU samples weigh `value` ns from here on; name = why; field StackKb */
	EVENT_KINDS,
};

enum event_flags {
	EVENT_FLAG_ABSENT = 1,  /* the counter's instance does not exist now: no value */
	EVENT_FLAG_LATE = 2,    /* released after its time had passed */
	EVENT_FLAG_MONITOR = 4, /* a counter to keep in the incident, asked by MonitorPerfCounter */
	EVENT_FLAG_ID = 8,      /* its provider gave it a number, of 16 bits: flags >> EVENT_ID_SHIFT */
};

#define EVENT_ID_SHIFT 16

enum stream {
	STREAM_CPU,             /* on-CPU samples, weight ns */
	STREAM_OFF_CPU,
	STREAM_ALLOC,
	STREAM_EVENT,
	STREAMS_MAX,
};

/* How far a stack can be trusted. */
enum stack_quality {
	QUALITY_NONE,           /* no stack was asked for */
	QUALITY_COMPLETE,       /* the walk reached the thread's root */
	QUALITY_FP,             /* followed frame pointers; whether it is whole is not known */
	QUALITY_STITCHED,       /* tail taken from the thread's last complete stack */
	QUALITY_REMOTE,         /* missing pages read from the process after the sample */
	QUALITY_TRUNCATED,      /* cut at a depth or copy limit */
	QUALITY_BROKEN,         /* the walk ended in the middle */
	QUALITIES,
};

enum loss_kind {
	LOSS_KERNEL,            /* the kernel's ring of samples was full; ETW: of samples and events */
	LOSS_THROTTLED,         /* sampling was throttled: number of times */
	LOSS_QUEUE,             /* our own queue to the merge thread was full */
	LOSS_SIDEBAND,          /* process and mapping records lost; maps are rescanned */
	LOSS_TABLE,             /* a table's ceiling: samples kept without a stack */
	LOSS_LATE,              /* events released out of order (kept) */
	LOSS_FLOOD,             /* left out: events over their process's share, or of side-band records */
	LOSS_EVENTS,            /* of tracepoints, probes, context switches or .NET: no samples; their buffer was full */
	LOSS_KINDS,
};

/* "kernel", "throttled", ...: names in stores and JSON; loss_kind_from_text gives LOSS_KINDS for others. */
const char *loss_kind_text(enum loss_kind kind);
enum loss_kind loss_kind_from_text(const char *text);
const char *stack_quality_text(enum stack_quality quality);
const char *event_kind_text(enum event_kind kind);
const char *stream_text(enum stream stream);

enum field_type { FIELD_INT, FIELD_UINT, FIELD_DOUBLE, FIELD_TEXT };

struct event_field {
	const char *name;
	enum field_type type;
	union {
		int64_t i;
		uint64_t u;
		double d;
		const char *text;
	} v;
};

struct event {
	uint64_t time_ns;                    /* recorder clock */
	enum event_kind kind;
	uint32_t flags;                      /* enum event_flags */
	struct process *process;             /* NULL when it has none */
	struct thread *thread;               /* NULL when it has none */
	uint16_t cpu;                        /* CPU_NONE */
	uint8_t stream, quality;
	const char *provider, *name;         /* NULL = "" */
	double value;
	const struct frame_ref *stack_frames;   /* leaf first; from the source to the merge thread */
	uint32_t nstack_frames;
	const struct event_field *fields;
	uint32_t nfields;
	uint32_t stack;                      /* node of the open segment; set by the merge thread */
	uint32_t payload_bytes;              /* of the record it was; for listings, not kept */
	uint64_t hex_fields;                 /* bit i: people read field i in hex; the same */
};

/* A field by name (case-insensitive), or NULL. */
const struct event_field *event_field(const struct event *e, const char *name);
/*
 * Whether an event's name is the one that a rule names, in any case of letters. Task/Info is the same as Task: an
 * opcode that says nothing. MyRequestStart, as the method of an EventSource is called, is the same as MyRequest/Start,
 * as its event is.
 */
bool event_name_is(const char *wanted, const char *name);

#endif
