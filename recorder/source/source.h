/*
 * Sources: where events come from.
 *
 * A source runs on its own thread, decodes what the system delivers, and puts events in its own
 * time order into its queue (model/queue.h) with a watermark at least every 100 ms, or rests there while it waits.
 * It never opens files of a target, symbolizes, or touches the store.
 */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include "base/log.h"
#include "base/out.h"
#include "model/capture.h"
#include "model/needs.h"
#include "model/queue.h"
#include "symbol/reader.h"
#include "symbol/symbol.h"

struct source_config {
	struct frames *frames;
	struct processes *processes;
	struct log *log;
	struct queue *queue;                 /* where its events go */
	struct capture capture;              /* what it is to deliver */
	/* All that it holds, idle samples and snapshots too, and samples by name: `recorder events`. */
	bool every_event;
};

/* What a trace file says of itself. */
struct source_origin {
	uint64_t start_ns;                   /* its first moment, recorder clock; not 0 */
	uint64_t start_wall_ns;              /* the same moment by the clock on the wall; 0 = not known */
	uint64_t period_ns;                  /* of the CPU samples; 0 = not known */
	uint64_t bytes;                      /* of the file, for "at N of M MB"; 0 = not known */
	char host[256], host_text[256];      /* its machine and system; "" = not known */
	char note[400];                      /* what it lost itself, where it is cut; "" = nothing */
};

struct source_status {
	uint64_t events, lost;               /* delivered; lost in the kernel */
	double rate_hz;                      /* effective sampling rate; 0 = as asked */
	size_t table_bytes, table_max_bytes; /* its unwind tables; 0 = has none */
	char note[200];                      /* what is missing, one sentence; "" = nothing */
};

/* How much of the CPU streams is taken; see model/budget.h. */
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
	bool events;                         /* delivers events of providers; check() judges their names */
	bool logs;                           /* delivers EVENT_LOG; the same */
	bool endings;                        /* tells how processes ended */
	bool optional;                       /* where it is refused, only rules that need it are */
	bool stacks;                         /* gives stacks: --source chooses one of these, else the first */
	bool instead_of_events;              /* taken only where the chosen one has no events */
	bool copies_stack;                   /* samples hold stack_kb of the stack; else it means nothing */
	uint64_t behind_ns;                  /* how far it may be behind; 0 = 250 ms */
	/* Any time before open: are these needs met here? The sentence gives the nearest names. */
	int (*check)(const struct needs *needs, struct err *err);
	/* Print what can be named here, one a line, to a person or as JSON; NULL = nothing. */
	int (*list)(const char *pattern, bool json, struct out *out, struct err *err);
	/* The same for events that rules can name, with their fields; ERR_NOT_FOUND: none matches. NULL = none. */
	int (*list_events)(const char *pattern, bool json, struct out *out, struct err *err);
	/* Probe privileges: 0, or ERR_ACCESS with what is missing and what it costs. NULL = none. */
	int (*probe)(const struct source_config *cfg, struct err *err);
	/*
	 * Any time before open: its i-th part that may be missing while the rest works. 0, or an error with what is
	 * missing and what to set; out->name NULL = there is no i-th. NULL = it has none.
	 */
	int (*part)(unsigned i, struct source_part *out, struct err *err);
	int (*open)(const struct source_config *cfg, const struct needs *needs, struct source **out,
		    struct err *err);
	/* End what a killed recorder has left in the system; how many. NULL = nothing stays. */
	int (*clear)(uint32_t *n, struct err *err);
	/* On the source's own thread, until stop(). */
	int (*run)(struct source *s, struct err *err);
	/* Any thread: make run() return soon. */
	void (*stop)(struct source *s);
	/*
	 * Any thread while it runs: sample at another rate, or copy less of the stack, from now on. Done
	 * by its own thread soon; it puts EVENT_RATE, without a name, where the change took place among
	 * its events. What cannot be done is logged, and no such event comes. NULL = cannot.
	 */
	void (*set_level)(struct source *s, const struct source_level *level);
	/*
	 * Any thread while it runs: deliver what has come until now, and a watermark, at once: somebody waits
	 * for an incident. NULL = it comes when it comes.
	 */
	void (*catch_up)(struct source *s);
	/* Any thread from open() on: its unwind tables may take so much memory. NULL = has none. */
	void (*set_memory)(struct source *s, size_t table_bytes);
	/* Any thread while it runs. */
	void (*status)(struct source *s, struct source_status *out);
	/*
	 * The thread that takes the events, once there is one or run() has returned: where and when
	 * they were recorded. NULL = here and now. The note is asked for again at the end.
	 */
	void (*origin)(struct source *s, struct source_origin *out);
	/*
	 * The thread that takes the events, while run() may go on: the name of a frame that only this
	 * source can know (managed code of a trace). Names what *out points to until the next call;
	 * false = symbol readers are asked. NULL = knows none.
	 */
	bool (*name_frame)(struct source *s, const struct frame *frame, struct symbol *out);
	void (*close)(struct source *s);
};

/* The live sources of this host, ending in NULL: list/live_linux.c, list/live_windows.c. */
extern const struct source_ops *const live_sources[];
/*
 * The reader of a trace file by its first bytes, in a list of its own that ends in NULL (list/file.c);
 * that of Windows traces when they are none that is known, or path is NULL. open() gets
 * capture.file, and refuses a file that is none of its own (ERR_FORMAT) before anything long is
 * done; run() reads it, waits where the queue is full (queue_offer), and returns at its end. Its frames,
 * processes and names are those of the trace: nothing of this machine is asked.
 */
const struct source_ops *const *file_sources(const char *path);
extern const struct source_ops etl_source;       /* trace files of Windows */
extern const struct source_ops perf_source;      /* Linux: perf events */
extern const struct source_ops proc_source;      /* Linux: counters from /proc */
extern const struct source_ops etw_source;       /* Windows: a live ETW session */

/* The current value of one counter, for check and for people; ERR_NOT_FOUND names the nearest. */
struct counter_value {
	double value;
	bool absent;                         /* the instance does not exist now */
	char unit[16];
	char meant[PROCESS_LABEL_BYTES + 16];   /* of a process's name: "node (12)"; "" = nobody tells */
};
int counter_read_once(const char *name, struct counter_value *out, struct err *err);

#endif
