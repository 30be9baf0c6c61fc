/*
 * Sources: where events come from.
 *
 * A source runs on a thread of its own. It decodes what the system delivers and puts events into
 * its queue (model/queue.h) in time order, with a watermark at least every SOURCE_TURN_NS unless it
 * rests in the queue while it waits. It never opens a target's files, symbolizes, or touches the
 * store.
 */
#pragma once

#include "base/log.h"
#include "base/out.h"
#include "model/capture.h"
#include "model/needs.h"
#include "model/queue.h"
#include "symbol/reader.h"
#include "symbol/symbol.h"

/*
 * A source that delivers in portions does so where os_now_ns() is a multiple of SOURCE_TURN_NS. The
 * merge thread takes them SOURCE_TAKE_NS later: few wake-ups, and no event waits for two turns.
 */
#define SOURCE_TURN_NS (180 * NS_PER_MS)
#define SOURCE_TAKE_NS (10 * NS_PER_MS)
#define SOURCE_MANY_PER_S 5000u

/* What was asked last: how many events there were, and when. */
struct source_pace {
	uint64_t events, at_ns;
};

/* The next turn's length. Of many events, a third: a wake-up is little of what they cost then. */
static inline uint64_t source_turn_ns(struct source_pace *last, uint64_t events, uint64_t now_ns)
{
	bool many = (events - last->events) * NS_PER_SEC >
		    SOURCE_MANY_PER_S * (now_ns - last->at_ns);

	*last = (struct source_pace){events, now_ns};
	return many ? SOURCE_TURN_NS / 3 : SOURCE_TURN_NS;
}

struct source_config {
	struct frames *frames;
	struct processes *processes;
	struct log *log;
	struct queue *queue;                 /* where its events go */
	struct kallsyms_text *kallsyms;      /* for the symbol worker; NULL = it reads its own */
	struct capture capture;              /* what it is to deliver */
	double max_cpu_pct;                  /* the recorder's limit, of one CPU; 0 = none */
	/* Every event, also idle samples and snapshots, samples by name: `recorder events`. */
	bool every_event;
};

/* What a trace file says about itself. */
struct source_origin {
	uint64_t start_ns;                   /* its first moment, recorder clock; not 0 */
	uint64_t start_wall_ns;              /* the same moment, wall clock; 0 = not known */
	uint64_t period_ns;                  /* between CPU samples; 0 = not known */
	uint64_t bytes;                      /* file size, for "at N of M MB"; 0 = not known */
	char host[256], host_text[256];      /* machine and system; "" = not known */
	char note[400];                      /* its own losses, where it is cut; "" = none */
};

struct source_status {
	uint64_t events, lost;               /* delivered; lost in the kernel */
	double rate_hz;                      /* effective sampling rate; 0 = as asked */
	size_t table_bytes, table_max_bytes; /* unwind tables; 0 = the source has none */
	char note[200];                      /* what is missing, one sentence; "" = nothing */
	bool degraded;                       /* it is missing now: health is degraded */
};

/* How much of the CPU streams is sampled; see model/budget.h. */
struct source_level {
	unsigned freq_hz, stack_kb;
};

struct source {                              /* base of every source; first member */
	const struct source_ops *ops;
};

struct source_part {
	const char *name, *summary;
};

