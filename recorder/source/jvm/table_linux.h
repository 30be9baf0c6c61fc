/*
 * The HotSpot JVMs of this machine, found by their files /tmp/hsperfdata_USER/PID, and the relation
 * of their clocks to ours. A file is used only if it is a plain file that belongs to the owner of
 * its directory and of the process. One thread.
 *
 * New files are found at the next look (by inotify; every 10 s too, or once a second where inotify
 * is refused): a JVM has its file about 20 ms after it starts, before its first collection. A file
 * that has no counters yet is read again later, and one that ends its reader (reader.h) after a
 * minute. JVMs in containers are found once a second (ns_tmp_linux.h). Jobs search
 * (tmp_scan_linux.h): a directory that does not answer is left alone. Files of one user fill at
 * most half of the table (base/shares.h).
 */
#pragma once

#include "base/log.h"
#include "model/process.h"
#include "source/runtime/gc_counters.h"
#include "source/jvm/hsperf.h"
#include "source/jvm/reader.h"
#include "source/jvm/attach_linux.h"
#include "source/host/mapped_linux.h"
#include "source/host/ns_tmp_linux.h"
#include "source/host/proc_pid_linux.h"
#include "source/host/tmp_scan_linux.h"
#include "base/shares.h"
#include "base/turns.h"

#include <stdatomic.h>

#define JVMS_MAX 256u
#define JVM_CLOCK_EXACT_NS (2 * NS_PER_MS)

/* How closely the collections of a JVM follow each other. Starts empty. */
struct jvm_pace {
	/* how many there were, and when a look saw the last one begin */
	uint64_t collections, collected_ns;
	uint64_t changed_ns;                 /* when a look saw one begin, continue or end */
	bool frequent;
};

/* One reading of the counters of pauses; 0 where a JVM has none. */
struct jvm_counters {
	uint64_t collectors[HSPERF_COLLECTORS][HSPERF_VALUES];
	uint64_t safepoints, safepoint_time;
};

struct jvm {
	uint32_t pid, uid;
	int fd;
	struct mapped map;                   /* the whole file, once `ready` */
	bool ready;                      /* its counters are known; until then all below is empty */
	bool young;                          /* it started after the table was opened */
	bool waits;                          /* its user has used up his time; see base/turns.h */
	bool in_container;                   /* its namespaces are not ours */
	bool failed;                         /* reading it has failed, and that was said */
	struct hsperf data;
	/* for values.h, in its order; `at` 0 = absent */
	struct hsperf_number *numbers;
	uint64_t head[HSPERF_HEAD_WORDS];    /* when the file was last read */
	struct hsperf_track tracks[HSPERF_COLLECTORS + 1]; /* the last one is for safepoints */
	/* pauses that had ended before the first look */
	struct hsperf_first firsts[HSPERF_COLLECTORS];
	uint32_t nfirsts;                    /* how many of them are pending */
	struct jvm_counters calm;            /* when no pause was open; safepoints 0 = not known */
	/* when a collector's exit was seen whose safepoint continues; 0 = none */
	uint64_t exit_seen_ns;
	uint64_t sized_exit;                 /* of the last collection whose sizes were looked at */
	uint64_t found_ns, next_try_ns;
	uint64_t due_ns;                     /* the next look */
	struct jvm_pace pace;
	uint64_t all_read_ns;   /* when all counters were last read, not only those of safepoints */
	/* when an open safepoint of Shenandoah was first seen; 0 = none is open */
	uint64_t open_ns;
	uint64_t ticks, read_ns; /* the last reading: the JVM's clock, and when the reading began */
	uint64_t taken_ns;                /* the last complete reading: all that follows is later */
	uint64_t zero_low_ns, zero_high_ns;  /* the bounds of the time when its clock was 0 */
	/* the same time from the start that the JVM states, to 1 ms; 0 = not known yet */
	uint64_t zero_wall_ns;
	uint64_t zero_ns;      /* the zero used for the start of the open pause; 0 = none is open */
	struct jvm_attach attach;
	struct proc_own own;
};

