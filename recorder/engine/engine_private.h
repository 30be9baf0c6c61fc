/* What the files of the engine share. Who owns a field stands beside it; nothing else touches it. */
#ifndef ENGINE_PRIVATE_H
#define ENGINE_PRIVATE_H

#include "base/os.h"
#include "engine/engine.h"
#include "engine/feed.h"
#include "model/memory_budget.h"
#include "model/ring.h"
#include "symbol/disk.h"
#include "symbol/symbol.h"
#include "base/version.h"

#define TICK_NS (100 * NS_PER_MS)
#define LATE_NS (250 * NS_PER_MS)        /* a live source that is farther behind is not waited for */
#define ENGINE_SETTLE_NS (5 * NS_PER_SEC) /* how long an incident waits for names, in all */
#define ENGINE_FILE_SETTLE_NS (60 * NS_PER_SEC)   /* the same from a file: nobody waits for the present */
#define ENGINE_FILE_WINDOWS_MAX 1024u    /* incidents of a file whose windows overlap */
#define MANUAL_RULE UINT32_MAX
#define ENGINE_SIGNATURE_FRAMES 48u      /* looked at for 8 named user frames */

/* One incident between its firing and the store. */
struct pending {
	struct pending *next;                /* by firing; guarded by engine.lock */
	struct incident_head head;
	struct frozen window;                /* guarded by engine.lock; grows until it is complete */
	bool complete;                       /* guarded by engine.lock; the post-window has ended */
	bool discard;                        /* guarded by engine.lock; aborted: do not store it */
	bool told_given_up;                  /* guarded by engine.lock */
	bool repeats;                        /* writer: of one that is stored, and dropped when complete */
	bool told_apart;                     /* writer, under engine.lock: whether it repeats one is decided */
	struct frame *at[ENGINE_SIGNATURE_FRAMES];   /* of the firing event's stack, leaf first; referenced */
	uint32_t nat;
	uint32_t signature;                  /* writer: where its own is kept; UINT32_MAX = nowhere */
	char process[64];                    /* of the firing event; "" = none */
	bool whole;                          /* a whole file: it ends where that does; merge */
	uint64_t last_number;                /* of its newest segment; guarded by engine.lock */

	uint32_t rule;                       /* index of the trigger, or MANUAL_RULE; merge */
	uint64_t post_end_ns;                /* merge */
	uint64_t lasted_ns;                  /* merge; what fired went on then; 0 = it was over at once */

	uint32_t written;                    /* segments in the store; the writer's, under engine.lock */
	bool begun;                          /* the same */
	uint64_t settle_ns;                  /* what is left of the time for names; writer */
	uint64_t retry_at_ns;                /* after a failure; writer */
};

struct rule_state {                          /* merge */
	bool in_window;                      /* its own incident is in its post-window */
	uint64_t *hour_ns;                   /* the last firings, a circle of engine.per_hour */
	uint32_t fired;                      /* firings so far */
	uint64_t last_ns;                    /* the last one */
	uint64_t day_start_ns;
	uint32_t day_fired;
	uint64_t suppressed;
	bool told;                           /* that the limit was reached */
	uint64_t until_ns;                   /* and until when */
	bool told_silent;                    /* that it is dead, or has nothing to judge */
	_Atomic uint32_t repeats;            /* the writer's: of `fired` those that made no incident of their own */
	uint32_t given_back;                 /* of them those that are not in `fired` any more */

	/* guarded by engine.lock */
	struct {
		uint64_t fired, held_back, nearest_ago_ns;
	} shown;
	char state[TRIGGER_STATE_MAX];       /* to be stored */
	uint32_t nstate;
};

struct evicted_samples {                     /* a circle; merge */
	uint64_t *items;                     /* ticks of 100 ns since start_ns << 16 | cpu; NULL = none yet */
	uint32_t first, count;
	uint64_t forgotten, forgotten_ns;    /* those that no longer fit; the first one's time */
};

enum engine_stop {                           /* grows only */
	STOP_NO,
	STOP_DONE,                           /* the number of incidents was reached */
	STOP_END,                            /* the file is at its end */
	STOP_TIME,                           /* max_collect_ns */
	STOP_ASKED,                          /* a signal or `recorder stop` */
	STOP_FAILED,                         /* no source delivers any more, or no memory */
	STOP_ABORT,
};