struct source_ops {
	const char *name, *summary;
	bool events;                         /* delivers providers'; check() knows their names */
	bool logs;                           /* delivers EVENT_LOG; check() knows the logs */
	bool endings;                        /* reports how processes ended */
	bool looks_at_others;                /* open(), check(), run() need os_rights_raise() */
	bool optional;                       /* if it cannot open, only rules that need it fail */
	bool stacks;                         /* --source chooses one of these; default: the first */
	bool instead_of_events;              /* used only when the chosen source has no events */
	bool copies_stack;                   /* its samples hold stack_kb of the stack */
	uint64_t behind_ns;                  /* how far it may lag; 0 = 250 ms */
	/* Any time before open: can it meet these needs? The error gives the nearest names. */
	int (*check)(const struct needs *needs, struct err *err);
	/* Print the counters that can be named here, one a line, as text or JSON; NULL = none. */
	int (*list)(const char *pattern, bool json, struct out *out, struct err *err);
	/*
	 * Print the events that rules can name, with their fields; ERR_NOT_FOUND: none matches.
	 * NULL = none.
	 */
	int (*list_events)(const char *pattern, bool json, struct out *out, struct err *err);
	/* Probe privileges. ERR_ACCESS says what is missing and what it costs. NULL = none. */
	int (*probe)(const struct source_config *cfg, struct err *err);
	/*
	 * Any time before open: describe its i-th optional part, which may be missing while the
	 * rest works. 0, or an error with what is missing and what to set; out->name NULL = there
	 * is no i-th part. NULL = it has no parts.
	 */
	int (*part)(unsigned i, struct source_part *out, struct err *err);
	int (*open)(const struct source_config *cfg, const struct needs *needs, struct source **out,
		    struct err *err);
	/* End what a killed recorder left in the system, and count it. NULL = nothing is left. */
	int (*clear)(uint32_t *n, struct err *err);
	/* On the source's own thread, until stop(). */
	int (*run)(struct source *s, struct err *err);
	/* Any thread: make run() return soon. */
	void (*stop)(struct source *s);
	/*
	 * Any thread while it runs: sample at another rate or copy less of the stack from now on.
	 * Its own thread does so soon, and puts an EVENT_RATE without a name where the change took
	 * place. A change that fails is logged and puts no event. NULL = its level cannot change.
	 */
	void (*set_level)(struct source *s, const struct source_level *level);
	/*
	 * Any thread while it runs: deliver everything up to now and a watermark at once, because
	 * an incident waits for it. NULL = it cannot be hurried.
	 */
	void (*catch_up)(struct source *s);
	/* Any thread while it runs, never blocks: an incident begins. NULL = it need not know. */
	void (*fired)(struct source *s);
	/* Any thread from open() on: limit the memory of its unwind tables. NULL = it has none. */
	void (*set_memory)(struct source *s, size_t table_bytes);
	/*
	 * Any thread while it runs, never blocks: take the stacks of all threads of this process,
	 * by name or pid, now, and deliver each as an event. NULL = it cannot.
	 */
	void (*take_stacks)(struct source *s, const char *process);
	/*
	 * Any thread: when the last stacks that were asked for were all taken; UINT64_MAX = that
	 * goes on, 0 = none were asked for. With take_stacks.
	 */
	uint64_t (*stacks_until)(struct source *s);
	/* Any thread while it runs. */
	void (*status)(struct source *s, struct source_status *out);
	/*
	 * Any thread while it runs: add the CPU time of processes of its own so far, and the memory
	 * of those that live. NULL = it has none.
	 */
	void (*add_usage)(struct source *s, uint64_t *cpu_ns, uint64_t *rss_bytes);
	/*
	 * The thread that takes the events, after the first event or after run(): where and when
	 * they were recorded. NULL = here and now. The engine asks for the note again at the end.
	 */
	void (*origin)(struct source *s, struct source_origin *out);
	/*
	 * The thread that takes the events, also during run(): name a frame that only this source
	 * knows (managed code of a trace). The name is valid until the next call; false = ask the
	 * symbol readers. NULL = it knows no names.
	 */
	bool (*name_frame)(struct source *s, const struct frame *frame, struct symbol *out);
	/*
	 * The same thread, during run(): an event of any source is kept next. Replace frames of its
	 * stack that this source knows better (code that a runtime made), as of the event's time;
	 * the new frames are valid until the next call. NULL = it knows none.
	 */
	void (*settle)(struct source *s, struct event *event);
	/*
	 * The symbol worker, while it runs, waits for no other: name code that was not known yet
	 * when it was sampled, if no other can have been there. NULL = it knows none.
	 */
	bool (*name_late)(struct source *s, const struct object *object, uint64_t offset,
			  struct symbol *out);
	void (*close)(struct source *s);
};

/* The live sources of this host, ending in NULL: list/live_linux.c, list/live_windows.c. */
extern const struct source_ops *const live_sources[];
/*
 * The reader of a trace file, chosen by the file's first bytes, as a list that ends in NULL
 * (list/file.c). The reader of Windows traces is the default, also when path is NULL. open() gets
 * capture.file and refuses a file of another format (ERR_FORMAT) before any long work; run() reads
 * it, waits while the queue is full (queue_offer), and returns at its end. Frames, processes and
 * names come from the trace only, never from this machine.
 */
const struct source_ops *const *file_sources(const char *path);
extern const struct source_ops etl_source;       /* trace files of Windows */
extern const struct source_ops perf_source;      /* Linux: perf events */
extern const struct source_ops proc_source;      /* Linux: counters from /proc */
/* The provider of events of --cpu-counters, which are metrics of their own. */
#define CPU_COUNTER_PROVIDER "cpu-counter"

extern const struct source_ops etw_source;       /* Windows: a live ETW session */

/* The current value of one counter, for check and for people; ERR_NOT_FOUND names the nearest. */
struct counter_value {
	double value;
	bool absent;                         /* the instance does not exist now */
	bool unread;                         /* it is read only while something records */
	char unit[16];
	char meant[PROCESS_LABEL_BYTES + 16];   /* the process meant: "node (12)"; "" = not known */
};
int counter_read_once(const char *name, struct counter_value *out, struct err *err);
