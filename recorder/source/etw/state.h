/*
 * The traced system's state over time: processes, threads, volumes, names of files and keys.
 *
 * A file is learned completely before the first query, because snapshots at its end say what
 * existed from the start; a live session is learned as it goes. Times are ticks. Pids, tids and
 * file keys are reused, so a query names a time and gets the latest owner at that time.
 *
 * One thread at a time. Texts live as long as the state. Each table has a ceiling; refused items
 * are counted.
 */
#pragma once

#include "model/process.h"
#include "source/etw/class.h"
#include "source/etw/ranges.h"
#include "source/etw/texts.h"

#define ETW_PROCESSES_MAX (1u << 20)
#define ETW_THREADS_MAX (1u << 21)
#define ETW_FILES_MAX (1u << 22)
#define ETW_VOLUMES_MAX 256u
#define ETW_RUNTIMES_MAX 4u                       /* of a process, told apart */

/*
 * The time in which a pid, tid or file key had one owner. Numbers are reused: `older` leads to the
 * previous owners. The first member of each owner.
 */
struct etw_life {
	uint64_t number;                     /* the pid, tid or key */
	int64_t from, until;                 /* ticks; ETW_ALWAYS, ETW_EVER */
	uint32_t older;
};

struct etw_process {
	struct etw_life life;
	uint32_t parent;
	bool in_tree;                        /* etw_state_root()'s, or started by one that is */
	bool has_exit;
	int32_t exit_code;
	const char *image;                   /* file name without path; NULL = unknown */
	const char *command_line;            /* NULL = unknown */
	struct process *model;               /* for the sender of events; NULL at first */
	/* The last collection that each of its runtimes started; count 0 = none. */
	struct { uint32_t clr; uint64_t count; } gc[ETW_RUNTIMES_MAX];
};

struct etw_thread {
	struct etw_life life;
	uint32_t pid;
	bool assumed;                        /* only heads of records name it, no thread event */
	const char *name;                    /* NULL = none */
	struct thread *model;                /* for the sender of events; NULL at first */
};

struct etw_state;

int etw_state_new(struct etw_state **out, struct err *err);
void etw_state_free(struct etw_state *s);         /* NULL allowed */

/* Mark a process that runs, and all that it and its descendants start: 0 or ERR_MEMORY. */
int etw_state_root(struct etw_state *s, uint32_t pid, struct err *err);

/* Learn what a record says about the system; cheap for all other records. */
void etw_state_learn(struct etw_state *s, const struct etw_record *record,
		     const struct etw_class *class);

/*
 * The process or thread with this number at that time; else the last one that ended before (threads
 * run on for a while after their end was recorded); else NULL.
 */
struct etw_process *etw_state_process(struct etw_state *s, uint32_t pid, int64_t ticks);
struct etw_thread *etw_state_thread(struct etw_state *s, uint32_t tid, int64_t ticks);
/* The same, but an unknown one is added, for all time. NULL at the ceiling. */
struct etw_process *etw_state_need_process(struct etw_state *s, uint32_t pid, int64_t ticks);
struct etw_thread *etw_state_need_thread(struct etw_state *s, uint32_t tid, uint32_t pid,
					 int64_t ticks);
/*
 * The path of a file key, an open file's object or a registry key's block at that time, as the
 * kernel writes it; else the last path before; else the
 * next one, because a name may follow its first use; else NULL.
 */
const char *etw_state_file(const struct etw_state *s, uint64_t key, int64_t ticks);

/* Add a volume: a prefix of kernel paths, and the same in DOS paths. */
void etw_state_add_volume(struct etw_state *s, const char *nt, const char *dos);
/*
 * Convert a kernel path to a DOS path: "\Device\HarddiskVolume2\x" becomes "C:\x" if that volume is
 * known. Other paths are copied. Cut at max bytes including the NUL; returns the length.
 */
size_t etw_state_path(const struct etw_state *s, const char *path, char *out, size_t max);

/*
 * .NET Framework writes each GC start in two versions. true = this record repeats the last one of
 * its process and runtime, and must not be counted.
 */
bool etw_state_gc_twin(struct etw_state *s, const struct etw_record *record,
		       const struct etw_class *class);

struct etw_texts *etw_state_texts(struct etw_state *s);

/*
 * Make a copy with only what existed at `since` or later, for sessions that run for months. The
 * processes and threads of the model move to the copy; the old state still answers other queries.
 */
int etw_state_renew(struct etw_state *old, int64_t since, struct etw_state **out, struct err *err);

/* How many items full tables have refused; adds the memory of all tables to *bytes. */
uint64_t etw_state_refused(const struct etw_state *s, size_t *bytes);

/* Keep the text of a UTF-16 or 8-bit field; NULL when the field is absent or empty. */
const char *etw_keep_text(struct etw_texts *texts, const struct etw_value *value, bool utf16);
