/*
 * An incident: the window around a firing, as stores keep it and exporters read it.
 *
 * struct incident_head is what list and show need; struct incident is the whole content in plain
 * arrays with indices, one merged stack tree, times of the recorder clock. It is built by
 * store_load() (or by hand in tests) and then only read. Exporters are functions of it: no symbol
 * lookup, no locale, the same bytes on every host. One thread.
 */
#pragma once

#include "model/home.h"
#include "model/segment.h"

enum incident_state {
	INCIDENT_OPEN,          /* being written */
	INCIDENT_COMPLETE,
	INCIDENT_PARTIAL,       /* the recorder ended before it was complete; readable */
};

struct incident_head {
	int64_t id;                          /* 0 = not stored yet */
	char uuid[37];
	enum incident_state state;
	bool pinned;
	char *rule;                      /* the rule's text as given; "manual", "max-collect-sec" */
	char *reason;                        /* one sentence: what fired, value against limit */
	double value, limit;                 /* NaN = none */
	uint64_t trigger_ns;                 /* recorder clock */
	uint64_t trigger_wall_ns;            /* the same moment, wall clock */
	/* when it was stored if not live (a trace file), else 0; never loaded */
	uint64_t kept_wall_ns;
	uint64_t asked_pre_ns, asked_post_ns;
	uint64_t t0_ns, t1_ns;               /* the actual window */
	char *gap_reason;               /* why it differs from the requested one; NULL when equal */
	/* in the window, of streams that are counted; lost = the sum where loss_counts() */
	uint64_t samples, lost;
	uint64_t lost_by_kind[LOSS_KINDS];
	uint64_t quality[QUALITIES];         /* samples by stack quality */
	uint64_t stored_bytes;               /* in the store, shared segments counted fully */
	uint64_t recorder_cpu_ns, recorder_rss_bytes;
	uint64_t period_ns[STREAMS_MAX];     /* of each stream; 0 = absent */
	char *host, *host_text;              /* name; system and version */
	char *recorder_version;
	char *note;                          /* or NULL */
	char *remarks;                       /* of people, one a line, with its time; or NULL */
};

/* Samples of events that are missing, so that what follows from each of them is an estimate. */
static inline uint64_t incident_missing_events(const struct incident_head *h)
{
	return h->lost_by_kind[LOSS_EVENTS] + h->lost_by_kind[LOSS_QUEUE];
}

void incident_head_free(struct incident_head *h);
/*
 * A group is the incidents that several machines keep of one window. Its id is the uuid of the one
 * that fired; the others end their reason with "[group UUID]".
 */
#define INCIDENT_GROUP "group "
#define UUID_BYTES 36u
bool uuid_is(const char *text);
/* Whether it is of the group whose id begins so, with GROUP_DIGITS_MIN characters or more. */
#define GROUP_DIGITS_MIN 8u
bool incident_is_of_group(const struct incident_head *h, const char *id);
/*
 * One line of the system's log, of an incident that is stored: for journalctl RECORDER_INCIDENT=7,
 * and for who watches that log.
 */
void incident_tell_system(const struct incident_head *h, const char *store_path);
int incident_head_copy(const struct incident_head *from, struct incident_head *to);
const char *incident_state_text(enum incident_state state);

/* The first members of an incident in JSON: in list, in show (with the value that fired). */
struct json;
void json_incident(struct json *j, const struct incident_head *h, bool with_value);

/* Whether a moment is in the window. */
static inline bool incident_reaches(const struct incident_head *h, uint64_t time_ns)
{
	return time_ns >= h->t0_ns && time_ns <= h->t1_ns;
}

/* Seconds from the trigger; before it they are negative. */
static inline double incident_seconds(const struct incident_head *h, uint64_t time_ns)
{
	return ((double)time_ns - (double)h->trigger_ns) / 1e9;
}

/* Seconds from the trigger, rounded down. No sound incident reaches the limits, 68 years away. */
int32_t incident_second(const struct incident_head *h, uint64_t time_ns);

struct incident_process {
	uint32_t pid, parent_pid, exec;
	uint32_t part;                       /* of several incidents; see incident_join.h */
	uint64_t start_ns;
	const char *name, *cmdline;          /* never NULL */
	const char *home;                    /* never NULL: model/home.h */
};

/* The names of a process, with their storage. */
struct incident_names {
	struct process_names is;
	char called[PROCESS_CALLED_BYTES], script[PROCESS_CALLED_BYTES];
};

