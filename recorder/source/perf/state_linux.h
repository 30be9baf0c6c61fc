/*
 * Which process, thread and mapping a sample belongs to.
 *
 * The state starts from /proc and is then kept up to date by side-band records (fork, exec, mmap,
 * exit) in time order. It puts process and image events into the source's queue. The source's
 * thread only.
 */
#pragma once

#include "model/queue.h"
#include "source/host/maps.h"
#include "source/perf/kernel_symbols.h"
#include "source/ring/perf_record.h"
#include "unwind/unwind.h"

/*
 * A process may replace its executable mappings for ever, at a cost to everybody. Its budget is
 * this many mapping records a second, and what MAPPINGS_CALM_NS of them are, 20,000, at once: more
 * than MAPS_MAX. Beyond it its mapping records are skipped until the budget is whole again; then
 * its mappings are read anew. (strace -f: Python's start makes 70 of them, gdb's 59, Java's 14;
 * Node.js compiling for 4 s makes 33.)
 */
#define MAPPINGS_PER_SEC_MAX 2000u
#define MAPPINGS_CALM_NS (10 * NS_PER_SEC)

struct perf_process {
	uint32_t number;                     /* of its slot */
	uint32_t pid, parent_pid, exec;
	uint64_t start_ns;
	struct process *process;
	struct command_line *command_line;   /* is being read: names_linux.c; NULL = is not */
	struct maps *maps;                   /* never NULL */
	uint32_t nthreads;                   /* known tids */
	uint32_t nalive;                     /* known tids that have not exited */
	bool kernel;                         /* a kernel thread: no user code */
	bool jvm;                            /* maps libjvm.so */
	struct perf_runtime *runtime;        /* as frame readers know it; NULL = they do not */
	bool maps_full;                      /* and that is logged */
	uint64_t mapped_until_ns;            /* budget of its mapping records: spend_mapping() */
	bool maps_flood, flood_logged;       /* it has no budget left: they are skipped */
	bool executing;                      /* nothing was mapped since it called exec */
	bool exe_known;                      /* named after its first mapping */
	bool outside;                        /* neither the root nor started by it */
	bool skipped;                        /* outside, or --record-process does not name it */
	bool left_out;                       /* outside: the kernel makes no samples of it */
	uint64_t sure_ns;                    /* at that time it was known: is_doubtful() */
	uint32_t doubts;                     /* so many of `exec` are no exec, but a doubt */
	bool unnamed;                        /* doubted: what it runs is not known yet */
	struct process *before;              /* then: what it was, referenced */
};

struct perf_thread {
	uint32_t number;                     /* of its slot */
	uint32_t tid;
	struct perf_process *process;
	struct thread *thread;
	uint64_t exited_ns;                  /* 0 = alive */
	struct unwind_memory *memory;        /* its last complete stack; NULL = none yet */
	uint64_t stack_end;                  /* as perf_program_stack_end() was told; 0 = nothing */
	uint8_t stack_ends;                  /* how often it was told */
};

struct perf_state;
struct perf_managed;
struct perf_program;
struct hung_devices;
struct pool;

/* Who is told of a process. tell NULL = nobody. */
struct perf_listener {
	void (*tell)(void *ctx, const struct process *process);
	void *ctx;
};

struct perf_state_config {
	struct frames *frames;
	struct processes *processes;
	struct queue *queue;
	struct log *log;
	struct perf_managed *managed;        /* is told of mappings and ends */
	struct perf_program *program;        /* leaves out what is outside; NULL = none */
	const char *only_process;            /* NULL = all */
	bool only_its_events;                /* of others not even starts and ends */
	uint32_t root_pid;                   /* this one and all that it starts; 0 = all */
	bool root_only;                      /* records come from these only */
	bool command_lines;                  /* read those of new programs at once: needs.h */
	struct perf_listener named;          /* its names are known, or change */
	struct perf_listener java;           /* it has mapped libjvm.so */
	bool ksymbols;                       /* records report BPF programs and trampolines */
	bool switches;                       /* perf_state_in() is asked about waits */
	struct kallsyms_text *kallsyms;      /* see kernel_symbols_new() */
	bool build_ids;                    /* also for mappings from /proc, so that objects agree */
};

int perf_state_new(const struct perf_state_config *cfg, struct perf_state **out, struct err *err);
void perf_state_free(struct perf_state *s);

/*
 * Read everything that runs now from /proc, for PERF_SCAN_NS at most; perf_state_look() takes what
 * has not come by then. With root_only just the root is read.
 *
 * now_ns   the time of its events, up to which all other events are in the queue already; the
 *          newest record's time is used when that is later
 */
#define PERF_SCAN_NS (3 * NS_PER_SEC / 2)
int perf_state_scan(struct perf_state *s, uint64_t now_ns, struct err *err);
/*
 * Have the kernel's symbols read, and wait for them: before the first sample, and after the scan,
 * as they take as long as 400 processes.
 */
void perf_state_await_kernel(struct perf_state *s);
/* The same after side-band records were lost, without waiting. */
void perf_state_rescan(struct perf_state *s, uint64_t now_ns);
/*
 * From here on, in the order of records, and until that time some are missing, so any process may
 * run another program. A sample of one gets a process without name and mappings. The name is filled
 * in once /proc has been read, after that time, and all records up to the reading have passed
 * without telling of another exec; if they do tell of one, those samples stay without.
 */
