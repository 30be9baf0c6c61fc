/*
 * What a trace says of its system: processes and threads over time, volumes, names of files.
 *
 * A file is learned whole before anything is asked (snapshots at its end tell what was there from
 * the start); a live session is learned as it goes. A moment is a number of ticks. The latest that
 * holds at a moment is meant, as pids, tids and file keys are used again.
 *
 * One thread at a time; texts are the state's own, as long as it lives. Each table has a ceiling;
 * what it refuses is counted. Source: design page etl-format.md sections 5 and 6.
 */
#ifndef SOURCE_ETW_STATE_H
#define SOURCE_ETW_STATE_H

#include "model/process.h"
#include "source/etw/class.h"
#include "source/etw/ranges.h"
#include "source/etw/texts.h"

#define ETW_PROCESSES_MAX (1u << 20)
#define ETW_THREADS_MAX (1u << 21)
#define ETW_FILES_MAX (1u << 22)
#define ETW_VOLUMES_MAX 256u
#define ETW_RUNTIMES_MAX (1u << 16)

struct etw_process {
	uint32_t pid, parent, older;         /* older: the one with this pid before it */
	int64_t from, until;                 /* ticks; ETW_ALWAYS, ETW_EVER */
	bool has_exit;
	int32_t exit_code;
	const char *image;                   /* file name without path; NULL = not known */
	const char *command_line;            /* NULL = not known */
	struct process *model;               /* for whoever delivers events; NULL at first */
};

struct etw_thread {
	uint32_t tid, pid, older;
	int64_t from, until;
	const char *name;                    /* NULL = none */
	struct thread *model;                /* for whoever delivers events; NULL at first */
};

struct etw_state;

int etw_state_new(struct etw_state **out, struct err *err);
void etw_state_free(struct etw_state *s);         /* NULL allowed */

/* Take what a record says; records of no interest cost little. */
void etw_state_learn(struct etw_state *s, const struct etw_record *record,
		     const struct etw_class *class);

/*
 * The process or thread with this number at that moment; else the last that had ended by then, as
 * a thread still runs for a while after its end was recorded; else NULL.
 */
struct etw_process *etw_state_process(struct etw_state *s, uint32_t pid, int64_t ticks);
struct etw_thread *etw_state_thread(struct etw_state *s, uint32_t tid, int64_t ticks);
/* The same; one that no record told of is added, for all time. NULL at the ceiling. */
struct etw_process *etw_state_need_process(struct etw_state *s, uint32_t pid, int64_t ticks);
struct etw_thread *etw_state_need_thread(struct etw_state *s, uint32_t tid, uint32_t pid,
					 int64_t ticks);
/*
 * The path of a file key at that moment, as the kernel writes it; else its last one before, else the
 * next one, which may be told right behind its first use; else NULL.
 */
const char *etw_state_file(const struct etw_state *s, uint64_t key, int64_t ticks);

/* A prefix of paths as the kernel writes it, and as people know it. */
void etw_state_add_volume(struct etw_state *s, const char *nt, const char *dos);
/*
 * A path as people know it: "\Device\HarddiskVolume2\x" is "C:\x" where the trace says so; others
 * stay as they are. Cut at max bytes, NUL included; returns its length.
 */
size_t etw_state_path(const struct etw_state *s, const char *path, char *out, size_t max);

/*
 * .NET Framework writes each GC start in two versions. true: this one says again what the last one
 * of its process and runtime said, and is not to be counted.
 */
bool etw_state_gc_twin(struct etw_state *s, const struct etw_record *record,
		       const struct etw_class *class);

struct etw_texts *etw_state_texts(struct etw_state *s);

/*
 * A state that knows only what was there at `since` or later: what a session that goes on for months
 * needs. Models go over to it; the old one still answers, but not for them.
 */
int etw_state_renew(struct etw_state *old, int64_t since, struct etw_state **out, struct err *err);

struct etw_state_use {
	uint32_t processes, threads, files, volumes;
	size_t bytes;
	uint64_t refused;
};
void etw_state_use(const struct etw_state *s, struct etw_state_use *out);

/* The text of a UTF-16 or 8-bit field, kept; NULL when the field is absent or empty. */
const char *etw_keep_text(struct etw_texts *texts, const struct etw_value *value, bool utf16);

#endif
