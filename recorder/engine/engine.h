/*
 * The engine: joins sources, ring, triggers and store; the only place that does.
 *
 *	source threads ──queue──▶ merge thread ──pending incidents──▶ writer thread ──▶ store
 *	                              │ ▲ requests
 *	                              ▼ │
 *	                          control: engine_run()'s caller: signals, commands, log, status
 *
 * When a file is read (capture.file) everything runs in the trace's time, as fast as it can be
 * read. Nothing is lost or cut because the store is slow: the merge thread waits, its queue fills,
 * and the source waits. Each firing is an incident, even in the window of another one: rules are
 * held back only when that was requested, and up to 1,024 windows overlap. Without rules the whole
 * file is one incident, stored as it is read. At the end of the file open windows are cut, and say
 * so.
 */
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "model/budget.h"
#include "source/source.h"
#include "store/store.h"
#include "triggers/trigger.h"

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
	const struct symbol_reader *const *symbol_readers;   /* symbol/reader.h; NULL = all */
	bool sandboxed;                              /* symbol/sandbox.h; main() must serve */

	struct trigger *const *triggers;             /* borrowed */
	uint32_t ntriggers;
	uint32_t rule_per_hour, rule_per_day;        /* incidents of one rule; 0 = as usual */
	const struct needs *needs;                   /* of the triggers and monitors; NULL = none */

	uint64_t history_bytes, history_age_ns;      /* on disk; 0 bytes = none */
	uint64_t history_sync_ns;                    /* between two rounds; 0 = as usual */
	const char *boot_id, *kills;                 /* noted in it; see store/history.h */
	size_t ring_bytes, pinned_bytes;
	size_t table_bytes, symbol_bytes;            /* caches, where budget.max_rss_bytes is set */
	bool listen;                                 /* <store>.ctl */
	bool signals;                                /* of the program, and its service manager */
	const struct command_line *stop_command;     /* run for each stored incident; NULL = none */
	/* Live, when health is "failing" (engine/health.h); it is logged in any case. */
	const struct command_line *failure_command;  /* run; NULL = none */
	bool exit_on_failure;                        /* end, with a last incident */
	void (*ready)(void *ctx);                    /* called when everything is open; or NULL */
	void (*begun)(void *ctx);                    /* every source delivers now; or NULL */
	/* Has what is recorded ended? Every 10 ms. why: the incident's reason. NULL = never. */
	bool (*over)(void *ctx, struct buf *why);
	/*
	 * Control thread: read the configuration anew and check all of it; NULL = there is none.
	 * Taken are its rules, limits and windows, freq_hz and what retention keeps. A trigger that
	 * is in triggers already goes on with its state. what: sentences for the log and for who
	 * asked. After success reloaded() follows: the old triggers, or the new ones, can go.
	 * pending: a sentence on what it leaves for a restart; NULL or "" = nothing.
	 */
	int (*reload)(void *ctx, const struct engine_config **out, struct buf *what,
		      struct err *err);
	void (*reloaded)(void *ctx, bool taken);
	const char *pending;
	void *ready_ctx;                             /* of these five */
	/* For who sends incidents elsewhere: one is complete (writer thread); more of the status
	 * (control thread). NULL = nobody. */
	void (*stored)(void *ctx);
	void (*put_more_status)(void *ctx, struct json *j);
	void *more_ctx;                              /* of these two */
	/* 0 = never. A log that is no terminal waits twice as long each time, up to an hour. */
	uint64_t status_every_ns;
	uint64_t store_wait_ns;         /* at the end, for a store that hangs; 0 = as usual */
};

struct engine_result {
	uint32_t stored, failed;                     /* incidents */
	uint32_t firings;                            /* of rules */
	bool interrupted;                            /* somebody ended the run before its time */
	bool ended_by_failure;                       /* exit_on_failure */
	bool left_behind;            /* threads hang and may come back: the program must end now */
	uint64_t samples;
	uint64_t lost;                               /* where loss_counts() */
	uint64_t flooded;                            /* LOSS_FLOOD */
	uint64_t events;                             /* delivered, samples too */
	uint64_t start_ns;                           /* the first moment, by the clock of events */
	uint64_t read_ns;                            /* from there to the last event */
};

/*
 * Record until the number of incidents is reached, the time is over, or somebody says stop.
 *
 * returns  0; ERR_STOPPED: aborted, so that something was not stored; ERR_BUSY: another recorder
 *          uses the store; an error of a source or the store; ERR_IO: an incident was not stored,
 *          or what follows it did not end
 * threads  the caller becomes the control thread; ends every thread that it starts, except for
 *          those that hang: then the program must end soon, as they still use cfg
 */
int engine_run(const struct engine_config *cfg, struct engine_result *result, struct err *err);

/*
 * How far back the table of processes reaches, however large the buffer is; seconds. It reaches at
 * least as far as an incident's window, and five minutes: above the number of new processes that
 * fills the table sooner, new ones get no name.
 *
 * new_s     new processes per second
 * keeps_ns  what an incident keeps before and after its firing
 */
double engine_processes_reach_s(double new_s, uint64_t keeps_ns);

/* ", N events of floods left out", to follow the number of lost events; "" when there are none. */
#define ENGINE_FLOODED_BYTES 64
const char *engine_flooded_text(uint64_t flooded, char out[ENGINE_FLOODED_BYTES]);