/* What status prints; copied under engine.lock by the merge thread. */
struct engine_view {
	uint64_t now_ns, start_ns;
	uint64_t samples, lost, late, flooded;
	uint64_t open_samples, open_bytes;
	uint64_t oldest_ns;                  /* start of what is held */
	struct budget budget;
	uint32_t firings;
};

struct engine {
	const struct engine_config *cfg;
	struct frames *frames;
	struct processes *processes;
	struct symbols *symbols;
	struct symbol_env symbol_env;        /* the worker's */
	struct ring *ring;
	struct store *store;                 /* the writer's, once it runs */
	struct log *log;
	char host[256], host_text[256];

	struct feed feed;

	/* merge */
	struct segment_builder *builder;
	struct evicted_samples evicted;
	struct rule_state *rules;
	struct budget budget;
	struct memory_budget memory;
	char budget_reason[200];             /* of the step that a source is about to take */
	uint64_t start_ns, now_ns, next_tick_ns, next_tables_ns, last_ns, next_housekeeping_ns;
	uint64_t events, samples, lost, late, refused_told;
	uint64_t queue_lost_told[FEED_SOURCES_MAX];
	uint64_t flooded, flooded_told;      /* events over a quota */
	bool started, tables_told;
	bool closed;                         /* its time is over: what still comes is not looked at */
	struct source_origin origin;         /* of a file */
	bool armed;                          /* no StartOnPerfCounter, or one has fired */
	uint32_t per_hour, per_day;          /* incidents of a rule */
	bool any_per_hour, any_per_day;      /* and those do not hold: from a file, unless they were asked for */
	uint64_t next_remember_ns;
	bool rules_failed;                   /* writer */
	struct kept_signature *signatures;   /* writer */
	uint32_t nsignatures;
	_Atomic uint32_t nrepeats;           /* firings that were counted with an earlier incident */
	uint32_t firings, in_window;         /* in_window: incidents that wait for their end */
	uint64_t next_end_ns;                /* the first of these ends; UINT64_MAX = none */
	bool goes_on;                        /* one of them, beyond its end: looked at with each tick */
	uint64_t caught_up_ns;               /* the end for which the sources were asked to catch up */
	bool stopping_sources;

	/* control -> merge, any thread */
	_Atomic int stop;                    /* enum engine_stop */
	_Atomic bool begun;                  /* every source delivers */
	_Atomic bool merge_ended, writer_ended;
	struct os_wake *wake_control;        /* when one of these is set, and by lines of the log */

	uint32_t retain_put_off;             /* by the writer, so often in a row */
	uint64_t retain_end_ns;              /* the same; 0 = recording goes on */

	struct os_mutex *lock;               /* guards what follows, and the marked fields of pending */
	struct os_thread *writer;            /* since before merge runs; engine_run() joins it */
	struct os_cond *wake_writer, *wake_merge, *wake_command;
	struct command_job *command_jobs;    /* in the order of their incidents */
	bool command_done;                   /* no further one comes */
	struct pending *first_pending, *last_pending;
	uint32_t npending;
	bool merge_done;                     /* no further incident comes */
	bool writer_work;                    /* since the writer looked last */
	char *snapshot_reason;               /* asked for; NULL = none */
	uint64_t snapshot_ns;                /* and when */
	bool writer_hurried;                 /* from outside, since it lowered itself last */
	char *stop_reason;                   /* who or what asked */
	struct engine_view view;
	struct trigger_status *trigger_view;
	bool aborted;                        /* something was not stored because of it */
	char store_note[300];                /* why storing does not go on; "" = it does */
	uint64_t store_bytes;
	uint32_t stored, failed;
	size_t held_bytes;                   /* evicted, and held for incidents */
};

void engine_merge_main(void *engine);
void engine_writer_main(void *engine);
/* There is something to write. Under the lock. */
void engine_wake_writer(struct engine *e);
/* And somebody waits for it: at a high priority for as long as that takes. Under the lock. */
void engine_hurry_writer(struct engine *e);
/* Until merge and writer have ended. ERR_STOPPED when something was not stored because of an abort. */
int engine_control(struct engine *e);

/* Ask for the end; the strongest wish stays. reason: a sentence, the first one stays. */
void engine_stop(struct engine *e, enum engine_stop how, const char *reason);

/* Rules: engine/rules.c. */
int engine_rules_open(struct engine *e, struct err *err);
void engine_rules_close(struct engine *e);
uint32_t engine_rules_wanted(const struct engine *e);        /* firings that end the run */
bool engine_rules_feed(struct engine *e, const struct event *event);   /* a rule fired at it */
void engine_rules_publish(struct engine *e);                 /* under the lock */
void engine_rules_remember(struct engine *e, bool now);
void engine_rules_store(struct engine *e);                   /* writer */

