/*
 * The engine: joins sources, ring, triggers and store; the only place that does.
 *
 *	source threads ──queue──▶ merge thread ──pending incidents──▶ writer thread ──▶ store
 *	                              │ ▲ requests
 *	                              ▼ │
 *	                          control: the caller of engine_run(): signals, commands, log, status
 *
 * engine/merge.c     releases events in time order, interns, seals, follows windows
 * engine/rules.c     feeds triggers, holds back those that fire too often, keeps what they remember
 * engine/tables.c    forgets what nothing lists any more
 * engine/incident.c  one incident from its firing to the writer
 * engine/own.c       what the recorder says about itself, in incidents
 * engine/memory.c    keeps the recorder's memory below its limit
 * engine/budget.c    samples less when the recorder costs too much
 * engine/file.c      what is different when events come from a file
 * engine/writer.c    puts incidents into the store
 * engine/dedup.c     tells incidents that repeat an earlier one
 * engine/command.c   writes the data file, runs StopCommand
 * engine/control.c   answers status, snapshot, stop, abort; prints the status line
 *
 * From a file (capture.file) everything runs in the trace's time, as fast as it can be read.
 * Nothing is lost or cut because the store is slow: the merge thread waits, its queue fills, and the
 * source waits. No rule is held back in the window of its own incident, nor for firing often unless
 * that was asked for: each firing is an incident, ENGINE_FILE_WINDOWS_MAX of them overlap at most.
 * Without rules the whole file is one incident, stored as it is read. At its end open windows are cut
 * and say so.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "base/log.h"
#include "model/budget.h"
#include "source/source.h"
#include "store/store.h"
#include "triggers/trigger.h"

#define ENGINE_PRE_SEC_DEFAULT 120
#define ENGINE_POST_SEC_DEFAULT 5
#define ENGINE_PINNED_BYTES ((size_t)64 << 20)   /* evicted segments that incidents still hold */
#define ENGINE_TABLE_BYTES ((size_t)256 << 20)   /* unwind tables */
#define ENGINE_PENDING_MAX 32u
#define ENGINE_RULE_PER_HOUR 10u
#define ENGINE_RULE_PER_DAY 100u
#define ENGINE_STATUS_NS (10 * NS_PER_SEC)

struct engine_config {
	const char *store_path;
	struct store_limits store_limits;
	struct log *log;

	const struct source_ops *const *sources;     /* ending in NULL */
	bool live;                                   /* events come as they happen, by the clock */
	struct capture capture;                      /* its file is read by sources[0] */
	struct budget_limits budget;                 /* of the recorder itself; live only */
	uint64_t symbol_cache_bytes;                 /* on disk; 0 = none */

	struct trigger *const *triggers;             /* borrowed */
	uint32_t ntriggers;
	uint32_t rule_per_hour, rule_per_day;        /* incidents of one rule; 0 = the defaults, from a file none */
	struct needs needs;                          /* of the triggers and monitors, merged */

	size_t ring_bytes, pinned_bytes;
	size_t table_bytes, symbol_bytes;            /* of caches, where budget.max_rss_bytes is set */
	bool listen;                                 /* signals and <store>.ctl */
	const struct command_line *stop_command;     /* run for each stored incident; NULL = none */
	void (*ready)(void *ctx);                    /* everything is open; or NULL */
	void (*begun)(void *ctx);                    /* live: from now on nothing is missed; or NULL. Beside the rules */
	void *ready_ctx;
	uint64_t status_every_ns;                    /* 0 = never */
};

struct engine_result {
	uint32_t stored, failed;                     /* incidents */
	uint32_t firings;                            /* of rules */
	bool interrupted;                            /* a file was not read to its end, as somebody said stop */
	uint64_t samples, lost;              /* lost: of all kinds but LOSS_FLOOD, */
	uint64_t flooded;                    /* which are these */
	uint64_t events;                             /* delivered, samples too */
	uint64_t start_ns;                           /* the first moment, by the clock of events */
	uint64_t read_ns;                            /* of the recorder clock, from the first moment to the last */
};

/*
 * Record until the number of incidents is reached, the time is over, or somebody says stop.
 *
 * returns  0; ERR_STOPPED when aborted (nothing was written last); ERR_BUSY a second recorder on the
 *          store; an error of a source or the store; ERR_IO when an incident could not be stored
 * threads  the caller becomes the control thread; ends every thread that it starts
 */
int engine_run(const struct engine_config *cfg, struct engine_result *result, struct err *err);

/*
 * How far back the table of processes reaches while so many new ones a second come and go, however large the buffer
 * is; seconds. keeps_ns: what an incident keeps before and after its firing: that much it reaches, and five minutes,
 * as beyond a number that lasts for so long new ones have no name.
 */
double engine_processes_reach_s(double new_s, uint64_t keeps_ns);

/* What follows the number of all that was lost: what was more than one process's share; or nothing. */
#define ENGINE_FLOODED_BYTES 64
const char *engine_flooded_text(uint64_t flooded, char out[ENGINE_FLOODED_BYTES]);

#endif
