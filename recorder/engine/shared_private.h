/* What the threads of the engine share, under one lock, and how they wake each other. */
#pragma once

#include "base/os.h"
#include "model/budget.h"
#include "triggers/trigger.h"

struct engine;

enum engine_stop {                           /* why the run ends; only ever raised */
	STOP_NO,
	STOP_DONE,                           /* the number of incidents was reached */
	STOP_END,                            /* the file is at its end */
	STOP_TIME,                           /* max_collect_ns */
	STOP_ASKED,                          /* a signal or `recorder stop` */
	STOP_FAILED,                         /* no source delivers any more, or no memory */
	STOP_ABORT,
};

/* What status prints of the merge thread, copied once a second. */
struct status_view {
	uint64_t now_ns, start_ns;
	uint64_t samples, lost, late, flooded;
	uint64_t open_samples, open_bytes;   /* of the open segment */
	uint64_t oldest_ns;                  /* start of what is held */
	struct budget budget;
	uint32_t firings;
};

/* The same of one rule. */
struct rule_view {
	struct trigger_status status;
	uint64_t fired, held_back, nearest_ago_ns;
	char state[TRIGGER_STATE_MAX];       /* to be stored by the writer */
	uint32_t nstate;                     /* bytes of it; 0 = nothing new */
};

struct shared {
	struct os_mutex *lock;               /* guards what follows, and parts of struct pending */
	struct os_cond *wake_writer, *wake_merge, *wake_command;

	struct pending *first_pending, *last_pending;        /* by firing */
	uint32_t npending;
	size_t held_bytes;                   /* evicted from the ring, and held for incidents */
	bool merge_done;                     /* no further incident comes */
	bool writer_has_work;                /* since the writer looked last */
	bool writer_hurried;                 /* from outside, since it lowered its priority last */

	char *snapshot_reason;               /* a snapshot was requested; NULL = none */
	uint64_t snapshot_ns;                /* when */
	char *stop_reason;                   /* who or what stopped the run; NULL = nobody said */

	struct command_job *command_jobs;    /* in the order of their incidents */
	bool command_done;                   /* no further job comes */

	struct status_view view;
	struct rule_view *rules;             /* by rule */
	uint32_t stored, failed;             /* incidents */
	uint64_t store_bytes;
	bool aborted;                        /* something was not stored because of an abort */
	char store_note[300];                /* why storing does not go on; "" = it does */
};

int shared_open(struct engine *e, struct err *err);
void shared_close(struct engine *e);

/* Any thread: ask for the end. The strongest request stays; of reasons (sentences) the first. */
void engine_stop(struct engine *e, enum engine_stop how, const char *reason);

/* There is something to write. Under the lock. */
void engine_wake_writer(struct engine *e);
/* The same, and somebody waits: the writer runs at high priority meanwhile. Under the lock. */
void engine_hurry_writer(struct engine *e);
/* Whether the writer's priority never changes. */
bool engine_keeps_priority(const struct engine *e);
