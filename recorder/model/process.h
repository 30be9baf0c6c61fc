/*
 * Processes and threads: who a sample belongs to.
 *
 * A process is (pid, start time, exec number), so that samples taken as `sh` do not become `gcc`
 * when the same pid calls exec. Sources add processes and threads; segments refer to threads by
 * number and keep them alive; a process lives as long as one of its threads.
 *
 * Threads: the table has its own lock, so any thread may call. Once a source has dropped a thread
 * or process and no segment lists it, processes_sweep() frees it. The merge thread calls that when
 * every event queued up to then has been released, so queued events need no reference.
 */
#pragma once

#include "base/err.h"
#include "model/process_name.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESSES_MAX 65536u          /* live and remembered processes */
#define THREADS_MAX 262144u           /* live and remembered threads */
#define THREAD_NONE UINT32_MAX
#define PROCESS_NAME_MAX 255
#define PROCESS_CMDLINE_MAX 4096

enum frame_pointers {
	FRAME_POINTERS_UNKNOWN,              /* not examined yet */
	FRAME_POINTERS_NONE,
	FRAME_POINTERS_KEPT,
};

struct process {
	uint32_t number;
	uint32_t pid, parent_pid;
	uint32_t exec;                       /* 0, plus one for each exec */
	uint64_t start_ns;                   /* recorder clock */
	_Atomic(char *) comm;                /* the kernel's short name; set once */
	_Atomic(char *) exe_name;            /* base name of the executable; set once, wins */
	_Atomic(char *) cmdline;        /* arguments joined by blanks; set once; may stay NULL */
	_Atomic(char *) command_names;       /* called, NUL, script: set with it */
	_Atomic(struct process_home *) home; /* process_home() */
	_Atomic uint8_t frame_pointers;      /* of a JVM's compiled code: enum frame_pointers */
	_Atomic bool has_event;              /* one of its events was delivered */
	uint32_t nsamples;                   /* the engine's, as the next */
	uint32_t home_row, home_row_age;     /* engine/homes.h: of counted_home */
	const char *counted_home;
	_Atomic uint64_t identity;           /* the symbol worker's, as the next; 0 = not read */
	_Atomic uint32_t nhomes_read;
	uint64_t cgroup;                     /* the source's, as the next: process_saw_cgroup() */
	uint32_t ncgroups;
	_Atomic uint64_t moved_ns;           /* first sample in its group; 0 = unknown */
	_Atomic uint64_t home_read_ns;       /* process_home_is_known() */
	uint64_t moved_asked_ns;             /* the engine's: its home was asked for since then */
	_Atomic bool was_listed;         /* by some segment: further ones need no new room for it */
	_Atomic uint32_t refs;               /* its threads, and callers of process_ref() */
	uint64_t dropped_ns;                 /* when the source dropped it; 0 = not yet */
};

struct thread {
	uint32_t number;
	uint32_t tid;
	uint64_t start_ns;                   /* recorder clock; 0 = unknown */
	struct process *process;
	_Atomic uint64_t name_bytes[2];      /* 15 bytes and NUL; see thread_name() */
	_Atomic uint32_t refs;               /* segments that list it, sources that keep it */
	uint64_t dropped_ns;                 /* when the source dropped it; 0 = not yet */
};

struct processes;

int processes_new(struct processes **out, struct err *err);
void processes_free(struct processes *p);

/* Find or add; the source keeps it until process_drop(). NULL at the ceiling or without memory. */
struct process *process_add(struct processes *p, uint32_t pid, uint64_t start_ns, uint32_t exec,
			    uint32_t parent_pid, const char *comm);
/*
 * The same, but one that its source dropped is not found: the program may be another by now. The
 * next exec number that is free, or is kept, takes its place; process->exec says which.
 */
struct process *process_add_next(struct processes *p, uint32_t pid, uint64_t start_ns,
				 uint32_t exec, uint32_t parent_pid, const char *comm);
/* For a process that was added before its short name was known. */
void process_set_comm(struct process *process, const char *comm);
void process_set_exe(struct process *process, const char *path);
/* Was it named after the executable with this path? */
bool process_exe_is(const struct process *process, const char *path);
void process_set_cmdline(struct process *process, const char *cmdline);

/*
 * Where it lives: home.h. Texts stay valid as long as the process. After PROCESS_MOVES_MAX moves
 * the last one stays.
 *
 * process_home()          where it was seen last. Never NULL; "" = unknown, or the root of groups
 * process_home_at()       where it was at a moment of the recorder clock
 * process_home_is_known() it was read since its last move, and the kernel tells of moves
 * process_inherit_home()  at fork and exec: the control group, not the service. The source's thread
 * process_saw_cgroup()    the number of a sample's control group; 0 = the kernel does not tell. One
 *                         that differs from the last one means a move. The source's thread
 */
#define PROCESS_MOVES_MAX 16u
const char *process_home(const struct process *process);
const char *process_home_at(const struct process *process, uint64_t at_ns);
bool process_home_is_known(const struct process *process);
void process_saw_cgroup(struct process *process, uint64_t cgroup, uint64_t time_ns);
/*
 * read_ns: when it was read; counts where no sample has told of a move since. "" changes no text.
 */
void process_set_home(struct process *process, const char *text, uint64_t read_ns);
void process_inherit_home(struct process *process, const struct process *from);

/* The source has seen its end (or next exec): it is freed once nothing lists its threads. */
void process_drop(struct processes *p, struct process *process, uint64_t now_ns);

/*
 * The newest process with this pid that a source keeps and that had started by at_ns; NULL = none.
 * Comes with a reference: process_unref() it. For sources that get a pid only.
 */
struct process *process_find(struct processes *p, uint32_t pid, uint64_t at_ns);

/* Keep it while its source and segments may drop it. */
void process_ref(struct process *process);
void process_unref(struct process *process);

/*
 * The name that stores and exports keep: base name of the executable, ".exe" removed, else comm,
 * else "?". Never NULL.
 */
const char *process_name(const struct process *process);

/*
 * The names that a process answers to, and whether a given name is one of them: see process_name.h.
 * Names may still arrive: the executable's within ms, those of the command line once the symbol
 * worker or the source has read it.
 */
struct process_names process_names_of(const struct process *process);
bool process_is_called(const struct process *process, const char *wanted);
/* The same for a pid or a name. */
bool process_is_meant(const struct process *process, const char *who);
/* For sentences and lists: "sh [dash]". */
const char *process_label(const struct process *process, char out[PROCESS_LABEL_BYTES]);

/* Find or add a thread of a process; NULL at the ceiling or without memory. */
struct thread *thread_add(struct processes *p, struct process *process, uint32_t tid);
/*
 * The same for a source that always knows when a thread began: a tid that the process uses again is
 * another thread, whose name must not become that of the earlier one.
 */
struct thread *thread_add_started(struct processes *p, struct process *process, uint32_t tid,
				  uint64_t start_ns);
void thread_set_name(struct thread *thread, const char *name);
void thread_name(const struct thread *thread, char out[16]);
void thread_drop(struct processes *p, struct thread *thread, uint64_t now_ns);

/* Find by number; the caller holds a reference (a segment that lists it). */
struct thread *thread_get(const struct processes *p, uint32_t number);
void thread_ref(struct thread *thread);
void thread_unref(struct thread *thread);

/* Free what was dropped before released_ns and no segment lists. */
void processes_sweep(struct processes *p, uint64_t released_ns);

struct processes_use {
	uint32_t processes, threads;
	size_t bytes;
	uint64_t refused;                    /* additions refused at a ceiling */
};
void processes_use(struct processes *p, struct processes_use *out);
