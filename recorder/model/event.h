/*
 * Events: what a source delivers, what triggers see, what the ring keeps.
 *
 * A source decodes an event once; beyond the source nobody knows perf or ETW. Everything an event
 * points to is borrowed for the call.
 */
#pragma once

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
	EVENT_GENERIC,          /* any other event: provider, name, fields */
	EVENT_LOG,              /* a log line: fields Message, Log, ... */
	EVENT_EXPECTED,         /* value = samples due from the CPU in the second that ends now: its
				   busy time x the rate. Not sent for an idle second. */
	EVENT_RATE,           /* CPU samples weigh `value` ns from now; name = why; field StackKb */
	EVENT_KINDS,
};

enum event_flags {
	EVENT_FLAG_ABSENT = 1,  /* the counter's instance does not exist now, so no value */
	EVENT_FLAG_LATE = 2,    /* released after its time had passed */
	EVENT_FLAG_MONITOR = 4, /* a counter that MonitorPerfCounter keeps in the incident */
	EVENT_FLAG_ID = 8,      /* has the provider's 16-bit number: flags >> EVENT_ID_SHIFT */
};

#define EVENT_ID_SHIFT 16

/* What weights of samples count. A stream is also a row of stream_metrics[], in event.c. */
enum stream {
	STREAM_CPU,             /* on-CPU samples, weight ns */
	STREAM_OFF_CPU,
	STREAM_ALLOC,
	STREAM_EVENT,
	STREAM_RSS,             /* page faults: bytes that became resident, by who touched them */
	STREAM_RSS_NET,         /* of these what is still there: made by incident_memory() */
	STREAM_RSS_MARK,        /* what became of an RSS sample; readers see none */
	STREAM_HEAP,            /* sampled allocations of a heap: bytes */
	STREAM_HEAP_NET,        /* of these what was not freed: made by incident_memory() */
	STREAM_HEAP_MARK,       /* that such a block was freed; readers see none */
	/* Made for a view by analysis/event_samples.h, never stored: */
	STREAM_VM,              /* memory that a program asked the system for */
	STREAM_VM_NET, STREAM_VM_PEAK,       /* of it what it kept; what there was at most */
	STREAM_HEAP_PEAK,       /* of STREAM_HEAP: the same */
	STREAM_IO_BYTES,        /* read from and written to disks, by who asked for it */
	STREAM_IO_TIME,         /* ns for which disks served that */
	STREAM_FILE_BYTES, STREAM_FILE_TIME, /* the same of calls: of pipes, too */
	STREAMS_MAX,
};

/*
 * A mark is a sample without thread and stack, of the CPU of the fault that it is about. Two faults
 * of a CPU never have the same tick (100 ns), so (cpu, tick) names a fault.
 *
 * gone   the page is not resident any more, or never was anonymous memory
 * huge   the fault brought a huge page, so it weighs HUGE_PAGES times as much
 *
 * The same of samples of the heap, whose blocks are gone when they are freed; these marks have
 * thread and stack of who freed it.
 */
#define FAULT_TICK_NS 100u
#define HUGE_PAGES 512u
enum memory_mark { MARK_GONE, MARK_HUGE };

static inline double memory_mark_weight(uint64_t fault_ns, uint64_t mark_ns, enum memory_mark mark)
{
	return (double)((mark_ns / FAULT_TICK_NS - fault_ns / FAULT_TICK_NS) * 2 + mark);
}

/* GC/AllocationTick: its field AllocationKind, and a leaf below such an object's type. */
#define GC_LARGE_OBJECT 1u
#define GC_LARGE_OBJECT_NAME "LargeObject"

enum metric_unit { UNIT_NS, UNIT_BYTES, UNIT_EVENTS, METRIC_UNITS };

/* Of a stream: all that views and exports have to know of it. */
struct stream_metric {
	const char *name;                    /* "off-cpu": --metric NAME, and in stores and JSON */
	enum metric_unit unit;
	const char *what;                    /* after a number and its unit: "off CPU" */
	const char *pprof, *perf;            /* a sample type's name, and a perf event's */
	/* PerfView's names of its views of it, '|' between, or NULL; see stream_from_text() */
	const char *perfview;
	bool counted;      /* the number of samples says how much was recorded; else only weights */
	bool mark;       /* incident_memory() reads and drops it: no reader of incidents sees it */
	bool view;                           /* made for a view, never stored */
};

extern const struct stream_metric stream_metrics[STREAMS_MAX];

static inline bool stream_is_counted(unsigned stream)
{
	return stream_metrics[stream].counted;
}