struct jvm_table {
	struct jvm *all;
	uint32_t n, nready;
	struct shares places;                /* of the table */
	struct processes *processes;
	struct gc_counters *counters;        /* informed when a JVM has ended */
	/* called before a JVM is removed, because its last pause may be new */
	void (*last_look)(void *ctx, struct jvm *j);
	void *last_look_ctx;
	struct log *log;
	struct pool *pool;                   /* of searches, and for others to use */
	struct jvm_reader *reader;
	uint32_t asked;                      /* the pid of the JVM that it reads; 0 = none */
	uint64_t wait_ns;                    /* for its answer, at once; 0 = it is taken later */
	struct turns *turns;                 /* who waits to be read; NULL = nobody */
	/* called with a file that was read, also again when entries were added; NULL = nobody */
	void (*take)(void *ctx, struct jvm *j, const struct hsperf_file *file);
	void *take_ctx;
	struct tmp_scan scan;
	struct ns_tmp *containers;
	int watch;
	uint64_t opened_ns, next_scan_ns, next_check_ns;
	bool unread_logged;
	bool full_logged, unwatched;      /* unwatched: the last scan could not watch a directory */
	_Atomic bool crowded;                /* a user had more than a share; any thread reads it */
};

/*
 * wake: woken when jvm_table_look() has something to do; it outlives the table. A poll() on
 * t->watch reports the same.
 */
int jvm_table_open(struct jvm_table *t, struct processes *processes, struct gc_counters *counters,
		   struct os_wake *wake, struct log *log, struct err *err);
void jvm_table_close(struct jvm_table *t);    /* an empty table is allowed */

/* Find new JVMs and remove those that have ended. */
void jvm_table_look(struct jvm_table *t, uint64_t now_ns);
/*
 * Read the file of a ready JVM as a whole, within wait_ns. returns  false when it cannot be read
 *
 * out   until the next one is read
 */
bool jvm_table_read(struct jvm_table *t, struct jvm *j, struct hsperf_file *out);
/* When to do so again: at due_ns, or before while a search goes on. */
uint64_t jvm_table_due_ns(const struct jvm_table *t, uint64_t now_ns, uint64_t due_ns);
/* Ask it for a map of its code, when that is due. */
void jvm_table_ask_for_map(struct jvm_table *t, struct jvm *j, uint64_t now_ns);
/* What is missing, for `status`. returns  whether a file system does not answer. Any thread. */
bool jvm_table_note(const struct jvm_table *t, char *out, size_t n);

/*
 * A reading that ended at done_ns held a time stamp of the JVM's clock, made later than after_ns (0
 * = not known).
 */
void jvm_clock_note(struct jvm *j, uint64_t stamp_ns, uint64_t after_ns, uint64_t done_ns);
/*
 * The start that the JVM states by the wall clock, which may have been set since; believed only
 * within bounds.
 */
void jvm_clock_note_wall(struct jvm *j, uint64_t began_ms, uint64_t wall_now_ns, uint64_t now_ns);
/*
 * When the JVM's clock was 0: the middle of the bounds if they are within JVM_CLOCK_EXACT_NS; else
 * the start that the JVM states, if it is plausible.
 */
uint64_t jvm_clock_zero(const struct jvm *j);
uint64_t jvm_ticks_to_ns(const struct jvm *j, uint64_t ticks);

/* A look at now_ns saw a change; `collections` is their number by then. */
void jvm_pace_note(struct jvm_pace *p, uint64_t collections, uint64_t now_ns);
/*
 * How often to look. Two pauses between two looks are still exact (hsperf.h), so a JVM with a pause
 * every few seconds needs frequent looks only for a moment after one, which may be the first of
 * many. open: a pause is open, or its end is not known yet. The last change may be after now_ns.
 */
uint64_t jvm_pace_look_every_ns(struct jvm_pace *p, bool open, uint64_t now_ns);
