/*
 * The HotSpot JVMs of this machine, by their files /tmp/hsperfdata_USER/PID: which there are, and
 * how their clocks stand to ours. The files are read, never mapped (their owner could truncate
 * them), and only if they are plain files of the owner of their directory and of the process. One
 * thread.
 *
 * New files are found within a look (inotify; where that is refused once a second, else every 10 s
 * too): a JVM has its file some 20 ms after it was started, before its first collection. A file
 * that has no counters yet is tried again. Those of JVMs in containers are found once a second
 * (ns_tmp_linux.h).
 */
#pragma once

#include "base/log.h"
#include "model/process.h"
#include "source/runtime/gc_counters.h"
#include "source/jvm/hsperf.h"
#include "source/jvm/attach_linux.h"
#include "source/host/mapped_linux.h"
#include "source/host/ns_tmp_linux.h"

#define JVMS_MAX 256u
#define JVM_CLOCK_EXACT_NS (2 * NS_PER_MS)
#define JVM_RANGE_MAX 65536u                 /* from the first to the last counter that is read */

/* How closely its collections follow each other; starts empty. */
struct jvm_pace {
	/* how many there were, and when a look saw the last one begin */
	uint64_t collections, collected_ns;
	uint64_t changed_ns;                 /* when a look saw one begin, go on, or end */
	bool brisk;
};

struct jvm {
	uint32_t pid, uid;
	int fd;
	struct mapped map;                   /* when ready; of the whole file */
	bool ready;                          /* its counters are known; else all below is empty */
	bool young;                          /* began after the table was opened */
	bool elsewhere;                      /* in other namespaces than ours */
	struct hsperf data;
	struct hsperf_track tracks[HSPERF_COLLECTORS + 1];   /* the last: safepoints */
	/* pauses that the first look came too late for */
	struct hsperf_first firsts[HSPERF_COLLECTORS];
	uint32_t nfirsts;                    /* of these wait to be told */
	struct jvm_safepoints {              /* when no pause was open */
		uint64_t count, time;
		struct {
			uint64_t invocations, time;
		} collectors[HSPERF_COLLECTORS];
	} safepoints;
	uint64_t exit_seen_ns;               /* a collector's, whose safepoint goes on; 0 = none */
	uint64_t found_ns, next_try_ns;
	uint64_t due_ns;                     /* the next look */
	struct jvm_pace pace;
	uint64_t all_read_ns;                /* all counters were, not those of safepoints alone */
	/* a safepoint of Shenandoah was first seen to be open; 0 */
	uint64_t open_ns;
	/* of the last reading: the JVM's clock, and when it began */
	uint64_t ticks, read_ns;
	/* the last one all of which was taken: what comes is later */
	uint64_t taken_ns;
	uint64_t zero_low_ns, zero_high_ns;  /* when its clock was 0 */
	/* the same by what it says of its beginning, to 1 ms; 0 = not known yet */
	uint64_t zero_wall_ns;
	uint64_t zero_ns;                    /* what an open pause was told by; 0 = none is open */
	struct jvm_attach attach;
	/* one that no other source knew; dropped with the JVM */
	struct process *own;
};

struct jvm_table {
	struct jvm *all;
	uint32_t n, nready;
	struct processes *processes;
	struct gc_counters *counters;        /* are told of those that have ended */
	/* before one is let go: its last pause may be news */
	void (*last_look)(void *ctx, struct jvm *j);
	void *last_look_ctx;
	struct log *log;
	struct ns_tmp *elsewhere;
	int watch;
	uint64_t opened_ns, next_scan_ns, next_check_ns;
	bool full_told, unwatched;           /* unwatched: a directory was not at the last scan */
};

/*
 * wake: woken when there is something new for jvm_table_look(); outlives the table. So does, by
 * poll(), t->watch.
 */
int jvm_table_open(struct jvm_table *t, struct processes *processes, struct gc_counters *counters,
		   struct os_wake *wake, struct log *log, struct err *err);
void jvm_table_close(struct jvm_table *t);    /* an empty one too */

/* Find new ones, let go of those that have ended. */
void jvm_table_look(struct jvm_table *t, uint64_t now_ns);

/*
 * A stamp of the JVM's clock was in a reading done at done_ns, and is later than after_ns; 0 = not
 * known.
 */
void jvm_clock_note(struct jvm *j, uint64_t stamp_ns, uint64_t after_ns, uint64_t done_ns);
/*
 * What it says of its beginning, by the wall clock, which may have been set since: believed within
 * bounds only.
 */
void jvm_clock_note_wall(struct jvm *j, uint64_t began_ms, uint64_t wall_now_ns, uint64_t now_ns);
/*
 * Its middle, when its clock can have been 0 is known to CLOCK_EXACT_NS; else what it says, if that
 * can be.
 */
uint64_t jvm_clock_zero(const struct jvm *j);
uint64_t jvm_ticks_to_ns(const struct jvm *j, uint64_t ticks);

/* A look at now_ns saw that something has changed; there were so many collections. */
void jvm_pace_note(struct jvm_pace *p, uint64_t collections, uint64_t now_ns);
/*
 * How often to look: two pauses between two looks are told exactly (hsperf.h), so that one every
 * few seconds needs no close looks, but for a moment, as it may be the first of many. open: one is,
 * or its end is not known yet. The last change may be after now_ns.
 */
uint64_t jvm_pace_look_every_ns(struct jvm_pace *p, bool open, uint64_t now_ns);