/*
 * --dedup: engine/dedup.c. note: merge, what the signature will be made of. repeats: writer, before
 * anything of the incident is stored; true = it is counted with an earlier one, and is not stored.
 */
void engine_dedup_note(struct engine *e, struct pending *p, const struct event *event);
bool engine_dedup_repeats(struct engine *e, struct pending *p);
void engine_dedup_stored(struct engine *e, const struct pending *p);   /* it has its number */
void engine_dedup_free(struct engine *e);

/* StopCommand: engine/command.c. want: writer, once the incident is stored. */
void engine_command_want(struct engine *e, int64_t incident, const char *rule, const char *reason);
void engine_command_main(void *engine);
void engine_command_end(struct engine *e);

/* What makes an incident. */
struct firing {
	uint32_t rule;                       /* index of the trigger, or MANUAL_RULE */
	const char *rule_text, *reason;
	double value, limit;                 /* NaN = none */
	const struct event *event;           /* NULL = none */
	uint64_t time_ns, pre_ns, post_ns;
	bool whole;                          /* a whole file; see struct pending */
};

/* Merge thread: into the open segment, which is sealed first when it is full. false: a flood's, left out. */
bool engine_keep(struct engine *e, struct event *event);

/* What the recorder says about itself in incidents: engine/own.c; merge thread. */
void engine_own_ring(struct engine *e, uint64_t time_ns);
void engine_own_put(struct engine *e, uint64_t time_ns, uint16_t cpu, const char *name,
		    const struct event_field *fields, uint32_t nfields);
double engine_bytes_per_sample(const struct ring_use *use);

/* Which samples of asked windows the ring gave up: engine/evicted.c. note: ring_on_evict()'s. */
void engine_evicted_note(void *engine, const struct segment *segment);
void engine_evicted_tell(struct engine *e, uint64_t from_ns, uint64_t trigger_ns);

/* How much memory it may have resident: engine/memory.c; merge thread. look: once a second. */
void engine_memory_open(struct engine *e);
void engine_memory_look(struct engine *e);

/* What the recorder may cost: engine/budget.c; merge thread. */
void engine_budget_open(struct engine *e);
void engine_budget_look(struct engine *e);                   /* once a second */
/* EVENT_RATE has come: what follows weighs another period. */
void engine_budget_rate(struct engine *e, struct event *event);

/* Merge thread. false: it cannot be kept; the log says why. */
bool engine_fire(struct engine *e, const struct firing *f);
void engine_seal(struct engine *e);
/* Forget what nothing lists: a slice. When a table is nearly full: all of it, and the oldest history. */
void engine_sweep(struct engine *e);
void engine_sweep_all(struct engine *e);
void engine_keep_tables_open(struct engine *e);
void engine_set_quota(struct engine *e);
/* cut: complete all of them, for this reason; partial: somebody said so before they were whole. */
struct window_end {
	const char *cut;
	bool partial;
};
void engine_windows(struct engine *e, uint64_t now_ns, const struct window_end *end);
/*
 * Live: how long the merge thread may sleep, at most wait_ns, for what ends next. When its end has come the
 * sources are asked to deliver what belongs to it: somebody waits.
 */
uint64_t engine_windows_wait(struct engine *e, uint64_t wait_ns);

/* Bytes of segments that have left the ring and are held for incidents. Under the lock. */
size_t engine_held_bytes(struct engine *e, uint64_t evicted_until_ns);

/* ---- a file: engine/file.c; merge thread ------------------------------------------------------ */

/* At its first event: when and where it was recorded; without rules the incident that it is. */
void engine_file_begin(struct engine *e, uint64_t first_ns);
/* The clock on the wall at a moment of the recorder clock. */
uint64_t engine_wall_ns(const struct engine *e, uint64_t time_ns);
/* Wait while what incidents hold is at its ceiling and the writer gets on. */
void engine_file_wait(struct engine *e);
/* Wait while too many complete incidents wait for the writer. */
void engine_file_wait_for_room(struct engine *e);
/* --dedup: wait until it is known whether what fired last is the same again. */
void engine_file_wait_told_apart(struct engine *e);
/* How its windows end when no more comes: why->cut may be text. */
void engine_file_end(struct engine *e, enum engine_stop how, char *text, size_t n,
		     struct window_end *why);

#endif