struct incident_thread {
	uint32_t process;                    /* index */
	uint32_t tid;
	const char *name;                    /* "" when it has no name of its own */
};

struct incident_module {
	enum object_kind kind;
	const char *name, *path;
	uint8_t build_id[BUILD_ID_MAX];
	uint8_t build_id_bytes;
};

struct incident_frame {
	uint32_t module;                     /* index */
	uint32_t flags;                      /* enum frame_flags */
	uint64_t offset;                     /* as in model/frame.h: lookup offset */
	uint64_t function_offset;           /* of the function's first byte; 0 without a function */
	const char *function;                /* NULL = no name */
	const char *raw_name;                /* linker's name; NULL = same as function */
	const char *function_module;         /* overrides the module's name; or NULL */
	const char *file;                    /* source file; NULL = unknown; not stored */
	uint32_t line;                       /* in file; 0 = unknown */
};

/*
 * Far from 1 the page faults that were seen are others than those that made it grow. 0: it did not
 * grow, and has no samples.
 */
static inline bool memory_scales(double factor)
{
	return factor == 0 || (factor >= 0.25 && factor <= 4);
}

/* A sampled block of a heap that was freed in the window. */
struct incident_freed {
	uint32_t thread;                     /* that allocated it */
	uint32_t stack, freed_by;            /* stacks; STACK_NONE */
	uint16_t cpu;                        /* where it was allocated */
	uint64_t weight;                     /* bytes */
	uint64_t time_ns, freed_ns;
};

struct incident {
	struct incident_head head;
	struct incident_process *processes;
	struct incident_thread *threads;
	struct incident_module *modules;
	struct incident_frame *frames;
	struct incident_stack *stacks;
	struct incident_sample *samples;     /* by time, in delivery order */
	struct incident_event *events;
	struct event_field *fields;
	uint32_t nprocesses, nthreads, nmodules, nframes, nstacks, nsamples, nevents, nfields;
	/* Of several incidents as one: what each is called, by incident_process.part; else none. */
	const char **parts;
	uint32_t nparts;
	uint64_t cpu_period_ns;              /* from the first segment with CPU samples; 0 = none */
	/* If periods or weights differ within the incident: then a sample is no unit. */
	bool several_periods;
	/*
	 * Of each process: by what its samples of STREAM_RSS_NET would have to be multiplied to add
	 * up to the growth of its anonymous memory; 0 = not known. They are, if memory_scales().
	 */
	double *memory_factors;              /* NULL = there are none */
	struct incident_freed *freed;        /* what came and went: made by incident_memory() */
	uint32_t nfreed;
	char *damage;        /* a sentence about what could not be read; NULL = all was */
	struct incident_build *build;        /* tables for building; private */
};

/*
 * Building. Each function adds or finds by contents and returns the index, or UINT32_MAX without
 * memory or for an index that does not exist. Strings are copied; NULL becomes "" where it is not
 * allowed. incident_init() prepares a struct incident, which may be freed at any point after it, or
 * as {0}.
 */
int incident_init(struct incident *in);            /* 0 or ERR_MEMORY; all empty, head included */
void incident_free(struct incident *in);
/* ERR_FORMAT with the damage, if any: for callers that need the whole incident. */
int incident_whole(const struct incident *in, struct err *err);
uint32_t incident_add_process(struct incident *in, const struct incident_process *p);
uint32_t incident_add_thread(struct incident *in, const struct incident_thread *t);
uint32_t incident_add_module(struct incident *in, const struct incident_module *m);
uint32_t incident_add_frame(struct incident *in, const struct incident_frame *f);
/* The same where the texts are those of another frame of the incident, or NULL. */
uint32_t incident_add_known_frame(struct incident *in, const struct incident_frame *f);
uint32_t incident_add_stack(struct incident *in, uint32_t parent, uint32_t frame);
/* 0, ERR_MEMORY, or ERR_FORMAT for an index, stream or quality that does not exist. */
int incident_add_sample(struct incident *in, const struct incident_sample *s);
/* Samples and events by time; those of equal times keep their order. 0 or ERR_MEMORY. */
int incident_sort(struct incident *in);
int incident_add_event(struct incident *in, const struct incident_event *e,
		       const struct event_field *fields);

/* A copy of a text that lives as long as the incident; NULL without memory. */
const char *incident_text(struct incident *in, const char *text);

