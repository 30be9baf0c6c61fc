/*
 * Samples out of a file that has names instead of addresses, on their way to the recorder: a
 * parser adds frames, stacks, threads and samples, and stackfile.c delivers them in time order.
 *
 * Every text may be hostile: they are cut at FUNCTION_NAME_MAX, and each table has a ceiling.
 * Adding returns STACK_LIST_NONE, and the list remembers that it is full or without memory.
 * One thread.
 */
#pragma once

#include "base/table.h"
#include "model/event.h"

#define STACK_LIST_NONE UINT32_MAX
#define STACK_LIST_FRAMES_MAX FRAMES_MAX
#define STACK_LIST_NODES_MAX (16u << 20)
#define STACK_LIST_SAMPLES_MAX (32u << 20)
#define STACK_LIST_DEPTH_MAX STACK_MAX_FRAMES
/* What a sample counts for where a file tells neither times nor rates. */
#define STACK_LIST_PERIOD_NS UINT64_C(10000000)

struct stack_list_place {                    /* in a file, whose path is the module */
	uint64_t offset, dev, ino;
};

struct stack_list_frame {
	char *function, *module;             /* function NULL = "?"; module "" = none */
	uint32_t flags;                      /* enum frame_flags */
	bool is_address;                     /* the symbol readers name what is there: */
	struct stack_list_place place;
};

struct stack_list_node {
	uint32_t caller, frame;
};

struct stack_list_thread {
	char *process, *name;
	uint32_t pid, tid;
};

struct stack_list_sample {
	uint64_t time_ns;                    /* on the file's clock */
	double weight;                       /* in the stream's unit: ns, bytes, events */
	uint32_t thread, node;               /* node STACK_LIST_NONE = no frames */
	uint32_t count;                      /* as many of them; 0 counts as 1 */
	uint16_t cpu;
	uint8_t stream, quality;
};

struct stack_list {
	struct stack_list_frame *frames;
	struct stack_list_node *nodes;
	struct stack_list_thread *threads;
	struct stack_list_sample *samples;
	uint32_t nframes, nnodes, nthreads, nsamples;
	uint32_t frames_room, nodes_room, threads_room, samples_room;
	struct table by_text, by_node, by_thread;
	bool has_times;                      /* else samples follow each other */
	bool times_begin;                    /* a sample's time is that of its begin */
	bool only_counts;                    /* of STACK_LIST_PERIOD_NS, by default */
	bool full, no_memory;
	bool merged;                         /* by stack_list_limit() */
	uint64_t skipped;                    /* lines or items that make no sense */
	uint64_t total;                      /* samples, with their counts */
};

void stack_list_free(struct stack_list *l);

/*
 * A frame by its text as exports write it: "module!function", "function", "module!?"; with "_[k]",
 * "_[j]", "_[i]" at its end.
 */
uint32_t stack_list_text(struct stack_list *l, const char *text, size_t n);
/* The same in parts; function "?" or "[unknown]" has no name. */
uint32_t stack_list_frame(struct stack_list *l, const char *module, size_t nmodule,
			  const char *function, size_t nfunction, uint32_t flags);
/* An address in a file. */
uint32_t stack_list_address(struct stack_list *l, const char *path, size_t npath,
			    const struct stack_list_place *place, uint32_t flags);
uint32_t stack_list_node(struct stack_list *l, uint32_t caller, uint32_t frame);
uint32_t stack_list_thread(struct stack_list *l, const char *process, size_t nprocess, uint32_t pid,
			   const char *name, size_t nname, uint32_t tid);
void stack_list_sample(struct stack_list *l, const struct stack_list_sample *sample);
/* Counts of more than STACK_LIST_SAMPLES_MAX samples: each becomes one that weighs as much. */
void stack_list_limit(struct stack_list *l);

/*
 * Samples that are thread time by one of their frames, BLOCKED_TIME and the like, are no CPU time.
 * Where a file has only counts these are ns, as in our folded stacks. 0 or ERR_MEMORY
 */
int stack_list_thread_time(struct stack_list *l);

/* "Process sh (12)": below it may stand what a set of incidents has above each of its processes. */
bool stack_list_is_process(const char *text, size_t n);

/*
 * Who: from the texts of the first two frames in exports, "sh (12)" or "Process sh (12)" and
 * "Thread (12) sh", "sh-12" or "sh (12)". thread NULL or not one: the process's own, and *used 1
 * instead of 2.
 */
uint32_t stack_list_who(struct stack_list *l, const char *process, size_t nprocess,
			const char *thread, size_t nthread, unsigned *used);
/* Whether a frame's text says how far a stack can be trusted, and is no frame. */
bool stack_list_mark(const char *text, size_t n, uint8_t *quality);
/* What PerfView's sample of metric 1 is: 1 ms, or what notes of our exports say. */
double stack_list_each_ms(const char *notes);

/* Parsers: the whole file in n bytes, with a NUL behind them. ERR_FORMAT: it is not one. */
int stack_list_perf_script(struct stack_list *l, const char *text, size_t n, struct err *err);
int stack_list_folded(struct stack_list *l, const char *text, size_t n, struct err *err);
int stack_list_speedscope(struct stack_list *l, const char *text, size_t n, struct err *err);
int stack_list_pprof(struct stack_list *l, const char *bytes, size_t n, struct err *err);
int stack_list_perfview(struct stack_list *l, const char *text, size_t n, struct err *err);
int stack_list_perfview_json(struct stack_list *l, const char *text, size_t n, struct err *err);
int stack_list_v8_profile(struct stack_list *l, const char *text, size_t n, struct err *err);
int stack_list_trace_events(struct stack_list *l, const char *text, size_t n, struct err *err);
int stack_list_heap_profile(struct stack_list *l, const char *text, size_t n, struct err *err);
/* With NULs in it: JDK Flight Recorder's. */
int stack_list_jfr(struct stack_list *l, const char *bytes, size_t n, struct err *err);