void perf_state_lose(struct perf_state *s, uint64_t until_ns);
/* Take what was read meanwhile; call it often. now_ns as above. */
void perf_state_look(struct perf_state *s, uint64_t now_ns);

/* The kernel need not make samples of this process, which is outside, as long as it lives. */
void perf_state_leave_out(struct perf_state *s, struct perf_process *process);

/* One side-band record, in time order. */
void perf_state_feed(struct perf_state *s, const struct perf_record *r);

/*
 * Whether a sample's process is not known and is being read from /proc, which takes 0.1 ms unless
 * something hangs.
 */
bool perf_state_reading(struct perf_state *s, uint32_t pid, uint32_t tid, uint64_t now_ns);

/* The thread of a sample, read from /proc when unknown; NULL when it cannot be found. */
struct perf_thread *perf_state_thread(struct perf_state *s, uint32_t pid, uint32_t tid,
				      uint64_t now_ns);

/* A known thread, or NULL; doubted after a loss, as for a sample. */
struct perf_thread *perf_state_find_thread(struct perf_state *s, uint32_t tid);

/*
 * How many mapping records were skipped, beyond the budget of their process, and which process made
 * the last one; any thread.
 */
uint64_t perf_state_skipped(const struct perf_state *s, uint32_t *pid);

/* Forget threads and processes that ended more than a second ago. */
void perf_state_expire(struct perf_state *s, uint64_t now_ns);

/* Object and offset of an address of the kernel. */
void perf_state_locate_kernel(struct perf_state *s, uint64_t address, struct frame_ref *out);
/*
 * Object and offset of an address of a process.
 *
 * near     a mapping where it may be, found since the last record; or NULL
 * returns  its mapping; NULL = it has none
 */
const struct mapping *perf_state_locate(struct perf_state *s, const struct perf_process *process,
					const struct mapping *near, uint64_t address,
					struct frame_ref *out);

/*
 * Whether a kernel chain (n addresses) leads through such a function. KERNEL_EXEC: once execve has
 * released the old program's memory, the sampled registers still belong to that program, whose
 * stack no longer exists.
 */
bool perf_state_in(const struct perf_state *s, enum kernel_place place, const uint64_t *chain,
		   uint32_t n);

/* ---- shared with perf/scan_linux.c ----------------------------------------------------------- */

struct perf_process *perf_state_add_process(struct perf_state *s, uint32_t pid, uint32_t parent_pid,
					    uint64_t start_ns, const char *comm);
struct perf_thread *perf_state_add_thread(struct perf_state *s, struct perf_process *process,
					  uint32_t tid);
struct perf_process *perf_state_find(struct perf_state *s, uint32_t pid);
void perf_state_map(struct perf_state *s, struct perf_process *process,
		    const struct object_key *key, uint64_t start, uint64_t end, uint64_t pgoff);
/* An empty list of mappings; ERR_MEMORY leaves the old one. */
int perf_state_clear_maps(struct perf_state *s, struct perf_process *process);
/*
 * The process called exec: it becomes a new process with the same pid, this thread and no mappings.
 *
 * returns  0, or an error at a ceiling or without memory; then it keeps its old name
 */
int perf_state_exec(struct perf_state *s, struct perf_process *process, uint32_t tid,
		    const char *comm);
/* Remove a process that has no thread; the pointer may be invalid afterwards. */
void perf_state_tidy(struct perf_state *s, struct perf_process *process);
void perf_state_exe(struct perf_state *s, struct perf_process *process, const char *path);
/* All records before this time have passed. */
uint64_t perf_state_now(const struct perf_state *s);
/* What /proc says of it is true of all since it was doubted. exe: NULL = hidden */
void perf_state_settle(struct perf_state *s, struct perf_process *process, const char *comm,
		       const char *exe);
/* Nothing of it is missing. */
void perf_state_known(const struct perf_state *s, struct perf_process *process);

/* Devices that do not answer. */
struct hung_devices *perf_state_hung(const struct perf_state *s);
/* The threads that read /proc and, if they are wanted (else NULL), command lines; for status. */
void perf_state_pools(const struct perf_state *s, struct pool **proc, struct pool **names);

/* Reads /proc: scan_linux.c. */
struct perf_scan;

int perf_scan_new(struct perf_state *state, struct log *log, bool build_ids,
		  struct perf_scan **out, struct err *err);
void perf_scan_free(struct perf_scan *scan);         /* NULL allowed */
/* returns  0 = applied; ERR_BUSY = it is being read; ERR_NOT_FOUND, ERR_LIMIT */
int perf_scan_process(struct perf_scan *scan, uint32_t pid);
/* Records were lost: what has been read so far may be out of date, and what is read from now on is
 * applied when the records have come that far. */
void perf_scan_doubt(struct perf_scan *scan);
/* Read this process soon; no waiting. */
void perf_scan_want(struct perf_scan *scan, uint32_t pid);
/* A record tells of a change of the process. */
void perf_scan_note(struct perf_scan *scan, uint32_t pid, uint64_t time_ns);

/* Length of a path without the " (deleted)" that the kernel appends for deleted files. */
size_t perf_path_length(const char *path);

/* The path as objects have it: a 32-bit process has a vDSO of its own kind. */
const char *perf_mapping_path(const char *path, uint64_t start);

/*
 * Decide by its path whether an executable mapping is a file or code made at run time. Sets kind
 * and path; for code made at run time also pid and epoch, which say which program of which process
 * made it.
 */
void perf_mapping_kind(const char *path, const struct perf_process *process,
		       struct object_key *key);