/*
 * Merge a decoded segment, clipped to [head.t0_ns, head.t1_ns]. Takes only the stacks that a sample
 * or an event in the window uses, and the periods that head does not have yet. Does not count
 * samples: see incident_count().
 *
 * threads, frames  local index -> index in the incident, for all that the segment lists
 * returns  0, ERR_MEMORY, or ERR_FORMAT when an index points nowhere (nothing was added then)
 */
int incident_add_segment(struct incident *in, const struct segment_content *c,
			 const uint32_t *threads, const uint32_t *frames, struct err *err);

/*
 * What a CPU sample adds to sums that are compared: 1; or its weight in microseconds where the
 * sampling rate changed within the incident, or samples have measured weights (several_periods).
 */
uint64_t incident_units(const struct incident *in, const struct incident_sample *s);

/*
 * Give the parts of each long wait the stack of its last part, which says who ended the wait (see
 * source/thread_time.h). A wait that the window's end cuts keeps its leaf NOT_READIED_YET.
 * returns  0 or ERR_MEMORY
 */
int incident_join_waits(struct incident *in);
/*
 * By the kernel's frames above it a wait for a device is HARD_FAULT, if it is for a page of a
 * mapped file or of swap, and another one NETWORK_TIME, if it is for a socket of the network. Call
 * it after that. 0 or ERR_MEMORY
 */
int incident_name_waits(struct incident *in);

/*
 * Read the marks of page faults: give huge pages their weight, add a sample of STREAM_RSS_NET for
 * each fault whose page was still there at the end of the window, and drop the marks. The memory of
 * a process that ended over MEMORY_ENDED_NS before the trigger has gone with it; one that ended
 * later, or that the kernel killed for lack of memory, may be what the incident is about, and
 * counts as it was at its end.
 *
 * Where the sizes of processes are known (events Memory/RSS), the net samples of each process are
 * scaled so that they add up to the growth of its anonymous memory; a process that did not grow has
 * none. Page faults alone do not tell: a copy after a fork is one, too. Of samples of STREAM_HEAP
 * those become STREAM_HEAP_NET whose block was not freed, unscaled; the others are in->freed, too.
 * returns  0 or ERR_MEMORY
 */
#define MEMORY_ENDED_NS 5000000000ULL
int incident_memory(struct incident *in);

/*
 * Whether process 0 is what runs while a CPU is idle, on both systems: the idle loop, and what
 * interrupts it. Not where no process has a pid: files of others (folded stacks) know only names.
 */
bool incident_has_idle(const struct incident *in);

/* The process of a thread, an index; UINT32_MAX of THREAD_NONE. */
static inline uint32_t incident_process_of(const struct incident *in, uint32_t thread)
{
	return thread == THREAD_NONE ? UINT32_MAX : in->threads[thread].process;
}

/* A field of an event by name, as event_field(); NULL if it has none. Borrowed. */
const struct event_field *incident_field(const struct incident *in, const struct incident_event *e,
					 const char *name);
/* The same as a number that is not negative: 0 if it is missing, or of another type. */
uint64_t incident_field_uint(const struct incident *in, const struct incident_event *e,
			     const char *name);

/* Compute head.samples and head.quality from the samples. */
void incident_count(struct incident *in);
/* The samples of each stream. */
void incident_count_streams(const struct incident *in, uint64_t n[STREAMS_MAX]);
/* Append the metrics that it has samples of: "cpu, event"; returns how many. */
unsigned incident_put_metrics(const struct incident *in, struct buf *out);

/* ---- what readers ask ------------------------------------------------------------------------ */

struct incident_filter {
	/* Name (case-insensitive), decimal pid, or as "unit:NAME" (home_key_of()); NULL = all. */
	const char *process;
	const char *home[HOME_KEYS];         /* each by home_is(); NULL = all */
	uint32_t tid;                        /* 0 = all */
	int64_t from_ns, to_ns;              /* relative to the trigger */
	bool has_from, has_to;
	bool no_kernel;                      /* leave out kernel frames; samples stay */
	/* Of stacks with managed code leave out all other frames; samples stay. */
	bool managed_only;
	bool no_idle;                        /* leave out samples of the idle process, pid 0 */
	/* of STREAM_EVENT only what has the leaf event!NAME or event!NAME TYPE; NULL = all */
	const char *event;
};