static inline bool stream_is_time(unsigned stream)
{
	return stream_metrics[stream].unit == UNIT_NS;
}

static inline bool stream_is_bytes(unsigned stream)
{
	return stream_metrics[stream].unit == UNIT_BYTES;
}

static inline bool stream_is_mark(unsigned stream)
{
	return stream_metrics[stream].mark;
}

/* How far a stack can be trusted. */
enum stack_quality {
	QUALITY_NONE,           /* no stack was requested */
	QUALITY_COMPLETE,       /* the walk reached the thread's root */
	QUALITY_FP,             /* followed frame pointers; may be incomplete */
	QUALITY_STITCHED,       /* tail taken from the thread's last complete stack */
	QUALITY_REMOTE,         /* missing pages read from the process after the sample */
	QUALITY_TRUNCATED,      /* cut at a depth or copy limit */
	QUALITY_BROKEN,         /* the walk ended in the middle */
	QUALITIES,
};

enum loss_kind {
	LOSS_KERNEL,            /* the kernel's ring was full: samples, with ETW also events */
	LOSS_THROTTLED,         /* sampling was throttled: number of times */
	LOSS_QUEUE,             /* our own queue to the merge thread was full */
	LOSS_SIDEBAND,          /* process and mapping records lost; maps are rescanned */
	LOSS_TABLE,             /* files, processes, frames had no room in a table (samples kept) */
	LOSS_LATE,              /* events released out of order (kept) */
	LOSS_FLOOD,          /* left out: events over their process's share, or side-band records */
	LOSS_EVENTS,            /* tracepoints, probes, context switches or .NET events (not
				   samples): their buffer was full, or --providers' ceiling
				   of a second was reached */
	LOSS_PYTHON,            /* samples of Python programs without their Python frames (kept) */
	LOSS_KINDS,
};

/* Whether it is in the sum of what was lost: floods are left out, and the others' samples kept. */
static inline bool loss_counts(unsigned kind)
{
	return kind != LOSS_FLOOD && kind != LOSS_PYTHON && kind != LOSS_TABLE;
}

/*
 * "kernel", "throttled", ...: the names of the constants above in stores and JSON; "?" for what is
 * none. Unknown texts give LOSS_KINDS.
 */
const char *loss_kind_text(unsigned kind);
enum loss_kind loss_kind_from_text(const char *text);
const char *stack_quality_text(unsigned quality);
const char *event_kind_text(unsigned kind);
/*
 * The metric's name, "?" for what is none. Back, of any case, also from PerfView's names, there
 * with or without what stands in parentheses and "Stacks": "GC Heap Net Mem (Coarse Sampling)
 * Stacks". Unknown names give STREAMS_MAX.
 */
const char *stream_text(unsigned stream);
enum stream stream_from_text(const char *name);

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
	/* provider, name and the fields' names, if any, are there until the source is closed */
	bool names_stay;
	const char *provider, *name;         /* NULL = "" */
	double value;
	const struct frame_ref *stack_frames;  /* leaf first; from the source to the merge thread */
	uint32_t nstack_frames;
	uint64_t stack_id;               /* frames_stack_id(): the same has the same frames; or 0 */
	/*
	 * Not 0: a sample of STREAM_EVENT follows from the event, see event_become_sample(). Its
	 * leaf stands before stack_frames, and this is the id of its stack.
	 */
	uint64_t sample_id;
	const struct event_field *fields;
	uint32_t nfields;
	uint32_t stack;                    /* a node of the open segment; set by the merge thread */
	uint32_t payload_bytes;              /* of the original record; for listings, not kept */
	uint64_t hex_fields;               /* bit i: show field i in hex; for listings, not kept */
};

static inline void event_become_sample(struct event *e)
{
	e->kind = EVENT_SAMPLE;
	e->stream = STREAM_EVENT;
	e->value = 1;
	e->nfields = 0;
	e->stack_frames--;
	e->nstack_frames++;
	e->stack_id = e->stack_id ? e->sample_id : 0;
	e->sample_id = 0;
}

/* Find a field by name (case-insensitive); NULL when there is none. */
const struct event_field *event_field(const struct event *e, const char *name);
/*
 * Is this the event that a rule names, ignoring case? Task/Info equals Task, because the opcode
 * says nothing. MyRequestStart, which is how the method of an EventSource is called, equals
 * MyRequest/Start, the name of its event.
 */
bool event_name_is(const char *wanted, const char *name);
/* Whether every event has this field: ProcessID, ThreadID, ProcessName, ProviderName. */
bool event_has_own_field(const char *name);