/*
 * Apply a filter in place; head.samples, quality, t0 and t1 follow. Events of other processes and
 * threads go too; events without a process stay. Tables keep their entries, head.lost its value.
 * returns  0; ERR_NOT_FOUND when no process or thread matches (the sentence lists those with most
 *          samples), there is no such event, or nothing of the window is left; ERR_USAGE when
 *          from is after to; ERR_MEMORY
 */
int incident_filter(struct incident *in, const struct incident_filter *filter, struct err *err);

/*
 * Leave out CPython's own frames that call Python functions, such as those of its evaluator: stacks
 * read as Python says them. What Python functions call stays, as all other libraries do.
 * returns  0 or ERR_MEMORY
 */
int incident_fold_interpreters(struct incident *in, struct err *err);

/* ---- source lines ---------------------------------------------------------------------------- */

/* A source function at a frame's address. */
struct incident_line {
	const char *function;                /* NULL = unknown */
	const char *file;                    /* NULL = unknown */
	uint32_t line;                       /* in file; 0 = unknown */
	uint64_t function_offset;            /* of its first byte, counted as in frames */
};

/* The lines of a frame: lines[first], then n - 1 functions inlined into it, outermost first. */
struct incident_expansion {
	uint32_t first, n;                   /* n 0 = the frame stays unchanged */
};

/*
 * Put source lines and inlined functions into the stacks of all samples and events.
 *
 * A frame gets file and line of its first line, and its function only if it has no name. Each
 * further line becomes a frame below it with the same offset, flagged FRAME_INLINED. So stacks get
 * deeper, and the number of samples stays. Tables keep entries that nothing uses any more.
 *
 * of_frame  one for each of in->nframes
 * nlines    the length of lines; every expansion lies within, and no two share a line
 * returns   0 or ERR_MEMORY, which leaves samples and events unchanged
 */
int incident_expand(struct incident *in, const struct incident_expansion *of_frame,
		    const struct incident_line *lines, uint32_t nlines, struct err *err);

/* No name in an export is longer; a name that is cut ends in an ellipsis. */
#define INCIDENT_TEXT_MAX 4000

/*
 * Append "module!function", "module!?" or "?!?"; valid UTF-8 without control characters, cut at
 * INCIDENT_TEXT_MAX bytes.
 * addresses: "module!+0xOFFSET" and "0xADDR" in place of "?"; callers show the return address.
 */
void incident_frame_text(const struct incident *in, uint32_t frame, bool addresses,
			 struct buf *out);

/* The same with another text for the module, such as its name without ".dll". */
void incident_frame_text_as(const struct incident *in, uint32_t frame, const char *module,
			    size_t module_bytes, bool addresses, struct buf *out);

/* "Incident 3"; "History" for a window of the history, which has no number. */
#define INCIDENT_TITLE_BYTES 32
const char *incident_title(const struct incident_head *h, char out[INCIDENT_TITLE_BYTES]);

/*
 * For each frame the first one of the same text, code and source line, whatever its address, so
 * that a text is made once a function. A frame without a name is alone. free() it; NULL without
 * memory.
 */
uint32_t *incident_frame_twins(const struct incident *in);

/*
 * The module part alone: "[kernel]", "libc.so.6", "[jit]", "?". Never NULL or empty. It is borrowed
 * from the incident as recorded, so clean it (utf8_put_clean) before printing.
 */
const char *incident_frame_module(const struct incident *in, uint32_t frame);

/* What kind of code a frame is; from CODE_JAVA on it is managed. */
enum code_kind {
	CODE_NONE,                           /* no code: a text, or an address outside of all */
	CODE_KERNEL,
	CODE_NATIVE,
	CODE_JAVA,
	CODE_PYTHON,
	CODE_JAVASCRIPT,
	CODE_DOTNET,
	CODE_GENERATED,                      /* made at run time, nobody says by which runtime */
	CODE_KINDS,
};

enum code_kind incident_frame_code(const struct incident *in, uint32_t frame);
const char *code_kind_text(enum code_kind kind);     /* "native", "Java"; "" for CODE_NONE */

/* A frame's address in its module, as people look it up: not the byte before it. */
uint64_t frame_address(const struct incident *in, uint32_t frame);
/* Whether it has a name. */
bool frame_is_named(const struct incident *in, uint32_t frame);

/* Names of a process, by index; the short one is its first thread's, if the incident lists that. */
void incident_process_names(const struct incident *in, uint32_t process,
			    struct incident_names *out);
/* For lists: see process_names_label(). */
const char *incident_process_label(const struct incident *in, uint32_t process,
				   char out[PROCESS_LABEL_BYTES]);
